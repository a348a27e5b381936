"""A library under another model, a changed one, or two at once."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.errors import DataError, InputError, MismatchError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import open_library
from searchlab.library.roots import check_root
from searchlab.models import load_model, registry
from searchlab.models.protocol import unit_rows
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import PALETTE, ranked, state_of

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


@pytest.fixture
def mean(monkeypatch):
    """Registers a second model of pictures, the mean colour."""
    model = SimpleNamespace(
        name="mean",
        model_id="mean-000000000001",
        dim=3,
        reads="image",
        input_size=8,
        encode_texts=lambda texts: np.tile(unit_rows(np.array([[0, 0, 1]])), (len(texts), 1)),
        encode_images=lambda images: unit_rows(
            np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) + 1 for image in images])
        ),
    )
    model.parts = ((model, 1.0),)
    monkeypatch.setitem(registry.MODELS, "mean", lambda _rest: model)
    monkeypatch.setattr(registry, "_loaded", {"palette": load_model("palette")})
    return Config(model="mean")


# -- another model ------------------------------------------------------------------------------


def test_publishing_another_model_embeds_once_and_going_back_embeds_nothing(
    put, index, library, mean, embedded
):
    put("a.png", "red")
    put("b.png", "blue")
    index()
    before = ranked(library, Query(text="red"))
    library.publish(mean)
    assert ranked(library, Query(text="anything"))[0] == "b.png"
    library.publish(PALETTE)
    assert ranked(library, Query(text="red")) == before
    assert sum(embedded) == 2


def test_a_file_edited_since_indexing_never_lends_its_looks_to_the_old_content(
    put, index, library, mean
):
    path = put("a.png", "red")
    put("b.png", "green")
    index()
    content = path.read_bytes()
    put("a.png", "blue")
    with pytest.raises((InputError, NotFoundError, DataError), match=r"a\.png"):
        library.publish(mean)
    path.write_bytes(content)
    index_photos(library, config=mean)
    red = library.search(Query(image=Image.new("RGB", (9, 9), "red"))).hits[0]
    assert red.photo.file == str(path)
    assert red.relevance_score > 0.9


def test_another_model_over_a_photo_that_cannot_be_read_names_it_and_leaves_the_state(
    put, index, library, mean
):
    path = put("a.png", 1)
    put("b.png", 2)
    index()
    before = state_of(library)
    path.unlink()
    for change in (library.publish, library.engine_for):
        with pytest.raises((InputError, NotFoundError), match=r"a\.png"):
            change(mean)
    assert state_of(library) == before


def test_another_model_over_a_missing_root_names_it_and_leaves_the_state(
    put, index, library, photos, mean
):
    put("near/a.png", 1)
    put("far/b.png", 2)
    index(check_root(photos / "near"), check_root(photos / "far"))
    before = state_of(library)
    shutil.rmtree(photos / "far")
    with pytest.raises((InputError, NotFoundError), match="far"):
        index_photos(library, config=mean)
    assert state_of(library) == before


def test_words_count_through_a_hybrid_and_an_edited_caption_embeds_no_picture(
    put, index, library, photos, embedded
):
    put("a.png", "gray")
    put("b.png", "gray")
    put("c.png", "gray")
    put("b.png", "#818181")
    put("c.png", "#7f7f7f")

    def say(text):
        (photos / "photos.jsonl").write_text(
            json.dumps({"file": "b.png", "source_description": text})
        )

    config = Config(model="hybrid:palette=0.5,captions=0.5")
    say("a steam locomotive")
    index(config=config)
    assert ranked(library, Query(text="steam locomotive"))[0] == "b.png"
    say("a bowl of soup")
    index_photos(library)
    assert ranked(library, Query(text="bowl of soup"))[0] == "b.png"
    assert sum(embedded) == 3


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["palette", "mini"])
def test_the_file_of_a_photo_is_the_photo_itself_as_a_query(photos, library, spec):
    rng = np.random.default_rng(8)
    for i, kind in enumerate(("jpg", "png")):
        tiles = Image.fromarray(rng.integers(0, 256, (14, 20, 3), dtype=np.uint8))
        tiles.resize((1_000, 700), Image.Resampling.BICUBIC).save(photos / f"{i}.{kind}")
    index_photos(library, [photos], model=spec)
    engine = library.engine
    for row, file in enumerate(engine.table.texts("file")):
        with Image.open(file) as opened:
            pictures = [Path(file), Path(file).read_bytes(), opened.copy()]
        for picture in pictures[:2]:
            vector = engine.reference_vector(Query(image=picture))
            assert float(vector @ engine.index.vectors[row]) > 0.9999
        # A picture that was decoded whole is scaled from more pixels than a reduced decode has.
        vector = engine.reference_vector(Query(image=pictures[2]))
        assert float(vector @ engine.index.vectors[row]) > 0.995


# -- a model that has changed -------------------------------------------------------------------


def test_a_model_that_has_changed_is_refused_with_the_remedy_and_indexing_mends_it(
    put, index, library, monkeypatch, embedded
):
    put("a.png", "red")
    put("b.png", "blue")
    index()
    before = ranked(library, Query(text="red"))
    monkeypatch.setattr(load_model("palette"), "model_id", "palette-ffffffffffff")
    changed = open_library(library.folder)
    with pytest.raises(MismatchError, match=r"palette-ffffffffffff.*index.*again"):
        changed.search(Query(text="red"))
    report = index_photos(changed)
    assert (report.added, report.removed) == (0, 0)
    assert sum(embedded) == 4
    assert ranked(changed, Query(text="red")) == before


def test_a_model_that_embeds_its_canaries_otherwise_is_refused_at_the_first_query(
    put, index, library, photos, monkeypatch
):
    put("a.png", 1)
    index()
    palette = load_model("palette")
    embed = type(palette).encode_texts
    monkeypatch.setattr(type(palette), "encode_texts", lambda self, texts: -embed(self, texts))
    with pytest.raises(MismatchError, match="text tower of palette"):
        open_library(library.folder).search(Query(text="blue"))


def test_a_picture_tower_is_checked_too(put, index, library, photos, monkeypatch):
    picture = put("a.png", 1)
    index()
    palette = load_model("palette")
    embed = type(palette).encode_images
    monkeypatch.setattr(
        type(palette), "encode_images", lambda self, images: embed(self, images)[:, ::-1].copy()
    )
    reopened = open_library(library.folder)
    assert len(reopened.search(Query(text="blue"))) == 1
    with pytest.raises(MismatchError, match="image tower of palette"):
        reopened.search(Query(image=picture))


def test_a_library_of_a_model_that_is_not_known_here_is_refused(put, index, library, monkeypatch):
    put("a.png", 1)
    index()
    monkeypatch.delitem(registry.MODELS, "palette")
    monkeypatch.setattr(registry, "_loaded", {})
    with pytest.raises(MismatchError, match=r"must be known here: .* got 'palette'"):
        open_library(library.folder).search(Query(text="blue"))


@pytest.mark.parametrize("change", ["publish", "engine_for"])
def test_a_configuration_that_was_measured_with_other_weights_is_refused(
    put, index, library, change
):
    put("a.png", 1)
    index()
    before = state_of(library)
    other = replace(PALETTE, model_id="palette-000000000000")
    with pytest.raises(MismatchError, match=r"palette-000000000000.*measure again"):
        getattr(library, change)(other)
    assert state_of(library) == before
    getattr(library, change)(replace(PALETTE, model_id=load_model("palette").model_id))
