"""No model, text index or description reads what a task's queries were taken from.

The same photos are measured twice, under true texts and under wrong ones. Where those texts are
withheld, each ranking and score must be the same both times; where they are there, they move them,
which shows that the test can fail.
"""

from dataclasses import replace

import pytest

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.evaluation.datasets import WITHHELD, LabelledQuery
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.datasets.labelled import TEXT_FIELDS
from searchlab.evaluation.experiments import Experiment
from searchlab.models import MODELS
from searchlab.search.words.fields import FIELDS
from tests.support import experiment_world
from tests.support.experiment_world import SHADES, photo_id, shades

folder = experiment_world.folder
library = experiment_world.library

NAMES = {
    "red": "castle",
    "green": "lighthouse",
    "blue": "harbour",
    "yellow": "sunflower",
    "black": "raven",
    "white": "glacier",
}
# Each reads texts in a way of its own: embedded, embedded beside pictures, looked up, and both.
READERS = {
    "captions": Config(model="captions"),
    "hybrid": Config(model="hybrid:captions=0.5,palette=0.5"),
    "words": Config(model="palette", words=USUAL_WORDS),
    "captions and words": Config(model="captions", words=USUAL_WORDS),
}
# These embed pixels or are given vectors, and read texts only if a model that they stand on does.
NO_READERS = {"adapted", "migrated", "mini", "onnx", "openclip", "palette", "vectors"}
TAKEN_FROM = {kind: fields for kind, fields in WITHHELD.items() if fields} | {"own": TEXT_FIELDS}


def named(folder, kind, fields, names):
    """Return the six shades with names in the fields of a kind of query, and queries for them.

    They are in the tags too, where owners often write the same again.
    """
    base = shades(folder)
    records = []
    for record in base.records:
        name = names[record["source_photo_id"]]
        records.append(record | {field: name for field in fields if field != SHOWN})
        records[-1]["tags"] = [name]
    queries = tuple(LabelledQuery(f"en-{shade}", "en", kind, NAMES[shade]) for shade in SHADES)
    qrels = {query.query_id: {photo_id(query.query_id[3:]): 1} for query in queries}
    return replace(base, name=kind, queries=queries, qrels=qrels, records=tuple(records))


SHOWN = "description"  # generated, so that no record can bring it
WRONG = dict(zip(NAMES, [*list(NAMES.values())[1:], NAMES["red"]], strict=True))


def measure(dataset, cache, *configs):
    library = dataset_library(dataset, cache, config=Config(model="palette"))
    experiment = Experiment(dataset, configs, ["mrr@10"], library=library)
    return [experiment.measure(config, library)[1] for config in experiment.configs]


@pytest.fixture(scope="module")
def measured(folder, tmp_path_factory):
    """The rankings of each reader for each kind of query, under true names and under wrong ones."""

    def both(kind, *, withholds=WITHHELD):
        fields = TAKEN_FROM[kind]
        return [
            measure(
                replace(named(folder, kind, fields, names), withholds=withholds),
                tmp_path_factory.mktemp(kind),
                *READERS.values(),
            )
            for names in (NAMES, WRONG)
        ]

    return both


def test_each_model_that_reads_texts_is_tried_here():
    tried = {config.model.partition(":")[0] for config in READERS.values()}
    assert tried - NO_READERS == set(MODELS) - NO_READERS


@pytest.mark.slow
@pytest.mark.parametrize("kind", TAKEN_FROM)
def test_what_queries_were_taken_from_moves_no_photo(measured, kind):
    true, wrong = measured(kind)
    for reader, one, other in zip(READERS, true, wrong, strict=True):
        assert one == other, f"{reader} reads one of {sorted(TAKEN_FROM[kind])}"


@pytest.mark.slow
def test_the_same_texts_move_photos_where_they_are_there(measured):
    true, wrong = measured("own", withholds={"own": frozenset()})
    for reader, one, other in zip(READERS, true, wrong, strict=True):
        assert one != other, f"{reader} reads no text, so that the test above says nothing"
    words = list(READERS).index("words")
    assert all(true[words][f"en-{shade}"][0][0] == photo_id(shade) for shade in SHADES)


def test_names_of_files_are_not_read_while_measuring(folder, library):
    """The makers of a dataset chose them; its own library has none of them, other libraries do."""
    config = Config(model="palette", words=USUAL_WORDS)
    dataset = replace(shades(folder), withholds={"graded": frozenset()})
    engine = library.engine_for(config)  # as it is served
    assert engine.words is not None
    experiment = Experiment(dataset, [config], ["mrr@10"], library=library)
    own = measure(dataset, library.folder.parent / "own", config)
    assert [experiment.measure(config, library)[1]] == own


def test_every_text_of_a_photo_is_withheld_from_queries_of_unknown_origin(folder):
    """A new text column that the text index reads must be named here or be left out with others."""
    dataset = named(folder, "own", TEXT_FIELDS, NAMES)
    assert dataset.withheld == TEXT_FIELDS
    about = {"source", "photographer_full_name", "photographer_username", "license_type"}
    columns = {name for field in FIELDS for name in field.columns} - TEXT_FIELDS - about
    assert columns == {"tags", "file", "folder", "place"}
