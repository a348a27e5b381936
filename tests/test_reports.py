import io
import json

import numpy as np
import pytest
from rich.console import Console

from searchlab.config import Config
from searchlab.errors import ConflictError, DataError, InputError, NotFoundError
from searchlab.promotion import choose, promote
from searchlab.reports import Report, load_report
from searchlab.results import Result, Scores, code_version, environment, load_result
from searchlab.significance import bootstrap_intervals

N = 200
LANGS = tuple("de" if n % 4 == 0 else "en" for n in range(N))
ABOUT = tuple(f"p{n // 2}" for n in range(N))
EASY = np.random.default_rng(0).random(N)


def result(config, *, shift=0.0, noise=0, ms=1.0, mib=1.0, revision="r1", **surroundings):
    """A result whose scores are those of an easy system, less `shift`, with seeded noise."""
    jitter = np.random.default_rng(noise).normal(0, 0.05, N) if noise else np.zeros(N)
    values = {"ndcg@10": np.round((EASY - shift + jitter).clip(0, 1), 6)}
    values["success@5"] = (values["ndcg@10"] > 0.5).astype(float)
    intervals = bootstrap_intervals(values, groups=LANGS, clusters=ABOUT, samples=300)
    metrics = {name: found.macro.mean for name, found in intervals.items()}
    metrics |= {"p50_ms": ms, "p95_ms": 2 * ms, "p99_ms": 3 * ms}
    metrics |= {"text_ms": 0.5, "build_s": 2.0, "size_mib": mib}
    return Result(
        benchmark="search_quality",
        dataset="demo",
        dataset_revision=revision,
        config=config,
        metrics=metrics,
        intervals=intervals,
        photos={"n_photos": 349, "hash": "abc"},
        environment={**environment(), "date": "2026-01-01", **surroundings},
        scores=Scores(tuple(f"q{n:03}" for n in range(N)), LANGS, ABOUT, values, np.full(N, ms)),
    )


MINI = Config(model="mini", model_id="mini-1")
GRAPH = Config(model="mini", model_id="mini-1", index="hnsw")
WIDE = Config(model="mini", model_id="mini-1", depth=500)
PALETTE = Config(model="palette", model_id="palette-1")


@pytest.fixture
def report():
    return Report(
        [
            result(PALETTE, shift=0.3),
            result(GRAPH, noise=1, ms=0.2),
            result(MINI, noise=2, ms=9.0),
        ]
    )


def test_systems_that_cannot_be_told_apart_share_a_rank(report):
    assert [{r.name for r in group} for group in report.groups] == [
        {"mini × exact", "mini × hnsw M=16 ef=100"},
        {"palette × exact"},
    ]
    assert sorted(row[0] for row in report.rows()) == ["* 1=", "1=", "2"]


def test_leaderboard_shows_quality_with_intervals_beside_cost(report):
    assert report.columns == [
        *("rank", "system", "ndcg@10 [95 %]", "success@5 [95 %]", "langs"),
        *("p50 ms", "p95 ms", "text ms", "build s", "MiB"),
    ]
    row = dict(zip(report.columns, report.rows()[2], strict=True))
    found = report.results[2].intervals["ndcg@10"].macro
    assert row["system"] == "palette × exact"
    assert row["ndcg@10 [95 %]"] == f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
    assert (row["langs"], row["p50 ms"], row["p95 ms"], row["MiB"]) == ("2", "1.00", "2.00", "1.0")


def test_text_has_no_colours_and_marks_the_chosen_system_by_a_sign(report):
    text = report.text()
    assert "\x1b" not in text
    assert "* 1=  mini × hnsw M=16 ef=100" in text
    assert text.count("* 1=") == 1
    assert "linear gain" in text
    assert str(report) == text


@pytest.mark.parametrize("width", [80, 120])
def test_report_fits_a_terminal(report, width):
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(report)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any("2  palette × exact" in line for line in lines)
    assert any("* 1=  mini × hnsw M=16" in line for line in lines)


def test_language_table_has_a_row_for_each_language(report):
    rows = report.language_rows()
    assert [row[:2] for row in rows] == [["de", "50"], ["en", "150"]]
    assert all(any(cell.endswith("*") for cell in row[2:]) for row in rows)
    assert "ndcg@10 by language" in report.text(languages=True)


def test_html_is_self_contained_and_escaped():
    page = Report([result(Config(model="onnx:<b>&", model_id="onnx-1"))])._repr_html_()
    assert "onnx:&lt;b&gt;&amp; × exact" in page
    assert "<b>" not in page
    assert "http" not in page


def test_markdown_is_a_table(report):
    lines = report.markdown().splitlines()
    assert lines[0] == "**search_quality on demo@r1**"
    assert lines[2].startswith("| rank | system | ndcg@10")
    assert lines[3].startswith("| ---: | :--- | ---: |")
    assert sum(line.startswith("| ") for line in lines) == 5
    assert sum("| \\* 1= | mini × hnsw" in line for line in lines) == 1


def test_configs_of_one_name_are_told_apart_by_their_id():
    report = Report([result(MINI), result(WIDE, noise=1)])
    names = {row[1] for row in report.rows()}
    assert names == {f"mini × exact ({c.config_id[:6]})" for c in (MINI, WIDE)}


def test_choice_is_the_fastest_of_the_best_group(report):
    assert choose(report.groups[0]).config == GRAPH
    assert report.chosen is choose(report.groups[0])


