"""A query that is a photo's title finds it first, in every language that the demo has titles in."""

import functools

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.models.protocol import unit_rows
from searchlab.photos.table import PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from searchlab.search.words.terms import whole_of, words_of
from tests.support.bundled import bundled

pytestmark = pytest.mark.slow


@functools.cache
def titles_by_language():
    """Language -> photo_id -> a title, as the demo's queries name the photos."""
    names = bundled("demo-names").select(kinds=["label", "title"])
    titles = {}
    for query in names.queries:
        for photo_id in names.qrels[query.query_id]:
            if words_of(query.text):  # one translator wrote "."
                titles.setdefault(query.lang, {}).setdefault(photo_id, query.text)
    return titles


def engine_of(titles, toy_model, make_table):
    """An engine whose vectors say nothing: only what is written can bring a photo to the front."""
    table = make_table({})
    empty = {"source_description": "", "alt_description": "", "file": "", "folder": ""}
    plain = table.row(0) | empty
    rows = [
        plain | {"photo_id": f"00000000-0000-4000-8000-{row:012d}", "title": title}
        for row, title in enumerate(titles)
    ]
    config = Config(model="toy", model_id=toy_model.model_id, words=USUAL_WORDS)
    noise = np.random.default_rng(0).normal(size=(len(titles), toy_model.dim))
    index = build_index(unit_rows(noise.astype(np.float32)), config)
    return SearchEngine(PhotoTable.from_rows([rows]), index, toy_model, config)


def missed(titles, asked, toy_model, make_table):
    """List the titles asked for where others than the photos that bear them come first."""
    engine = engine_of(titles, toy_model, make_table)
    bearing = {}
    for row, title in enumerate(titles):
        bearing.setdefault(whole_of(words_of(title)), []).append(row)
    behind = []
    for title in asked:
        rows = bearing[whole_of(words_of(title))]
        if sorted(engine.rank(Query(text=title), len(rows)).rows.tolist()) != rows:
            behind.append(title)
    return behind


def test_a_title_finds_its_photo_first_in_every_language(toy_model, make_table):
    behind = {}
    for lang, title_of in titles_by_language().items():
        titles = list(title_of.values())
        # All are in the way of those asked for, every fourth; all were asked on 30 November 2026.
        asked = sorted({title for title in titles if len(title) <= 500})[::4]
        behind[lang] = missed(titles, asked, toy_model, make_table)
    assert {lang: titles for lang, titles in behind.items() if titles} == {}


def test_the_demos_own_titles_find_their_photos_first(toy_model, make_table):
    titles = [record["title"] for record in bundled("demo").records]
    assert missed(titles, sorted(set(titles)), toy_model, make_table) == []
