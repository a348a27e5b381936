"""Searching by a picture or a photo, and steering it by words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import ImageError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import N, conditions, photo_id

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


# -- steering -----------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(number=st.integers(0, N - 1), chosen=conditions)
def test_a_photo_is_never_among_its_own_results(engine, number, chosen):
    query = Query(photo_id=photo_id(number), filter=PhotoFilter(**chosen))
    assert photo_id(number) not in engine.table.photo_ids(engine.rank(query).rows)


def test_a_photo_that_alone_meets_the_filter_finds_nothing(build, make_table, unit_vectors):
    table = make_table({"source": "nasa"}, {}, {})
    engine = build(table=table, vectors=unit_vectors(3))
    query = Query(photo_id=photo_id(0), filter=PhotoFilter(source="nasa"))
    page = engine.search(query)
    assert (list(page), page.has_more, page.plan.n_allowed) == ([], False, 0)


def test_twins_of_a_photo_come_first(exact, vectors):
    row = next(r for r in range(N) if (vectors == vectors[r]).all(axis=1).sum() >= 3)
    twins = np.flatnonzero((vectors == vectors[row]).all(axis=1)).tolist()
    ranking = exact.rank(Query(photo_id=photo_id(row)))
    assert ranking.rows[: len(twins) - 1].tolist() == [twin for twin in twins if twin != row]


@pytest.mark.parametrize("reference", [{"photo_id": photo_id(7)}, {"image": "#0343df"}])
def test_alpha_0_is_exactly_the_search_by_the_picture(engine, reference):
    if "image" in reference:
        reference = {"image": Image.new("RGB", (4, 4), reference["image"])}
    plain = engine.rank(Query(**reference))
    steered = engine.rank(Query(**reference, text="night", text_alpha=0))
    assert steered.rows.tolist() == plain.rows.tolist()
    assert steered.scores.tolist() == plain.scores.tolist()


def test_alpha_has_no_effect_without_a_text_or_without_a_picture(engine):
    for parts in ({"photo_id": photo_id(7)}, {"text": "sea"}):
        one, other = (engine.rank(Query(**parts, text_alpha=alpha)) for alpha in (0, 10))
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_a_higher_alpha_moves_the_results_towards_the_text(build, table, vectors, toy_model):
    # The difference of two photos' cosines changes its sign at most once while the weight grows,
    # so the photo that is the text itself can only climb.
    with_sea = vectors.copy()
    with_sea[250] = toy_model.encode_texts(["sea"])[0]
    engine = build(vectors=with_sea)
    places = [
        engine.rank(Query(photo_id=photo_id(7), text="sea", text_alpha=alpha))
        .rows.tolist()
        .index(250)
        for alpha in (0, 0.2, 0.5, 1, 1.7, 3, 5, 10)
    ]
    assert places == sorted(places, reverse=True)
    assert places[0] > 20
    assert places[-1] == 0


def test_a_picture_and_a_word_for_it_find_the_same_photo_first(build, vectors, toy_model):
    with_green = vectors.copy()
    with_green[33] = toy_model.encode_texts(["green"])[0]
    engine = build(vectors=with_green)
    for query in (Query(text="green"), Query(image=Image.new("RGB", (3, 3), "#00ff00"))):
        assert engine.rank(query, 1).rows.tolist() == [33]


# -- files, bytes, pictures in memory -----------------------------------------------------------


def test_a_picture_is_the_same_as_file_as_bytes_and_in_memory(exact, make_picture, tmp_path):
    path = make_picture(tmp_path / "blue.png", "#0343df", (40, 30))
    rankings = [
        exact.rank(Query(image=image)).rows.tolist()
        for image in (path, str(path), path.read_bytes(), Image.open(path))
    ]
    assert rankings == [rankings[0]] * 4


def test_a_refused_picture_is_the_caller_s_fault(exact, tmp_path):
    for image in (b"", b"no picture", tmp_path / "missing.png"):
        with pytest.raises(ImageError):
            exact.search(Query(image=image))


def test_a_turned_picture_is_the_same_opened_as_by_its_file(build, tmp_path):
    seen = []

    class Seeing(type(build().model)):
        def encode_images(self, images):
            seen.extend(image.tobytes() for image in images)
            return super().encode_images(images)

    engine = build(model=Seeing())
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "turned.png"
    picture = Image.new("RGB", (12, 6), "red")
    picture.paste((0, 0, 255), (0, 0, 4, 6))
    picture.save(path, exif=exif)
    with Image.open(path) as lazily:
        by_picture = engine.search(Query(image=lazily))
    assert by_picture.hits == engine.search(Query(image=path)).hits
    assert seen[0] == seen[1]


def test_an_opened_picture_that_is_cut_short_is_the_caller_s_fault(exact, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    path = tmp_path / "cut.jpg"
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2_000])
    with Image.open(path) as lazily, pytest.raises(ImageError) as caught:
        exact.search(Query(image=lazily))
    assert caught.value.reason == "damaged"