def test_choice_among_equally_fast_ones_is_the_smallest():
    small = result(WIDE, noise=2, ms=1.3, mib=0.5)
    report = Report([result(MINI, noise=1, ms=1.0, mib=2.0), small])
    assert choose(report.groups[0]) is small


def test_choice_ignores_a_faster_system_that_is_worse():
    report = Report([result(MINI, ms=50.0), result(PALETTE, shift=0.3, ms=0.01)])
    assert report.chosen.config == MINI


def test_choice_from_nothing_is_refused():
    with pytest.raises(InputError, match="at least one result, got none"):
        choose([])


def test_report_keeps_to_comparable_results():
    with pytest.raises(InputError, match="one dataset, revision"):
        Report([result(MINI), result(GRAPH, revision="r2")])
    with pytest.raises(InputError, match="each config once"):
        Report([result(MINI), result(MINI)])
    with pytest.raises(InputError, match="one dataset, revision"):
        Report([])


@pytest.mark.parametrize("surroundings", [{"code": "0.0.9+1"}, {"machine": "a slow one"}])
def test_results_of_other_code_or_of_another_machine_are_not_put_side_by_side(surroundings):
    with pytest.raises(InputError, match="code and machine"):
        Report([result(MINI), result(GRAPH, **surroundings)])


def test_promotion_writes_the_config_and_its_evidence(report, tmp_path):
    path = report.promote(tmp_path / "results" / "chosen.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    assert Config.load(path) == GRAPH
    assert values["config_id"] == GRAPH.config_id
    assert values["dataset"] == "demo"
    assert values["dataset_revision"] == "r1"
    assert values["date"] == "2026-01-01"
    assert values["evidence"]["headline"] == "ndcg@10"
    assert values["evidence"]["metrics"]["p50_ms"] == 0.2
    assert len(values["evidence"]["intervals"]["ndcg@10"]) == 3
    assert [tied["name"] for tied in values["tied_with"]] == ["mini × exact"]
    assert values["environment"]["code"] == code_version()
    assert [other.name for other in path.parent.iterdir()] == ["chosen.json"]


def test_promotion_of_a_clearly_worse_config_is_refused_unless_forced(tmp_path):
    path = tmp_path / "chosen.json"
    promote(result(MINI), path)
    worse = result(PALETTE, shift=0.4)
    with pytest.raises(
        ConflictError, match=r"palette × exact with ndcg@10 .* against mini × exact"
    ):
        promote(worse, path)
    assert Config.load(path) == MINI
    promote(worse, path, force=True)
    assert Config.load(path) == PALETTE


def test_promotion_replaces_what_overlaps_or_is_of_other_data(tmp_path):
    path = tmp_path / "chosen.json"
    promote(result(MINI), path)
    promote(result(GRAPH, noise=1), path)
    assert Config.load(path) == GRAPH
    promote(result(PALETTE, shift=0.4, revision="r2"), path)
    assert Config.load(path) == PALETTE


def test_promotion_over_another_file_is_refused(tmp_path):
    path = tmp_path / "chosen.json"
    path.write_text('{"name": "something else"}', encoding="utf-8")
    with pytest.raises(DataError, match="must hold a chosen config"):
        promote(result(MINI), path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"name": "something else"}


def test_saved_results_make_the_same_report(report, tmp_path):
    for one in report.results:
        one.save(tmp_path)
    found = load_report(tmp_path / "search_quality" / "demo")
    assert found.text() == report.text()


def test_report_of_a_folder_leaves_out_older_data(tmp_path):
    result(MINI, revision="r1", date="2026-01-01").save(tmp_path)
    result(PALETTE, revision="r2", date="2026-02-01").save(tmp_path)
    found = load_report(tmp_path / "search_quality" / "demo")
    assert [one.config for one in found.results] == [PALETTE]
    assert "other data, code or machines: 1, left out" in found.caption


@pytest.mark.parametrize("surroundings", [{"code": "0.0.9+1"}, {"machine": "a slow one"}])
def test_report_of_a_folder_is_of_one_code_and_machine_and_says_so(tmp_path, surroundings):
    result(MINI, **surroundings).save(tmp_path)
    result(GRAPH, date="2026-02-01").save(tmp_path)
    result(PALETTE, date="2026-02-02").save(tmp_path)
    found = load_report(tmp_path / "search_quality" / "demo")
    assert {one.config for one in found.results} == {GRAPH, PALETTE}
    assert "other data, code or machines: 1, left out" in found.caption


def test_caption_is_silent_where_nothing_was_left_out(report):
    assert "left out" not in report.caption


def test_empty_folder_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="must hold results, got none"):
        load_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "schema 99"),
        ({"config_id": "000000000000"}, "of another config"),
        ({"config": {"index": "tree"}}, "index must be one of"),
        ({"environment": {"code": "1", "date": "2026-01-01"}}, "environment without machine"),
        ({"photos": {"n_photos": 1}}, "photos without hash"),
    ],
)
def test_damaged_result_is_named(tmp_path, change, message):
    path = result(MINI).save(tmp_path)
    values = json.loads(path.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_result(path)


def test_result_without_its_scores_is_named(tmp_path):
    path = result(MINI).save(tmp_path)
    path.with_suffix(".scores.tsv").unlink()
    with pytest.raises(DataError, match="must hold a result"):
        load_result(path)
