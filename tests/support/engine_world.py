"""Engines over 300 photos, some of them with the same vector, many of the same day; and queries.

A test file takes the fixtures it needs by their names, as in `exact = engine_world.exact`.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from PIL import Image

from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.config import Config
from searchlab.config.operating_points import OperatingPoint, OperatingPoints
from searchlab.config.word_weights import WordWeights
from searchlab.models.protocol import unit_rows
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.mixing import EVERYDAY, Background, Mixed
from searchlab.search.queries import Query
from searchlab.search.ranking import BESIDE_PICTURE

N = 300
ENGINES = {
    "exact": {"index": "exact"},
    # A shallow, careless graph: what it misses must not be lost, and every page crosses its depth.
    "graph": {"index": "hnsw", "step_rows": 0, "depth": 7, "ef_search": 8, "M": 4},
    "planned": {"index": "hnsw", "step_rows": 2, "depth": 20},
    "standardised": {"index": "exact", "mixing": "standardised", "steering": 0.59},
    # Clusters that are left early, and two depths of the head.
    "clustered": {"index": "clustered", "n_lists": 20, "depth": 40, "effort": 0.1},
    # Texts are read beside the vectors, and move photos from far behind to the front.
    "written": {"index": "exact", "words": WordWeights(1.5, 0.5)},
    "written graph": {
        "index": "hnsw",
        "mixing": "standardised",
        "step_rows": 0,
        "depth": 7,
        "ef_search": 8,
        "M": 4,
        "words": WordWeights(0.7, 2.0),
    },
    "written clustered": {
        "index": "clustered",
        "n_lists": 20,
        "depth": 40,
        "effort": 0.1,
        "words": WordWeights(1.5, 0.5),
    },
    "on shards": {"index": "exact", "mixing": "standardised", "n_shards": 7},
    "written graph on shards": {
        "index": "hnsw",
        "step_rows": 0,
        "depth": 7,
        "ef_search": 8,
        "M": 4,
        "words": WordWeights(0.7, 2.0),
        "n_shards": 2,
    },
}
TEXTS = ("Red", "The sea", "A dune by the sea", "Night over a red dune", "Seas", "")


def photo_id(number):
    return f"00000000-0000-4000-8000-{number:012d}"


# -- engines ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(make_table):
    rng = np.random.default_rng(11)
    return make_table(
        *(
            {
                "source": str(rng.choice(["unsplash", "pexels", "nasa"], p=[0.7, 0.25, 0.05])),
                "license_type": str(rng.choice(["cc0", "by"])),
                "photographer_username": str(rng.choice(["ann", "bob"])),
                "uploaded_on": f"2024-01-{rng.integers(1, 10):02d}",
                "color_hex": str(rng.choice(["#e50000", "#15b01a", "#0343df", "#000000"])),
                "width": int(rng.choice([10, 20, 30])),
                "source_description": str(rng.choice(TEXTS)),
            }
            for _ in range(N)
        )
    )


@pytest.fixture(scope="module")
def vectors(unit_vectors):
    return unit_vectors(220)[np.random.default_rng(12).integers(220, size=N)]


@pytest.fixture(scope="module")
def build(table, vectors, toy_model):
    """Put an engine together over the photos above, or over other ones."""

    def _build(
        *,
        table=table,
        vectors=vectors,
        model=toy_model,
        parts=None,
        effort=None,
        n_shards=None,
        **choices,
    ):
        config = Config(model="toy", model_id=toy_model.model_id, **choices)
        if effort is not None:
            config = replace(config, tuning=always(config, effort))
        labels = np.arange(len(vectors))
        if n_shards is None:
            index = build_index(vectors, config, labels)
        else:
            index = ShardedIndex.cut(vectors, config, labels=labels, n_shards=n_shards)
        return SearchEngine(
            table, index, model, config, **{"key": b"a key of tests"} | (parts or {})
        )

    return _build


def always(config, effort, recall=1.0):
    """A tuning by which no search is ever dearer than scoring all photos."""
    measured = {"effort": effort, "recalls": (recall, recall), "exact_below": 0}
    reaches = tuple(OperatingPoint(kind=kind, **measured) for kind in ("image", "text"))
    shares = (1.0, 1e-9)
    parts = {"n_photos": N, "k": 20, "n_queries": 8, "shares": shares, "reaches": reaches}
    return OperatingPoints(index_id=config.index_id, **parts)


@pytest.fixture(scope="module", params=ENGINES)
def engine(build, request):
    return build(**ENGINES[request.param])


@pytest.fixture(scope="module")
def exact(build):
    return build(index="exact")


def all_pages(engine, query, per_page):
    pages = [engine.search(query, per_page=per_page)]
    while pages[-1].next_cursor is not None:
        assert len(pages) <= N
        pages.append(engine.search(cursor=pages[-1].next_cursor))
    return pages


def ids(pages):
    return [hit.photo.photo_id for page in pages for hit in page]


# -- queries ------------------------------------------------------------------------------------


conditions = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["unsplash", "nasa", ("nasa", "pexels")]),
        "license_type": st.sampled_from(["cc0", "free", ("by", "free")]),
        "orientation": st.sampled_from(["landscape", ("square", "portrait")]),
        "photographer": st.sampled_from(["ann", "nobody"]),
        "after_date": st.sampled_from(["2024-01-01", "2024-01-05", "2024-01-09", "2025-01-01"]),
        "color_name": st.sampled_from(["red", "black"]),
    },
)


@st.composite
def references(draw):
    kind = draw(st.sampled_from(["none", "photo", "picture"]))
    if kind == "photo":
        return {"photo_id": photo_id(draw(st.integers(0, N - 1)))}
    if kind == "picture":
        color = draw(st.tuples(*[st.integers(0, 255)] * 3))
        return {"image": Image.new("RGB", (5, 4), color)}
    return {}


@st.composite
def queries(draw, **fixed):
    parts = draw(references())
    parts["text"] = draw(
        st.none()
        | st.sampled_from(
            ["red", "sea dune", "night", "nothing known", "nihgt", "A dune by the sea."]
        )
    )
    parts["filter"] = PhotoFilter(**draw(conditions))
    if parts["text"] is None and len(parts) == 2 and parts["filter"].is_empty:
        parts["text"] = "blue"
    parts["text_alpha"] = draw(st.sampled_from([0, 0.5, 1.7, 10.0]))
    parts["sort_by"] = draw(st.sampled_from(["relevance", "newest"]))
    parts["score_threshold"] = draw(st.none() | st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.9, 1.0]))
    parts["limit"] = draw(st.none() | st.integers(1, 100))
    return Query(**parts | fixed)


def rows_of(engine):
    """Return the vectors of all photos, wherever they lie."""
    return engine.index.read_rows(np.arange(N))


def vector_of(engine, query):
    """Embed a query as the design says; independent of the engine's own code."""
    mixed = mixed_of(engine, query)
    return mixed if mixed is None else mixed.vector


