import dataclasses
import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import searchlab
from searchlab.config import Config
from searchlab.config.operating_points import OperatingPoint, OperatingPoints
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.tuning import index_costs
from searchlab.evaluation.tuning.chart import draw, table, verdict
from searchlab.evaluation.tuning.index_costs import K, crossover, measure
from searchlab.evaluation.tuning.tune import ask_by_photos, measure_library, tune
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.search.indexes import ExactIndex, build_index
from searchlab.search.queries import Query
from searchlab.studies.vectors.made import made_vectors

pytestmark = pytest.mark.slow

REACH = OperatingPoint(kind="text", effort=0.99, recalls=(0.99, 0.97), exact_below=500)
PARTS = {"index_id": "0123456789ab", "n_photos": 900, "k": 20, "n_queries": 64}
TUNING = OperatingPoints(**PARTS, shares=(1.0, 0.1), reaches=(REACH,))


# -- what a tuning holds ----------------------------------------------------------------------


def test_a_tuning_comes_back_from_plain_values():
    config = Config(index="clustered", tuning=TUNING)
    again = Config.from_dict(json.loads(config.to_json()))
    assert again == config
    assert again.tuning == TUNING
    assert again.config_id == config.config_id
    assert hash(again) == hash(config)


def test_equal_tunings_are_equal_however_a_number_is_written():
    ints = OperatingPoint(kind="text", effort=100, recalls=[1, 0], exact_below=5)
    assert ints == OperatingPoint(kind="text", effort=100.0, recalls=(1.0, 0.0), exact_below=5)
    assert repr(ints) == repr(
        OperatingPoint(kind="text", effort=100.0, recalls=(1.0, 0.0), exact_below=5)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "both"},
        {"kind": None},
        {"effort": 0},
        {"effort": float("nan")},
        {"effort": 10**400},
        {"effort": True},
        {"recalls": (1.1,)},
        {"recalls": (float("nan"),)},
        {"recalls": "1"},
        {"recalls": None},
        {"exact_below": -1},
        {"exact_below": 2.0},
    ],
)
def test_a_reach_out_of_range_is_refused(change):
    with pytest.raises(InputError, match=f"{next(iter(change))} must be"):
        replace(REACH, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"shares": ()},
        {"shares": (0.5,)},
        {"shares": (1.0, 1.0)},
        {"shares": (1.0, 0.1, 0.2)},
        {"shares": (1.0,)},
        {"n_photos": -1},
        {"n_queries": None},
        {"k": 1.5},
        {"index_id": 3},
    ],
)
def test_a_tuning_out_of_range_is_refused(change):
    with pytest.raises(InputError, match="must"):
        replace(TUNING, **change)


@pytest.mark.parametrize(
    "values",
    [
        5,
        {},
        [],
        "tuning",
        {"reaches": 5},
        dataclasses.asdict(TUNING) | {"more": 1},
        dataclasses.asdict(TUNING) | {"reaches": [{"kind": "text"}]},
        dataclasses.asdict(TUNING) | {"reaches": [5]},
        dataclasses.asdict(TUNING) | {"shares": 10**5000},
    ],
)
def test_plain_values_of_no_tuning_are_refused(values):
    with pytest.raises(InputError):
        Config.from_dict({"tuning": values})


@given(st.floats(0, 1), st.floats(0, 1))
def test_nothing_is_expected_where_nothing_was_measured(share, least):
    assert TUNING.expected("image", share, least=least) is None
    assert TUNING.expected("both", share, least=least) is None
    assert (TUNING.expected("text", share, least=least) is None) == (share < 0.1)


# -- where the lines cross --------------------------------------------------------------------


def rows(exact, search, n_allowed=(10, 100, 1000, 10000)):
    return [
        {"n_allowed": n, "exact_ms": one, "ms": other}
        for n, one, other in zip(n_allowed, exact, search, strict=True)
    ]


