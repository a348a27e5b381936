"""Datasets with texts there: whose texts, typing errors, half of the photos, names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config.word_weights import USUAL_WORDS
from searchlab.errors import InputError
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.datasets.written import (
    derive_half_written,
    derive_misspelt,
    derive_written,
    misspell,
    rewrite,
    without_language,
)
from searchlab.evaluation.experiments import Experiment
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.photos.photo import photo_id_of
from searchlab.search.words.terms import one_edit_apart
from tests.support import experiment_world
from tests.support.bundled import bundled
from tests.support.experiment_world import EXACT, SHADES, photo_id, shades

pytestmark = pytest.mark.slow

folder = experiment_world.folder
HYBRID = replace(EXACT, words=USUAL_WORDS)


@pytest.fixture(scope="module")
def titled(folder):
    """The shades under wrong titles: red is called green, and so on; by photographers so named."""
    names = list(SHADES)
    base = shades(folder)
    others = dict(zip(names, [*names[1:], names[0]], strict=True))
    records = tuple(
        {
            **record,
            "title": others[record["source_photo_id"]],
            "photographer_full_name": record["source_photo_id"],
        }
        for record in base.records
    )
    queries = tuple(replace(query, kind="label") for query in base.queries)
    return replace(base, name="titled", queries=queries, records=records)


def test_written_has_the_same_queries_and_withholds_nothing(titled):
    written = derive_written(titled, "there")
    assert titled.withheld == {"title", "source_description"}
    assert written.withheld == frozenset()
    assert written.queries == titled.queries
    assert written.revision != titled.revision
    assert written.sample(["en"], 2, 0).queries == titled.sample(["en"], 2, 0).queries


def test_with_texts_withheld_words_change_nothing(titled, tmp_path):
    """Wrong titles and photographers would move every photo, if anything of them were read."""
    experiment = Experiment(titled, [EXACT, HYBRID], ["mrr@10"], cache=tmp_path)
    without, hybrid = rankings(experiment)
    assert hybrid == without


def test_with_texts_there_a_photo_is_found_by_its_title(titled, tmp_path):
    there = derive_written(titled, "there")
    without, hybrid = rankings(Experiment(there, [EXACT, HYBRID], ["mrr@10"], cache=tmp_path))
    assert without["en-red"][0][0] == photo_id("red")
    assert {photo for photo, _ in hybrid["en-green"][:2]} == {photo_id("red"), photo_id("green")}
    assert hybrid["en-green"][0][0] == photo_id("red")
    assert hybrid["de-red"] == without["de-red"]


def rankings(experiment):
    library = library_of(experiment.dataset, experiment.cache)
    return [experiment.measure(config, library)[1] for config in experiment.configs]


def library_of(dataset, cache):
    from searchlab.evaluation.datasets.dataset_library import dataset_library

    return dataset_library(dataset, cache, config=EXACT)


def test_half_of_the_photos_keep_their_words_by_their_id_alone():
    demo = bundled("demo-written")
    half = derive_half_written(demo, "half")
    kept = {
        photo_id
        for photo_id, record in zip(half.ids_of_records, half.records, strict=True)
        if record.get("title")
    }
    assert 0.4 < len(kept) / len(half.records) < 0.6
    for before, after in zip(demo.records, half.records, strict=True):
        texts = {name: after.get(name) for name in ("title", "source_description", "tags")}
        if after.get("title"):
            assert texts == {name: before.get(name) or None for name in texts}
        else:
            assert not any(texts.values())
            assert after["photographer_full_name"] == before["photographer_full_name"]
    assert half.queries == demo.queries
    assert derive_half_written(demo, "half").revision == half.revision != demo.revision


def test_texts_of_unknown_photos_are_refused(titled):
    with pytest.raises(InputError, match="texts must be of photos of 'titled', got 'nobody'"):
        rewrite(titled, "other", {"nobody": {"title": "x"}})


def test_a_library_of_other_texts_is_refused(titled, folder, tmp_path):
    library = create_library(tmp_path)
    root = check_root(folder, records=folder / "photos.jsonl", source="shades")
    index_photos(library, [root], config=EXACT)
    other = rewrite(titled, "other", {photo_id("red"): {"title": "a tomato"}})
    with pytest.raises(InputError, match="made of its records"):
        Experiment(other, [EXACT], library=library)


# -- typing errors --------------------------------------------------------------------------------


@given(
    text=st.lists(st.sampled_from(["a", "golden", "castle", "im", "Schnee", "Хорошо", "2024"])),
    seed=st.text(max_size=4),
)
def test_one_edit_in_one_word_of_five_letters_or_more(text, seed):
    right = " ".join(text)
    wrong = misspell(right, seed=seed)
    if not {"golden", "castle", "Schnee", "Хорошо"} & set(text):
        assert wrong is None
        return
    changed = [pair for pair in zip(text, wrong.split(" "), strict=True) if len({*pair}) > 1]
    assert len(changed) == 1
    before, after = changed[0]
    assert len(before) >= 5
    assert one_edit_apart(before, after)
    assert misspell(right, seed=seed) == wrong


@pytest.mark.parametrize("text", ["一只猫头鹰站在树枝上", "นกฮูกตัวใหญ่", "चिड़ियाघर", "an owl", ""])
def test_scripts_without_letters_apart_and_short_words_are_left_alone(text):
    assert misspell(text, seed="0") is None


def test_misspelt_queries_keep_their_ids_and_answers(titled):
    wrong = derive_misspelt(titled, "wrong", seed=3)
    right = {query.query_id: query.text for query in titled.queries}
    assert [query.text for query in wrong.queries] != []
    assert all(one_edit_apart(query.text, right[query.query_id]) for query in wrong.queries)
    assert all(wrong.qrels[i] == titled.qrels[i] for i in wrong.qrels)
    assert "en-red" not in wrong.qrels  # three letters
    with pytest.raises(InputError, match="word of five letters"):
        derive_misspelt(titled.only(["en-red"]), "wrong")


def test_queries_in_the_language_of_the_texts_are_left_out():
    demo = bundled("demo-written")
    abroad = without_language(demo, "abroad", ["en"])
    assert {"en", "en-GB", "en-AU"}.isdisjoint(abroad.languages)
    assert {"de", "zh-CN"} <= set(abroad.languages)
    assert abroad.origins


# -- datasets by name -----------------------------------------------------------------------------


def test_names_find_who_took_the_photo_and_what_it_shows():
    names = bundled("demo-proper-names")
    assert names.withheld == frozenset()
    by_kind = {query.kind for query in names.queries}
    assert by_kind == {"photographer", "person", "place"}
    astronaut = photo_id_of("scikit-image", "skimage-astronaut")
    assert names.qrels["person-Eileen_Collins"] == {astronaut: 1}
    assert astronaut in names.qrels["photographer-NASA"]
    assert len(names.qrels["place-Paris"]) == 4


PHOTOS = """photo_id file split source_url
a images/a.jpg test https://example.org/a
b images/b.jpg test https://example.org/b"""
QUERIES = """query_id lang origin_photo_id text judged_as
a#en0 en a A~dog~. a#en0
a#de0 de a Ein~Hund~. a#en0"""
QRELS = """judged_as photo_id grade
a#en0 a 3"""
CAPTIONS = """caption_id photo_id lang kind idx text source
a#en0 a en written 0 A~dog~. x
a#en2 a en written 2 A~brown~animal~. x
a#en1 a en written 1 A~dog~runs~. x
a#de0 a de human_translation 0 Ein~Hund~. x
c#en0 c en written 0 Not~of~this~split~. x"""


