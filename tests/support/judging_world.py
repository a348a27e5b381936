"""A dataset of few photos, the runs of two systems, and the pool that they make."""

import io

import pytest
from PIL import Image

from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.pools import pool_runs
from searchlab.photos.photo import photo_id_of

NAMES = "abcdefgh"
IDS = {name: photo_id_of("shelf", name) for name in NAMES}
TEXTS = {"dunes": ("en", "<b>dunes</b>"), "qasr": ("ar", "قصر"), "meer": ("de", "Meer")}


def picture(photo_id):
    """A picture of each photo's own colour, so that one can tell what is shown."""
    file = io.BytesIO()
    Image.new("RGB", (60, 40), (NAMES.index(name_of(photo_id)) * 30, 90, 120)).save(file, "WEBP")
    return file.getvalue()


def name_of(photo_id):
    return next(name for name, known in IDS.items() if known == photo_id)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(
        name="shelf",
        revision="0" * 12,
        folder=tmp_path_factory.mktemp("shelf"),
        photos=None,
        queries=tuple(LabelledQuery(i, lang, "written", text) for i, (lang, text) in TEXTS.items()),
        qrels={query_id: {IDS["a"]: 1} for query_id in TEXTS},
        records=tuple({"file": name, "source": "shelf", "source_photo_id": name} for name in NAMES),
    )


def run_of(**answers):
    return {query_id: [IDS[name] for name in names] for query_id, names in answers.items()}


RUNS = {
    "qqq-one": run_of(dunes="abc", qasr="abc", meer="abc"),
    "qqq-other": run_of(dunes="cde", qasr="fgh", meer="abc"),
}


@pytest.fixture
def pool(dataset):
    return pool_runs(dataset, RUNS, depth=3)


@pytest.fixture
def grading(pool, tmp_path):
    return Grading(pool, tmp_path / "ann.jsonl", judge="ann", pictures=picture)


def press(widget, **message):
    """Send what the browser sends when a key is pressed or a button clicked."""
    widget._handle_custom_msg({"number": widget.view["number"], **message}, [])
