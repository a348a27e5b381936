"""Filters, curves and plans of `bench_scale.py`, the limit of its processes, and the targets."""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.fresh_process import Usage, in_fresh_process
from benchmarks.common.peers import PEERS
from benchmarks.filters import bench_filters
from benchmarks.index import bench_index
from benchmarks.scale import bench_scale
from benchmarks.scale.cells import FILTERS, REAL_FILTERS, Filter, Workload
from benchmarks.scale.summary import OURS, at_recall, fit_laws, make_rows, plan
from benchmarks.targets.goals import GOALS, Goal
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.reporting.lookup import Results
from searchlab.studies.vectors.scenes import Scenes

ROOT = Path(__file__).resolve().parents[2]
SCENES = Scenes(8, seed=0).rows(0, 5_000)[1]


@pytest.mark.parametrize("one", FILTERS, ids=lambda one: one.name)
def test_a_filter_keeps_just_its_share_and_the_same_photos_every_time(one):
    mask = one.mask(SCENES, seed=1)
    if one.share == 1:
        assert mask is None
        return
    assert mask.sum() == max(1, round(one.share * 5_000))
    assert np.array_equal(mask, one.mask(SCENES, seed=1))
    assert not np.array_equal(mask, one.mask(SCENES, seed=2))


def test_an_aligned_filter_keeps_whole_scenes_and_a_random_one_does_not():
    def whole(mask):
        shares = np.bincount(SCENES, weights=mask) / np.maximum(np.bincount(SCENES), 1)
        of = np.bincount(SCENES) > 0
        return np.mean(np.isin(shares[of], (0, 1)))

    assert whole(Filter("aligned", 0.5).mask(SCENES, seed=1)) > 0.99
    assert whole(Filter("random", 0.5).mask(SCENES, seed=1)) < 0.8


def point(effort, recall, p50, *, within="none", kind="image"):
    about = {"queries": kind, "filter": within, "effort": effort}
    return about | {"recall": recall, "p50_ms": p50, "p99_ms": 2 * p50}


def test_the_fastest_that_finds_enough_stands_beside_the_one_setting():
    points = [point(100, 0.9, 1), point(200, 0.98, 2), point(400, 0.995, 4), point(800, 1, 3.5)]
    points += [{**one, "queries": "text"} for one in points[:2]]
    metrics = at_recall(points, 200)
    assert metrics["p50_ms image none"] == 3.5
    assert metrics["p99_ms image none"] == 7
    assert metrics["one setting: p50_ms image none"] == 2
    assert metrics["one setting: recall image none"] == 0.98
    assert "p50_ms text none" not in metrics
    assert metrics["best recall text none"] == 0.98


def test_of_the_worst_query_is_told_what_a_record_tells():
    metrics = at_recall([point(None, 1.0, 5), point(None, 1.0, 6, kind="text")], 200)
    assert not [name for name in metrics if "least" in name]
    points = [point(100, 0.99, 5) | {"least_recall": 0.7}, point(100, 1.0, 6, kind="text")]
    assert at_recall(points, 200)["one setting: least_recall image none"] == 0.7


@pytest.mark.parametrize("name", ["faiss-flat", "pgvector", "usearch"])
def test_a_filter_is_a_mask_or_an_attribute_or_nothing(name):
    entry = PEERS[name]
    if not entry.is_installed:
        pytest.skip(f"{entry.package} is not installed")
    peer, mask = entry.make(), np.arange(8) < 3
    rows = np.eye(8, dtype=np.float32)
    workload = Workload(rows, {}, {"none": None, "random 0.1%": mask}, {})
    with tempfile.TemporaryDirectory(prefix="searchlab-scale-") as folder:
        peer.build(rows, bench_scale.marks_of(peer, workload), Path(folder))
        assert bench_scale.answer_within(peer, "none", None)(rows[5], 1).tolist() == [5]
        among = bench_scale.answer_within(peer, "random 0.1%", mask)
        if name == "usearch":
            assert among is None
        else:
            assert set(among(rows[5], 3).tolist()) == {0, 1, 2}
        peer.close()


