"""Tables of Markdown that are made from result files."""

import json
from dataclasses import replace

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.reporting.lookup import Results
from searchlab.evaluation.reporting.tables import render, stale_tables, write_tables
from tests.support.made_results import MINI, PALETTE, result


@pytest.fixture
def results(tmp_path):
    for one in (result(MINI), result(PALETTE, shift=0.3)):
        one.save(tmp_path)
    for name, ece in (("b", 0.125), ("a", 0.25)):
        values = {
            "name": name,
            "metrics": {"ece": ece},
            "n": 12000,
            "rows": [
                {"of": "hnsw | 1", "r": 0.91, "i": [0.5, 0.25, 0.75], "ok": None},
                {"of": "exact", "r": 1.0, "i": {"mean": 0.5, "low": 0, "high": 1}, "ok": True},
            ],
            "langs": {"de": {"r": 0.5, "q": 3}, "en": {"r": 0.75, "q": 1000}},
        }
        path = tmp_path / "lab" / "demo" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    return Results(tmp_path)


def cells(text):
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()]


def test_a_leaderboard_is_that_of_the_report(results):
    lines = render("leaderboard search_quality/demo", results).splitlines()
    assert lines[0].startswith("| rank | system | ndcg@10 [95 %] |")
    assert sum(line.startswith("| ") for line in lines) == 4
    assert "200 queries about 100 of 349 photos. Quality" in lines[-1]


def test_a_leaderboard_says_where_its_judgments_come_from(tmp_path):
    judged = replace(result(MINI), judged_by={"eye": 20, "name": 1500})
    judged.save(tmp_path)
    caption = render("leaderboard search_quality/demo", Results(tmp_path)).splitlines()[-1]
    assert "100 of 349 photos; relevant photos judged 1,500 by name, 20 by eye. Qual" in caption


def test_languages_and_frontier_have_a_row_each(results):
    assert [row[0] for row in cells(render("languages search_quality/demo", results))] == [
        *("language", ":---", "de", "en"),
    ]
    rows = cells(render("frontier search_quality/demo", results))
    assert [row[0] for row in rows[2:]] == ["mini × exact", "palette × exact"]
    assert [row[-1] for row in rows[2:]] == ["yes", ""]


def test_records_become_rows_with_decimals_percent_headings_and_intervals(results):
    spec = "rows lab/demo/a.json rows of=what r:1% i:2=mean_of_all ok"
    assert cells(render(spec, results)) == [
        ["what", "r", "mean of all", "ok"],
        [":---", "---:", "---:", "---:"],
        ["hnsw / 1", "91.0 %", "0.50 [0.25, 0.75]", "-"],
        ["exact", "100.0 %", "0.50 [0.00, 1.00]", "True"],
    ]


def test_a_dict_of_records_is_named_by_its_keys_and_files_make_rows(results):
    assert cells(render("rows lab/demo/a.json langs key=lang r:3 q", results))[2:] == [
        ["de", "0.500", "3"],
        ["en", "0.750", "1,000"],
    ]
    assert cells(render("files lab/demo/*.json name metrics.ece:2 n", results))[2:] == [
        ["a", "0.25", "12,000"],
        ["b", "0.12", "12,000"],
    ]


def test_contents_link_every_file_of_every_benchmark(results):
    rows = cells(render("contents", results))[2:]
    assert [row[:2] for row in rows] == [["lab", "demo"], ["search_quality", "demo"]]
    assert rows[0][2] == "[a](lab/demo/a.json), [b](lab/demo/b.json)"
    assert "[mini × exact](search_quality/demo/" in rows[1][2]


def test_a_record_may_lack_what_another_has(results):
    path = results.folder / "lab" / "demo" / "a.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    del values["rows"][1]["r"]
    path.write_text(json.dumps(values), encoding="utf-8")
    assert [row[1] for row in cells(render("rows lab/demo/a.json rows of r:2", results))] == [
        *("r", "---:", "0.91", "-"),
    ]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("pie a", "a table must be"),
        ("leaderboard", "a table must be"),
        ("rows lab/demo/a.json rows", "a table must be"),
        ("rows lab/demo/a.json n r", "must name a list or dict of records"),
        ("rows lab/demo/a.json rows x", "'x' must name one value of a record"),
        ("files lab/none/*.json name", "a table must be"),
    ],
)
def test_what_cannot_be_made_is_refused(results, spec, says):
    with pytest.raises(InputError, match=says):
        render(spec, results)


def test_a_leaderboard_of_nothing_is_refused(results):
    with pytest.raises(NotFoundError, match="must hold results"):
        render("leaderboard search_quality/none", results)


def test_tables_are_written_in_place_and_stale_ones_are_found(results, tmp_path):
    path = tmp_path / "README.md"
    spec = "files lab/demo/*.json name metrics.ece:3"
    text = f"# One\n\n<!-- table: {spec} -->\nold\n<!-- end -->\n\nTwo \\* three\n"
    path.write_text(text, encoding="utf-8")
    assert stale_tables(path, results) == [spec]
    assert write_tables(path, results) == []
    assert stale_tables(path, results) == []
    written = path.read_text(encoding="utf-8")
    assert written == text.replace("old\n", render(spec, results))
    mutated = results.folder / "lab" / "demo" / "a.json"
    values = json.loads(mutated.read_text(encoding="utf-8"))
    mutated.write_text(json.dumps(values | {"metrics": {"ece": 0.26}}), encoding="utf-8")
    assert stale_tables(path, Results(tmp_path)) == [spec]