@pytest.mark.parametrize(
    ("exact", "search", "expected"),
    [
        ([1, 2, 4, 8], [9, 9, 9, 9], 10_000),
        ([1, 2, 4, 8], [0.5, 0.5, 0.5, 0.5], 0),
        ([1, 10, 100, 1000], [31.6, 31.6, 31.6, 31.6], 315),
        ([1, 10, 100, 1000], [10, 10, 10, 10], 100),
        ([1, 2, 4, 8], [3, 1.9, 5, 1], 1250),  # one noisy figure does not move it far
        ([0.01, 0.02, 0.05, 0.09], [0.001, 0.001, 0.001, 0.001], 10_000),  # nobody notices
    ],
)
def test_the_crossover_lies_where_the_costs_are_equal(exact, search, expected):
    assert crossover(rows(exact, search), 10_000) == pytest.approx(expected, rel=0.01)


def test_random_and_aligned_filters_count_alike():
    both = rows([1, 10, 100, 1000], [5] * 4) + rows([1, 10, 100, 1000], [20] * 4)
    assert crossover(both, 10_000) == pytest.approx(100, rel=0.01)


# -- measuring an index -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    return made_vectors("clustered-3k-16", n_queries=8)


def asks(made):
    order = np.random.default_rng(0).permutation(len(made.photos))
    texts = made.queries["text"]
    return {
        "image": ask_by_photos(made.photos, order),
        "text": lambda number: (texts[number % len(texts)], None),
    }


def measured_of(made, **choices):
    config = Config(model="given", **choices)
    index = build_index(made.photos, config, np.arange(len(made.photos)))
    return config, measure(index, config, asks(made), seconds=1e-9)


@pytest.fixture(scope="module", params=["hnsw", "clustered"])
def measured(made, request):
    return measured_of(made, index=request.param, M=8, ef_construction=40, depth=40)


def test_each_kind_and_effort_has_its_recalls_and_its_crossover(measured):
    config, measurement = measured
    tuning = measurement.tuning
    assert tuning.index_id == config.index_id
    assert (tuning.n_photos, tuning.k, tuning.n_queries) == (3000, K, 8)
    assert tuning.shares[0] == 1
    assert {reach.kind for reach in tuning.reaches} == {"image", "text"}
    efforts = [reach.effort for reach in tuning.reaches if reach.kind == "text"]
    assert efforts == sorted(efforts)
    assert efforts == list(index_costs.efforts(config, 3000))
    for reach in tuning.reaches:
        assert 0 <= min(reach.recalls) <= max(reach.recalls) <= 1
        assert 0 <= reach.exact_below <= 3000


def test_recall_is_of_the_worse_kind_of_filter(measured):
    _, measurement = measured
    for reach in measurement.tuning.reaches:
        for share, recall in zip(measurement.tuning.shares, reach.recalls, strict=True):
            same = [
                row["recall"]
                for row in measurement.rows
                if (row["kind"], row["effort"], row["share"]) == (reach.kind, reach.effort, share)
            ]
            assert recall == min(same)
            assert len(same) == (1 if share == 1 else 2)


def test_only_the_times_differ_from_run_to_run(made):
    runs = [measured_of(made, index="clustered", n_lists=30)[1] for _ in range(2)]
    for rows in zip(*(run.rows for run in runs), strict=True):
        one, other = ({n: v for n, v in row.items() if not n.endswith("ms")} for row in rows)
        assert one == other


def test_filters_keep_what_they_are_named_for(measured):
    _, measurement = measured
    for row in measurement.rows:
        assert row["n_allowed"] == round(row["share"] * 3000)
        assert (row["filter"] == "none") == (row["share"] == 1)


def test_an_index_that_misses_nothing_has_nothing_to_tune(made):
    config, measurement = measured_of(made, index="exact")
    assert measurement.rows == []
    assert measurement.tuning.reaches == ()
    assert "nothing to tune" in verdict(measurement, config)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_is_refused(made, seconds):
    with pytest.raises(InputError, match="seconds must be above 0"):
        measure(ExactIndex(made.photos), Config(), {}, seconds=seconds)