def mixed_of(engine, query):
    model = engine.model
    text = None if query.text is None else model.encode_texts([query.text])[0]
    if not query.has_reference:
        return None if text is None else Mixed(text, 1.0)
    if query.photo_id is not None:
        picture = rows_of(engine)[engine.table.row_of(query.photo_id)]
    else:
        picture = model.encode_images([query.image])[0]
    if text is None or query.text_alpha == 0:
        return Mixed(picture, 0.0)
    weight = engine.config.steering * query.text_alpha
    if engine.config.mixing == "standardised":  # `test_mixing` holds what this is
        background = Background(rows_of(engine), model.encode_texts(EVERYDAY))
        return background.mix(picture, text, weight)
    return Mixed(unit_rows([picture + weight * text])[0], 0.0)


def add_gains(engine, query, similar, curve=None):
    """Add to (N,) cosines what words gain, as the design says; independent of the engine's code."""
    weights, scores = engine.config.words, similar.astype(np.float64)
    if weights is None or query.text is None or query.kind == "image":
        return scores
    slope = (curve or engine.config.calibration.text).slope
    matches = engine.words.match(query.text)
    if query.kind == "both":
        share = BESIDE_PICTURE * mixed_of(engine, query).text_share
        if engine.config.mixing == "sum" or not share:
            return scores
        slope, matches = slope / share, replace(matches, whole=np.zeros_like(matches.whole))
    logits = matches.coverage * (weights.coverage + weights.precision * matches.precision)
    above = math.ceil(32 * (weights.coverage + weights.precision)) + 1
    # In the engine's order, so that scores agree to their last digit.
    steps = np.rint(32 * logits).astype(int) + np.where(matches.whole, above, 0)
    scores[matches.rows] += steps / (32 * slope) + np.where(matches.whole, 2, 0)
    return scores


def allowed_rows(engine, query):
    rows = np.flatnonzero(query.filter.mask(engine.table)).tolist()
    return [row for row in rows if engine.table.photo_ids([row]) != [query.photo_id]]
