"""Vectors computed elsewhere in a library: indexed, searched, measured, exported, served."""

import numpy as np
import pytest

from searchlab import grid
from searchlab.errors import InputError, MismatchError, NotFoundError
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.tuning.tune import tune
from searchlab.library.export import export_vectors
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.prune import prune
from searchlab.models import load_model
from searchlab.models.canaries import canary_image
from searchlab.models.vectors.writing import write_vectors
from searchlab.progress import Progress
from searchlab.search.queries import Query
from tests.support import experiment_world

folder, shades_library = experiment_world.folder, experiment_world.library


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    place = tmp_path_factory.mktemp("p").resolve() / "pictures"
    place.mkdir()
    for number in range(6):
        canary_image(number, size=48).save(place / f"{number}.png")
    return place


@pytest.fixture(scope="module")
def rows(pictures):
    from PIL import Image

    paths = sorted(pictures.iterdir())
    return load_model("mini").encode_images([Image.open(path) for path in paths])


NAMES = [f"pictures/{number}.png" for number in range(6)]


def test_photos_are_searched_by_photo_without_a_model(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", [*NAMES, "elsewhere.png"], [*rows, rows[0]])
    library, said = create_library(tmp_path / "library"), Said()
    index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}", progress=said)
    assert any("6 of 6 photos have a vector" in line for line in said.lines)
    assert any("1 of 7 vectors name no photo here" in line for line in said.lines)
    table = library.engine.table
    order = [int(file[-5]) for file in table.texts("file")]
    np.testing.assert_allclose(library.engine.index.vectors, rows[order], atol=1e-6)
    [first, *_] = library.search(Query(photo_id=table.photo_ids([0])[0])).hits
    cosines = rows @ rows[order[0]]
    cosines[order[0]] = -1
    assert first.photo.file.endswith(f"{cosines.argmax()}.png")
    with pytest.raises(InputError, match="vector for every text, got none for 'red'"):
        library.search("red")
    prune(library)
    assert library.check()


@pytest.mark.slow
def test_a_photo_without_a_vector_is_skipped_and_said_or_embedded_by_the_model(
    pictures, rows, tmp_path
):
    write_vectors(tmp_path / "v", NAMES[1:], rows[1:])
    library = create_library(tmp_path / "a")
    report = index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}")
    assert [(one.where[-5:], one.reason) for one in report.problems] == [
        ("0.png", f"has no vector in {tmp_path / 'v'}")
    ]
    library = create_library(tmp_path / "b")
    report = index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}@mini")
    assert (report.n_photos, report.problems) == (6, [])
    assert library.search("red").hits
    index_photos(library, model="mini")
    with pytest.raises(NotFoundError, match=r"got 1 of 6 without, such as .*0.png"):
        library.engine_for(grid([f"vectors:{tmp_path / 'v'}"])[0])


def test_ids_that_name_no_photo_are_refused(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", [f"x{name}" for name in range(6)], rows)
    with pytest.raises(InputError, match=r"got none of 6 photos among 6 ids; a photo is .*0.png"):
        index_photos(create_library(tmp_path / "a"), [pictures], model=f"vectors:{tmp_path / 'v'}")


def test_vectors_of_another_model_are_refused_when_photos_are_seen(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", NAMES, rows[:, ::-1])
    library = create_library(tmp_path / "a")
    with pytest.raises(MismatchError, match="mini must be the model that made the vectors"):
        index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}@mini")


def test_changed_vectors_are_taken_anew(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", NAMES, rows)
    library = create_library(tmp_path / "a")
    index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}")
    before = library.engine.index.vectors.copy()
    write_vectors(tmp_path / "v", NAMES, rows[::-1], force=True)
    index_photos(library)
    assert sorted(map(tuple, library.engine.index.vectors)) == sorted(map(tuple, before))
    assert not np.array_equal(library.engine.index.vectors, before)


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_an_export_ranks_as_the_library_it_came_from(kind, folder, shades_library, tmp_path):
    exported = export_vectors(
        shades_library, tmp_path / "v", texts=["red", "red ", "", "teal"], kind=kind
    )
    assert (exported.n_photos, exported.n_texts) == (6, 2)
    spec = f"vectors:{tmp_path / 'v'}"
    assert load_model(spec).base.name == "palette"
    report = Experiment(
        experiment_world.shades(folder), grid(["palette", spec]), library=shades_library
    ).run()
    own, given = report.results
    for metric in own.scores.values:
        assert own.scores.values[metric].tolist() == given.scores.values[metric].tolist()


def test_ids_of_an_export_may_be_files(shades_library, folder, tmp_path):
    exported = export_vectors(shades_library, tmp_path / "v", ids="file")
    assert (tmp_path / "v" / "photos.txt").read_text().split()[0].startswith(str(folder))
    library = create_library(tmp_path / "a")
    index_photos(library, [folder], model=exported.model.name)
    assert library.search("red").hits[0].photo.file.endswith("red.png")
    with pytest.raises(InputError, match="ids must be one of photo_id, file"):
        export_vectors(shades_library, tmp_path / "w", ids="title")


def test_a_dataset_is_measured_on_texts_that_have_vectors(folder, shades_library, tmp_path):
    dataset = experiment_world.shades(folder)
    texts = sorted({query.text for query in dataset.queries})
    palette = load_model("palette")
    texts = [text for text in texts if palette.encode_texts([text]).any()]
    photos = [palette.encode_texts([name])[0] for name in experiment_world.SHADES]
    write_vectors(
        tmp_path / "v",
        list(experiment_world.SHADES),
        photos,
        texts=texts,
        text_vectors=palette.encode_texts(texts),
    )
    spec = f"vectors:{tmp_path / 'v'}"
    english = dataset.select(languages=["en"])
    result = Experiment(english, grid([spec]), ["success@1"], library=shades_library).run()
    assert result.results[0].metrics["success@1"] == 1.0
    with pytest.raises(InputError, match="got none for 'xyzzy'"):
        Experiment(dataset, grid([spec]), library=shades_library).run()


@pytest.mark.slow
def test_a_hybrid_with_a_part_of_stored_vectors_is_searched_by_photo(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", NAMES, rows)
    library = create_library(tmp_path / "a")
    index_photos(library, [pictures], model=f"hybrid:vectors:{tmp_path / 'v'}=0.5,palette=0.5")
    assert library.search(Query(photo_id=library.engine.table.photo_ids([0])[0])).hits
    assert library.engine.model.towers == frozenset()


@pytest.mark.slow
def test_stored_vectors_are_tuned_by_photos(pictures, rows, tmp_path):
    write_vectors(tmp_path / "v", NAMES, rows)
    library = create_library(tmp_path / "a")
    index_photos(library, [pictures], model=f"vectors:{tmp_path / 'v'}", index="hnsw")
    assert tune(library, seconds=0.1) is not None