def test_recall_at_equal_time_is_the_highest_within_a_millisecond_and_without_a_filter():
    points = [point(100, 0.9, 0.5), point(200, 0.98, 1.0), point(400, 0.995, 1.1)]
    points += [point(100, 0.99, 0.2, within="random 10%"), point(100, 0.7, 3, kind="text")]
    one = {"parameters": {"of": OURS, "n_photos": 9}, "metrics": {"build_s": 2}, "points": points}
    found = {"recall in 1 ms image none": 0.98}
    assert make_rows([one]) == [{"system": OURS, "n_photos": 9, "build_s": 2} | found]


def test_a_system_without_a_knob_has_one_setting():
    points = [point(None, 1.0, 5), point(None, 1.0, 6, kind="text")]
    metrics = at_recall(points, 200)
    assert metrics["one setting: p50_ms image none"] == metrics["p50_ms image none"] == 5


def records(system=OURS, sizes=(10_000, 100_000, 1_000_000), per_photo=0.5):
    return [
        {
            "parameters": {"of": system, "n_photos": n},
            "metrics": {
                "memory_mib": per_photo * n / 1_000,
                "stored_mib": 2.5 * n / 1_000,
                "build_cpu_s": 6e-5 * n,
                "p50_ms image none": 0.001 * n**0.5,
                "p50_ms text none": 0.002 * n**0.5,
            },
        }
        for n in sizes
    ]


def test_a_plan_goes_on_as_the_laws_say_and_names_what_was_not_measured():
    rows = plan(fit_laws(make_rows(records())), dim=512)
    by_size = {row["n_photos"]: row for row in rows}
    hundred = by_size[100_000_000]
    assert hundred["extrapolated"] is True
    assert hundred["times_the_largest_measured"] == 100
    assert hundred["memory_gb"][0] == pytest.approx(52.4, abs=0.1)
    assert hundred["build_cpu_h"][0] == pytest.approx(6000 / 3600, rel=0.01)
    assert (hundred["machines_of_64_gb"], hundred["machines_of_256_gb"]) == (2, 1)
    assert hundred["p50_ms_text"][0] == pytest.approx(20)
    assert hundred["p50_ms_text_over_64_gb_machines"] == pytest.approx(20 / 2**0.5, rel=0.01)
    assert hundred["verdict"] == "one machine of 256 GB"
    assert by_size[10_000_000]["verdict"] == "one machine of 64 GB"
    assert "distributed engine, or 3 machines" in by_size[1_000_000_000]["verdict"]
    most = [row for row in rows if "the most" in row["verdict"]]
    assert most[0]["n_photos"] == pytest.approx(92e6, rel=0.02)


def test_a_forecast_starts_at_the_largest_size_and_never_grows_less_than_the_index_must():
    some = records()
    for one, (overhead, ms) in zip(some, ((12, 0.3), (10, 0.3), (0, 0.3)), strict=True):
        one["metrics"]["memory_mib"] += overhead
        one["metrics"] |= {"p50_ms image none": ms, "p50_ms text none": ms}
    rows = plan(fit_laws(make_rows(some)), dim=512)
    assert rows[1]["n_photos"] == 100_000_000
    assert rows[1]["memory_gb"][0] == pytest.approx(52.4, abs=0.1)
    assert rows[1]["p50_ms_text"][0] == pytest.approx(3)
    assert all(low <= mean <= high for mean, low, high in [rows[1]["memory_gb"]])


def test_without_our_own_index_there_is_no_plan_and_two_sizes_are_no_law():
    assert plan(fit_laws(make_rows(records("hnswlib-huge"))), dim=512) == []
    assert fit_laws(make_rows(records(sizes=(10_000, 100_000)))) == []


def _sleep(seconds):
    time.sleep(seconds)
    return seconds