def test_the_chart_and_the_table_show_every_effort(measured, tmp_path):
    config, measurement = measured
    written = draw(measurement, config, tmp_path / "tuned")
    assert [path.name for path in written] == ["tuned.png", "tuned.svg"]
    with Image.open(written[0]) as picture:
        assert picture.size[0] > 500
    shown = written[1].read_text()
    assert "text queries" in shown
    assert "image queries" in shown
    assert len(table(measurement).splitlines()) == 1 + len(measurement.tuning.reaches)


# -- a library --------------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path):
    """Makes a library of so many photos under an index of a kind."""

    def make(n, kind):
        photos = tmp_path / f"photos-{n}-{kind}"
        photos.mkdir()
        rng = np.random.default_rng(n)
        for number in range(n):
            tiles = rng.integers(0, 256, (2, 2, 3), dtype=np.uint8)
            Image.fromarray(tiles).resize((16, 16), 0).save(photos / f"{number}.png")
        made = create_library(tmp_path / f"library-{n}-{kind}")
        index_photos(made, [photos], config=Config(model="palette", index=kind, depth=20))
        return made

    return make


def test_a_tuned_library_quotes_what_was_measured(library):
    made = library(60, "clustered")
    tuning = searchlab.tune(made, seconds=0.1)
    assert tuning.n_photos == 60
    assert {reach.kind for reach in tuning.reaches} == {"image", "text"}
    config = made.engine.config
    # So few photos are always scored one by one; as if they were not:
    reaches = tuple(replace(reach, exact_below=0) for reach in tuning.reaches)
    made.publish(replace(config, tuning=replace(tuning, reaches=reaches)))
    plan = open_library(made.folder).engine.plan(Query(text="red"))
    assert plan.mode == "clustered"
    assert f"measured on 60 photos with {tuning.n_queries} text queries" in plan.explain()


@pytest.mark.parametrize("kind", ["exact", "hnsw", "clustered"])
@pytest.mark.parametrize("n", [1, 10])
def test_a_tiny_library_is_told_that_exact_is_best(library, kind, n):
    made = library(n, kind)
    measurement = measure_library(made)
    assert measurement.tuning.reaches == ()
    advice = verdict(measurement, made.engine.config)
    photos = "1 photo" if n == 1 else "10 photos"
    assert photos in advice
    assert "misses nothing" in advice
    tuned = replace(made.engine.config, tuning=measurement.tuning)
    made.publish(tuned)
    assert open_library(made.folder).engine.plan(Query(text="red")).mode == "exact"


def test_an_empty_library_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="got an empty one"):
        tune(create_library(tmp_path / "empty"))


# -- the command ------------------------------------------------------------------------------


def tune_command(*arguments):
    code = "from searchlab.cli import main; main()"
    return [sys.executable, "-c", code, "tune", *map(str, arguments)]


def test_the_command_writes_a_sealed_config_and_leaves_what_is_in_force(library, run):
    made = library(60, "clustered")
    before = made.engine
    done = run("tune", "--data", made.folder, "--seconds", 0.1)
    assert done.code == 0, done.err
    tuned = made.folder / "tuned.json"
    assert f"--config {tuned}" in done.out
    assert "what is in force stays" in done.out
    assert sorted(path.suffix for path in made.folder.glob("tuned.*")) == [".json", ".png", ".svg"]
    assert not list(made.folder.glob(".tuning-*"))
    config = Config.load(tuned)
    assert config.measured is not None
    assert replace(config, tuning=None) == before.config
    assert read_measurement(tuned)["tuned_from"] == before.config.config_id
    assert open_library(made.folder).engine.config == before.config
    made.publish(config)
    assert open_library(made.folder).engine.config == config


@pytest.mark.parametrize("out", ["nowhere/tuned.json", "tuned.txt"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    library, tmp_path, run, out
):
    made = library(10, "clustered")
    done = run("tune", "--data", made.folder, "--out", tmp_path / out)
    assert done.code == 2
    assert "--out must name a .json file" in done.err


def test_ctrl_c_leaves_nothing_half_written(library):
    made = library(60, "clustered")
    before = sorted(path.name for path in made.folder.iterdir())
    process = subprocess.Popen(
        tune_command("--data", made.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    next(line for line in process.stderr if "looking at the index" in line)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert sorted(path.name for path in made.folder.iterdir()) == before
