"""Datasets with captions in many languages, and with their pictures packed: a few rows of each."""

import io
import json
import tarfile

import pytest
from PIL import Image

from searchlab import grid
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.photos.photo import photo_id_of

SHADES = {"red": "#e50000", "green": "#15b01a", "blue": "#0343df"}


def picture(shade, form="PNG"):
    data = io.BytesIO()
    Image.new("RGB", (24, 16), shade).save(data, form)
    return data.getvalue()


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def texts_of(dataset):
    return sorted((query.lang, query.text) for query in dataset.queries)


# -- many languages ---------------------------------------------------------------------------


@pytest.fixture
def crossmodal(tmp_path):
    lines = []
    for name, german in (("red", "rot"), ("blue", "blau")):
        put(tmp_path / "images" / f"{name}01.jpg", picture(SHADES[name], "JPEG"))
        line = {"image/key": f"{name}01", "image/locale": "de"}
        line |= {"en": {"caption": [name, f"so {name}"], "caption/tokenized": ["x", "y"]}}
        lines.append(json.dumps(line | {"de": {"caption": [german]}}, ensure_ascii=False))
    put(tmp_path / "captions.jsonl", "\n".join([*lines, ""]))
    return tmp_path


def test_crossmodal_3600_has_a_query_for_each_caption_in_each_language(crossmodal):
    dataset = load_dataset(str(crossmodal))
    assert texts_of(dataset) == [
        ("de", "blau"), ("de", "rot"),
        ("en", "blue"), ("en", "red"), ("en", "so blue"), ("en", "so red"),
    ]  # fmt: skip
    (wanted,) = [query for query in dataset.queries if query.text == "rot"]
    assert dataset.qrels[wanted.query_id] == {photo_id_of("crossmodal-3600", "red01"): 1}
    assert load_dataset(f"{crossmodal}:de").languages == ("de",)
    with pytest.raises(NotFoundError, match="must be one of de, en, got 'fr'"):
        load_dataset(f"{crossmodal}:fr")


@pytest.fixture
def xtd(tmp_path):
    names = [f"COCO_val2014_00000000000{number}.jpg" for number in range(3)]
    for name, shade in zip(names, SHADES.values(), strict=True):
        put(tmp_path / "images" / name, picture(shade, "JPEG"))
    put(tmp_path / "test_image_names.txt", "\n".join([*names, ""]))
    put(tmp_path / "XTD10" / "test_1kcaptions_en.txt", "\n".join([*SHADES, ""]))
    put(tmp_path / "STAIR" / "test_1kcaptions_jp.txt", "赤\n緑\n青\n")
    return tmp_path


def test_xtd10_joins_captions_to_pictures_by_their_lines(xtd):
    dataset = load_dataset(str(xtd))
    assert dataset.languages == ("en", "ja")
    assert len(dataset.photo_ids) == 3
    (blue,) = [query for query in dataset.queries if query.text == "青"]
    expected = photo_id_of("coco", "COCO_val2014_000000000002")
    assert dataset.qrels[blue.query_id] == {expected: 1}
    assert texts_of(load_dataset(f"{xtd}:ja")) == [("ja", text) for text in sorted("赤緑青")]


def test_xtd10_with_a_line_too_few_is_refused(xtd):
    put(xtd / "XTD10" / "test_1kcaptions_en.txt", "red\ngreen\n")
    with pytest.raises(InputError, match="must have a caption for each of 3 pictures: 2"):
        load_dataset(str(xtd))


# -- tars -------------------------------------------------------------------------------------