def test_a_described_photo_has_a_caption_that_no_query_is(tmp_path, monkeypatch):
    folder = tmp_path / "flickr8k"
    (folder / "images").mkdir(parents=True)
    for name in "ab":
        (folder / f"images/{name}.jpg").write_bytes(name.encode())
    write(folder / "photos.tsv", PHOTOS)
    write(folder / "graded_queries.tsv", QUERIES)
    write(folder / "graded_qrels.tsv", QRELS)
    write(folder / "captions.tsv", CAPTIONS)
    monkeypatch.setenv("SEARCHLAB_DATASETS", str(tmp_path))
    described = load_dataset("flickr8k-described")
    texts = {r["source_photo_id"]: r.get("source_description") for r in described.records}
    assert texts == {"a": "A dog runs .", "b": None}
    assert described.qrels == load_dataset("flickr8k").qrels
    assert described.withheld == frozenset()
    assert sorted(described.qrels) == ["a#de0", "a#en0"]
    # Two of three writers say "dog"; what is written about the photo is what one of them says.
    plain, words = load_dataset("flickr8k-words"), load_dataset("flickr8k-words-described")
    assert list(plain.qrels.values()) == [{photo_id_of("flickr", "a"): 2}]
    assert list(words.qrels.values()) == [{photo_id_of("flickr", "a"): 1}]
    assert {r["source_photo_id"]: r.get("source_description") for r in words.records} == texts


def write(path, table):
    """Write a table whose cells are parted by spaces, with ~ for a space in a cell."""
    path.write_text(table.replace(" ", "\t").replace("~", " ") + "\n", encoding="utf-8")