@pytest.mark.slow
def test_a_process_that_takes_too_long_is_ended_and_one_in_time_answers():
    with pytest.raises(TimeoutError, match="not within 1 s"):
        in_fresh_process(_sleep, 30, limit_s=1)
    assert in_fresh_process(_sleep, 0.01, limit_s=30) == 0.01


@pytest.mark.slow
def test_memory_of_its_own_leaves_out_what_is_mapped(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((4_000, 1_000), dtype=np.float32))
    before = Usage.now()
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert mapped.sum() == 4e6
    after = Usage.now()
    assert after.resident_mib - before.resident_mib > 10
    assert after.own_mib - before.own_mib < 5


def test_a_goal_is_reached_on_its_side_of_the_bound():
    assert Goal(1, "", float, "<=", 2.0, "").reached(2.0)
    assert not Goal(1, "", float, "<=", 2.0, "").reached(2.1)
    assert Goal(1, "", float, ">=", 2.0, "").reached(2.1)
    assert {goal.target for goal in GOALS} == {1, 2, 3, 4, 5, 6, 7}


def asked(rows, n_queries):
    """Say of how many queries the times without a filter are medians."""
    return [
        {key: row[key] for key in ("system", "n_photos")}
        | {"queries": kind, "filter": "none", "p50_ms": row[f"p50_ms {kind} none"]}
        | {"n_queries": n_queries}
        for row in rows
        for kind in ("image", "text")
    ]


def test_a_goal_beside_a_peer_s_time_says_of_how_many_queries_it_is():
    times = [goal for goal in GOALS if "hnswlib" in goal.what or "LanceDB" in goal.what]
    silent = [goal.what for goal in times if goal.count is None]
    assert all(what.startswith(("processor time", "memory")) for what in silent)
    assert len(silent) < len(times)


def test_figures_are_found_where_the_goals_look_for_them(tmp_path):
    rows = []
    for system, slower in ((OURS, 1), ("hnswlib-huge", 8)):
        row = {"system": system, "n_photos": 1_000_000, "build_cpu_s": slower, "memory_mib": slower}
        row["rows_mib"] = 9 - slower  # ours maps what the graph holds
        for kind in ("image", "text"):
            for one in FILTERS:
                row[f"one setting: recall {kind} {one.name}"] = 0.995
                for name in ("p50_ms", "one setting: p50_ms"):
                    row[f"{name} {kind} {one.name}"] = 0.1 * slower
        rows.append(row)
    folder = tmp_path / "scale" / "scenes-512"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"rows": rows, "filters": asked(rows, 40)}))
    one_setting = {f"one setting: p50_ms {kind} none": 0.1 for kind in ("image", "text")}
    (folder / "searchlab-clustered-1M.json").write_text(json.dumps({"metrics": one_setting}))
    widest = {"queries": "text", "filter": "none", "effort": 1024, "p50_ms": 0.4}
    widest["n_queries"] = 30
    # Photos are found with an ef of 16, captions with 64, and under one filter with none.
    filtered = [
        {"queries": kind, "filter": one.name, "effort": ef, "p50_ms": ms}
        | {"recall": recall, "n_queries": 9}
        for kind, recalls in (("image", (0.99, 1.0)), ("text", (0.9, 0.995)))
        for one in FILTERS
        for ef, ms, recall in zip((16, 64), (0.8, 3.2), recalls, strict=True)
    ]
    for point in filtered:
        if point["filter"] == "random 0.1%":
            point["recall"] = 0.9
    points = {"points": [widest, *filtered]}
    (folder / "hnswlib-huge-1M.json").write_text(json.dumps(points))
    results = Results(tmp_path)
    goals = [goal for goal in GOALS if goal.target <= 2 and "LanceDB" not in goal.what]
    figures = {goal.what: goal.read(results) for goal in goals}
    assert figures["memory over hnswlib's, mapped rows left out"] == 1 / 8
    assert figures["memory over hnswlib's, mapped rows counted"] == 1  # 1 and 8 of 8 and 1
    counts = [goal.count(results) for goal in goals if goal.count is not None]
    assert counts == [40, 30] + [9] * 6
    times = "times hnswlib's Python filter at"
    assert figures[f"{times} 1 %, one ef for both kinds"] == pytest.approx(32)
    assert figures[f"{times} 1 %, an ef for each kind"] == pytest.approx(8)
    assert figures[f"{times} 10 %, an ef for each kind"] == pytest.approx(8)
    assert figures[f"{times} 0.1 %, an ef for each kind"] == pytest.approx(8)
    assert figures["least recall@20 of one setting under any filter"] == 0.995
    [captions] = [figure for what, figure in figures.items() if "caption queries" in what]
    assert captions == pytest.approx(0.25)
    assert figures["ms, aligned filters"] == pytest.approx(0.1)
    assert len(figures) == 16