def write_tar(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


@pytest.fixture
def tars(tmp_path):
    write_tar(
        tmp_path / "wds" / "test" / "0.tar",
        [("s0.png", picture(SHADES["red"])), ("s0.txt", b"red\nso red")],
    )
    write_tar(
        tmp_path / "wds" / "test" / "1.tar",
        [("s1.txt", b"blue"), ("s1.webp", picture(SHADES["blue"], "WEBP"))],
    )
    put(tmp_path / "wds" / "dataset_type.txt", "retrieval")
    put(tmp_path / "wds" / "test" / "nshards.txt", "2")
    return tmp_path / "wds"


@pytest.mark.slow
def test_tars_of_clip_benchmark_are_unpacked_once_and_measured(tars):
    dataset = load_dataset(str(tars))
    assert texts_of(dataset) == [("en", "blue"), ("en", "red"), ("en", "so red")]
    unpacked = tars / "unpacked-test" / "s0.png"
    before = unpacked.stat().st_mtime_ns
    assert load_dataset(str(tars)).revision == dataset.revision
    assert unpacked.stat().st_mtime_ns == before
    report = Experiment(dataset, grid(models=["palette"]), ["success@1"]).run()
    assert report.results[0].metrics["success@1"] == 1.0


def test_names_in_a_tar_lead_nowhere_else(tars):
    write_tar(
        tars / "test" / "2.tar",
        [("../../out.png", picture(SHADES["green"])), ("../../out.txt", b"green")],
    )
    load_dataset(str(tars))
    assert not list(tars.parent.parent.glob("out*"))
    assert {path.parent.name for path in tars.rglob("*out.png")} == {"unpacked-test"}


def test_tars_that_are_damaged_or_of_another_task_are_refused(tars):
    with pytest.raises(NotFoundError, match="the split must be one of test, got 'val'"):
        load_dataset(f"{tars}:val")
    write_tar(tars / "val" / "0.tar", [("s0.png", picture("#000000")), ("s0.cls", b"3")])
    with pytest.raises(InputError, match=r"must hold tars for retrieval, .* 1 pictures and 0"):
        load_dataset(f"{tars}:val")
    put(tars / "val" / "0.tar", b"no tar at all")
    with pytest.raises(InputError, match="must be a whole tar"):
        load_dataset(f"{tars}:val")


# -- Parquet ----------------------------------------------------------------------------------


@pytest.fixture
def mieb(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(name, rows):
        path = tmp_path / "mieb" / name / "test-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)

    write(
        "corpus",
        [
            {"id": name, "modality": "image", "text": None,
             "image": {"bytes": picture(shade), "path": f"{name}.png"}}
            for name, shade in SHADES.items()
        ],
    )  # fmt: skip
    write("query", [{"id": f"q-{name}", "modality": "text", "text": name} for name in SHADES])
    qrels = [{"query-id": f"q-{name}", "corpus-id": name, "score": 1} for name in SHADES]
    write("qrels", [*qrels, {"query-id": "q-red", "corpus-id": "blue", "score": 0}])
    return tmp_path / "mieb", write


def test_a_task_of_mieb_is_read_from_parquet(mieb):
    folder, _ = mieb
    dataset = load_dataset(str(folder))
    assert texts_of(dataset) == [("en", name) for name in sorted(SHADES)]
    assert dataset.qrels["q-red"] == {photo_id_of("mieb", "red"): 1, photo_id_of("mieb", "blue"): 0}
    assert {path.name for path in (folder / "unpacked-test").iterdir()} == {
        "red.png", "green.png", "blue.png",
    }  # fmt: skip


def test_ids_of_any_script_have_pictures_of_their_own_and_zero_is_an_id(mieb):
    folder, write = mieb
    shades = {"照片": "#e50000", "風景": "#0343df", "a/1": "#15b01a", "a_1": "#000", "0": "#fff"}
    write("corpus", [{"id": name, "image": {"bytes": picture(s)}} for name, s in shades.items()])
    write("query", [{"id": 0, "text": "red"}])
    write("qrels", [{"query-id": 0, "corpus-id": name, "score": 1.0} for name in shades])
    dataset = load_dataset(str(folder))
    files = {str(record["file"]) for record in dataset.records}
    assert len(files) == 5
    assert len({Image.open(file).getpixel((0, 0)) for file in files}) == 5
    assert list(dataset.qrels) == ["0"]


@pytest.mark.parametrize("score", [0.5, 1.9, None])
def test_a_grade_of_parquet_that_is_no_whole_number_is_refused(mieb, score):
    folder, write = mieb
    write("qrels", [{"query-id": "q-red", "corpus-id": "red", "score": score}])
    with pytest.raises(InputError, match=f"by whole numbers, got q-red, red, {score}"):
        load_dataset(str(folder))


def test_parquet_without_pictures_or_with_unknown_ids_is_refused(mieb):
    folder, write = mieb
    write("qrels", [{"query-id": "q-red", "corpus-id": "purple", "score": 1}])
    with pytest.raises(InputError, match="by whole numbers, got q-red, purple, 1"):
        load_dataset(str(folder))
    write("corpus", [{"id": "red", "modality": "text", "text": "x", "image": None}])
    with pytest.raises(InputError, match="must have a picture in each row, got none for 'red'"):
        load_dataset(str(folder))
