"""A query that is a photo's title finds it first, in every language that the demo has titles in."""

import functools

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.evaluation.datasets import load_dataset
from searchlab.models.protocol import unit_rows
from searchlab.photos.table import PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from searchlab.search.words.terms import whole_of, words_of

QUICK = (
    "ar",
    "bn",
    "de",
    "el",
    "en",
    "fr",
    "he",
    "hi",
    "ja",
    "ka",
    "ko",
    "ru",
    "ta",
    "th",
    "zh-CN",
)


@functools.cache
def titles_by_language():
    """Language -> photo_id -> a title, as the demo's queries name the photos."""
    names = load_dataset("demo-names").select(kinds=["label", "title"])
    titles = {}
    for query in names.queries:
        for photo_id in names.qrels[query.query_id]:
            if words_of(query.text):  # one translator wrote "."
                titles.setdefault(query.lang, {}).setdefault(photo_id, query.text)
    return titles


def engine_of(titles, toy_model, make_table):
    """An engine whose vectors say nothing: only what is written can bring a photo to the front."""
    table = make_table(*({} for _ in titles))
    empty = {"source_description": "", "alt_description": "", "file": "", "folder": ""}
    rows = [table.row(row) | empty | {"title": title} for row, title in enumerate(titles)]
    config = Config(model="toy", model_id=toy_model.model_id, words=USUAL_WORDS)
    noise = np.random.default_rng(0).normal(size=(len(titles), toy_model.dim))
    index = build_index(unit_rows(noise.astype(np.float32)), config)
    return SearchEngine(PhotoTable.from_rows([rows]), index, toy_model, config)


@pytest.mark.parametrize(
    "lang",
    [
        pytest.param(lang, marks=[] if lang in QUICK else pytest.mark.slow)
        for lang in sorted(titles_by_language())
    ],
)
def test_a_title_finds_its_photo_first_in_every_language(lang, toy_model, make_table):
    titles = list(titles_by_language()[lang].values())
    engine = engine_of(titles, toy_model, make_table)
    asked = {title for title in titles if len(title) <= 500}
    behind = [title for title in sorted(asked) if not comes_first(engine, titles, title)]
    assert behind == []


def comes_first(engine, titles, title):
    """Whether the first photos are all those that bear the title."""
    bearing = [row for row, other in enumerate(titles) if same(other, title)]
    ranking = engine.rank(Query(text=title), len(bearing))
    return sorted(ranking.rows.tolist()) == bearing


def same(one, other):
    return whole_of(words_of(one)) == whole_of(words_of(other))


def test_the_demos_own_titles_find_their_photos_first(toy_model, make_table):
    titles = [record["title"] for record in load_dataset("demo").records]
    engine = engine_of(titles, toy_model, make_table)
    assert [title for title in titles if not comes_first(engine, titles, title)] == []
