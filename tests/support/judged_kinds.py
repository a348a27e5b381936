"""A judged collection of photos of some kinds, for tests of what is measured on such."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from searchlab.config import Config
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.models.protocol import unit_rows
from searchlab.photos.photo import photo_id_of
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes.exact import ExactIndex
from searchlab.studies.query_sets import QuerySet


class Noisy:
    """Embeds the text "7 0.3" beside the photo in row 7, as far away as the number says."""

    dim = 24
    reads = "image"
    input_size = 4

    def __init__(self, name, vectors, noise):
        self.name, self.model_id = name, f"{name}-0123456789ab"
        self.vectors, self.noise = vectors, noise

    def encode_texts(self, texts):
        near = self.vectors[[int(text.split()[0]) for text in texts]]
        rng = np.random.default_rng(3)
        return unit_rows(near + self.noise * rng.normal(size=near.shape))


def judged_photos(make_table, *, n_photos=90, kinds=30):
    """Photos of some kinds with queries in two languages, and engines of two models."""
    rng = np.random.default_rng(0)
    kind_of = np.arange(n_photos) % kinds
    plain = rng.normal(size=(kinds, Noisy.dim))[kind_of]
    numbers = sorted(range(n_photos), key=lambda number: photo_id_of("kinds", str(number)))
    ids = [photo_id_of("kinds", str(number)) for number in numbers]
    table = make_table(*({"photo_id": photo_id} for photo_id in ids))
    engines = {}
    for name, spread, noise, shift in (("sharp", 0.5, 0.1, 0.0), ("lifted", 0.5, 0.1, 4.0)):
        vectors = plain + spread * rng.normal(size=plain.shape)
        vectors[:, 0] += shift  # all cosines are higher: another scale
        vectors = unit_rows(vectors)
        config = Config(model=name, model_id=f"{name}-0123456789ab")
        model = Noisy(name, vectors, noise)
        engines[name] = SearchEngine(table, ExactIndex(vectors), model, config)
    queries = [
        LabelledQuery(f"{lang}-{row:03}", lang, "graded", f"{row} {lang}")
        for lang in ("en", "fr")
        for row in range(n_photos)
    ]
    same = {row: np.flatnonzero(kind_of == kind_of[row]) for row in range(n_photos)}
    qrels = {
        query.query_id: {ids[other]: 1 for other in same[int(query.query_id[3:])]}
        for query in queries
    }
    text = Dataset(
        name="kinds",
        revision="r1",
        folder=Path(),
        photos=None,
        queries=tuple(queries),
        qrels=qrels,
        records=tuple(
            {"source": "kinds", "source_photo_id": str(number)} for number in range(n_photos)
        ),
    )
    others = {ids[row]: {ids[o]: 1 for o in same[row] if o != row} for row in range(n_photos)}
    by_photo = [LabelledQuery(photo, "zxx", "graded", photo_id=photo) for photo in ids]
    similar = text.derive("kinds-similar", by_photo, others)
    steered = text.derive(
        "kinds-steered",
        [replace(query, photo_id=ids[int(query.query_id[3:])]) for query in queries],
        {query.query_id: others[ids[int(query.query_id[3:])]] for query in queries},
    )
    return engines, QuerySet(text=text, similar=similar, steered=steered)