def test_figures_over_real_vectors_are_of_the_least_effort_that_finds_enough(tmp_path):
    ours = {"system": OURS, "n_photos": 1_000_000, "build_cpu_s": 3, "memory_mib": 2, "rows_mib": 6}
    graph = {**ours, "system": "hnswlib-huge", "build_cpu_s": 60, "memory_mib": 16, "rows_mib": 0}
    for kind, ms in (("image", 0.2), ("text", 0.3)):
        for place, one in enumerate(REAL_FILTERS):
            ours[f"one setting: p50_ms {kind} {one.name}"] = 9.0
            ours[f"p50_ms {kind} {one.name}"] = ms + place / 10
            graph[f"p50_ms {kind} {one.name}"] = 0.4
    path = tmp_path / "scale" / "mixed-256" / "summary.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"rows": [ours, graph], "filters": asked([graph], 70)}))
    goals = [goal for goal in GOALS if goal.where == "scale/mixed-256/summary.json"]
    figures = [goal.read(Results(tmp_path)) for goal in goals]
    assert [goal.count(Results(tmp_path)) for goal in goals if goal.count] == [70, 70]
    names = [one.name for one in REAL_FILTERS]
    slowest = [
        0.3 + max(names.index(name) for name in names if name.endswith(shares)) / 10
        for shares in (" 10%", (" 1%", " 0.1%", " 0.01%"))
    ]
    assert figures == pytest.approx([0.5, 0.75, 1 / 20, 8 / 16, 2 / 16, *slowest])


@pytest.mark.slow
def test_a_summary_is_made_anew_from_what_is_on_record_and_nothing_is_measured(
    tmp_path, monkeypatch
):
    def refuse(*_, **__):
        pytest.fail("it measured")

    folder = tmp_path / "scale" / "mixed-256"
    shutil.copytree(ROOT / "results" / "scale" / "mixed-256", folder)
    before = read_measurement(folder / "summary.json")
    (folder / "summary.json").unlink()
    (folder / "faiss-flat-1M.json").unlink()
    monkeypatch.setattr(bench_scale, "in_fresh_process", refuse)
    named = ["--dataset", "mixed-256", "--sizes", "1M", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench_scale.py", "--summarise", *named])
    bench_scale.main()
    after = read_measurement(folder / "summary.json")
    assert after["rows"] == [row for row in before["rows"] if row["system"] != "faiss-flat"]
    missing = {*bench_scale.SYSTEMS} - {row["system"] for row in before["rows"]} | {"faiss-flat"}
    assert after["missing"] == dict.fromkeys(missing, "1M: not measured yet")
    measured = [read_measurement(path) for path in folder.glob("*-1M.json")]
    machines = sorted({one["manifest"]["machine"] for one in measured})
    assert after["manifest"]["machine"] == "; ".join(machines)


@pytest.mark.parametrize("script", [bench_scale, bench_index, bench_filters])
def test_where_nothing_is_on_record_a_summary_is_refused_and_nothing_is_written(
    tmp_path, monkeypatch, script
):
    named = ["--summarise", "--dataset", "scenes-8", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench.py", *named])
    with pytest.raises(SystemExit, match=r"--summarise must find records .*scenes-8"):
        script.main()
    assert list(tmp_path.rglob("*")) == []
