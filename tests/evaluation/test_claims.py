"""Numbers in prose: the checker in the act, and the repository's own prose held to its results."""

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.evaluation.reporting.claims import check_file, check_text
from searchlab.evaluation.reporting.lookup import Results, pick
from searchlab.evaluation.reporting.tables import stale_tables

ROOT = Path(__file__).parents[2]
CARD = ROOT / "searchlab" / "models" / "mini_data" / "MODEL_CARD.md"
PROSE = [
    ROOT / "README.md",
    CARD,
    *sorted((ROOT / "results").rglob("README.md")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
]


@pytest.fixture
def results(tmp_path):
    values = {
        "n": 5998,
        "metrics": {
            "recall@10": 0.686361,
            "p50_ms": 1.25,
            "success@5/l2": 0.5,
            "theirs / ours": 3.0,
        },
        "intervals": {"ndcg@10": {"macro": [0.4538, 0.4372, 0.4711]}},
        "rows": [{"ef": 10, "of": "hnsw", "r": 0.91}, {"ef": 20, "of": "hnsw", "r": 0.964}],
        "mean": {"mean": 0.25, "low": 0.2, "high": 0.3},
        "spread": {"mean": 0.2, "interval": [0.1, 0.3]},
        "config": {"model": "mini", "index": "exact"},
        "name": "mini × exact",
    }
    write(tmp_path / "a" / "demo" / "one.json", values)
    other = values | {"config": {"model": "mini", "index": "hnsw"}, "metrics": {"p50_ms": 0.25}}
    write(tmp_path / "a" / "demo" / "two.json", other)
    tried = "what\tR@1/5/10\tMRR\none, two: half\t19.8 / 46.7 / 60.1\t33.7\nthree\t\t\n"
    (tmp_path / "a" / "tried.tsv").write_text(tried, encoding="utf-8")
    return Results(tmp_path)


def write(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def problems(text, results, **kwargs):
    return [str(problem) for problem in check_text(text, results, **kwargs)]


# -- the repository ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_number_in_prose_agrees_with_its_source(path):
    found = check_file(path, Results(ROOT / "results"))
    assert [str(problem) for problem in found] == []


@pytest.mark.parametrize(
    "path", [p for p in PROSE if p.suffix == ".md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_generated_table_says_what_the_results_say(path):
    assert stale_tables(path, Results(ROOT / "results")) == []


def test_a_mutated_result_and_a_stale_number_are_caught(tmp_path):
    """A result that was changed, and a number that was not kept up."""
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("*.tsv"))
    readme = tmp_path / "README.md"
    shutil.copy(ROOT / "README.md", readme)
    assert check_file(readme, Results(tmp_path / "results")) == []
    path = tmp_path / "results" / "adapt" / "flickr8k" / "migrate.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["migrate"]["new success@10"] -= 0.02
    write(path, values)
    (mutated,) = check_file(readme, Results(tmp_path / "results"))
    assert "migrate.new success@10" in mutated.says
    stale = re.sub(r"0\.\d+(?=<!-- = adapt)", "0.999", readme.read_text(encoding="utf-8"), count=1)
    readme.write_text(stale, encoding="utf-8")
    (found,) = check_file(readme, Results(ROOT / "results"))
    assert "the text says 0.999" in found.says


# -- numbers and sources ----------------------------------------------------------------------

HELD = [
    "It finds 68.6 %<!-- = a/demo/one.json metrics.recall@10 x100 --> of them.",
    "It finds **69 %**<!-- = a/demo/one.json metrics.recall@10 x100 --> of them.",
    "0.454 [0.437, 0.471]<!-- = a/demo/one.json intervals.ndcg@10.macro -->",
    "0.25 (0.20 to 0.30)<!-- = a/demo/one.json mean -->",
    "with about 6,000 photos<!-- about a/demo/one.json n -->",
    "with 5,998 photos<!-- = a/demo/one.json n -->",
    "under 2 ms<!-- below a/demo/one.json metrics.p50_ms -->",
    "more than 0.96<!-- above a/demo/one.json rows[ef=20].r -->",
    "5.0 times<!-- = a/demo/one.json metrics.p50_ms / a/demo/two.json metrics.p50_ms -->",
    "0.054 more<!-- = a/demo/one.json rows[of=hnsw & ef=20].r - rows[0].r -->",
    "0.5<!-- = a/demo/one.json metrics.success@5/l2 -->",
    "3.0 times<!-- = a/demo/one.json metrics.theirs / ours -->",
    "1.25 ms<!-- = a/demo/*.json[config.index=exact]\n metrics.p50_ms -->",
    "−1.00 ms<!-- = a/demo/two.json metrics.p50_ms - a/demo/one.json metrics.p50_ms -->",
    "60.1 %<!-- = a/tried.tsv [what=one, two: half].R@1/5/10[2] -->",
    "19.8 / 46.7 / 60.1 %<!-- = a/tried.tsv [0].R@1/5/10 -->",
    "33.7<!-- = a/tried.tsv [what=one, two: half].MRR -->",
    "0.2 (0.1 to 0.3)<!-- = a/demo/one.json spread -->",
    "a text_alpha of 1.7<!-- given: the default -->",
]


@pytest.mark.parametrize("text", HELD)
def test_a_number_that_agrees_is_no_problem(text, results):
    assert problems(text, results) == []


BROKEN = [
    ("68.5 %<!-- = a/demo/one.json metrics.recall@10 x100 -->", "says 68.6361"),
    ("68.6 %<!-- = a/demo/one.json metrics.recall@10 -->", "says 0.686361"),
    ("0.454 [0.437, 0.472]<!-- = a/demo/one.json intervals.ndcg@10.macro -->", "says 0.472"),
    ("0.454<!-- = a/demo/one.json intervals.ndcg@10.macro -->", "holds 3 numbers, got 1"),
    ("about 7,000<!-- about a/demo/one.json n -->", "says about 7,000"),
    ("under 1.25 ms<!-- below a/demo/one.json metrics.p50_ms -->", "says below 1.25"),
    ("0.97<!-- above a/demo/one.json rows[ef=20].r -->", "says above 0.97"),
    ("0.9<!-- = a/demo/one.json rows[of=hnsw].r -->", "must name one value"),
    ("0.9<!-- = a/demo/one.json rows[ef=30].r -->", "has 2 entries"),
    (
        "0.9<!-- = a/demo/one.json metrics.recall -->",
        "has recall@10, p50_ms, success@5/l2, theirs / ours",
    ),
    ("0.9<!-- = a/demo/*.json metrics.p50_ms -->", "must name one file of"),
    ("0.9<!-- = a/demo/three.json n -->", "got none"),
    ("0.9<!-- = a/tried.tsv [what=three].MRR -->", "must name a number"),
    ("0.9<!-- = a/demo/one.json name -->", "must name a number"),
    ("0.9<!-- = -->", "must say more"),
    ("0.9<!-- given: -->", "must say more"),
    ("0.9<!-- = rows[0].r -->", "must be FILE.json PATH"),
    ("0.9<!-- = a/demo/one.json n - n - n -->", "'n - n' must name one value"),
    ("no number<!-- = a/demo/one.json n -->", "must stand behind its number"),
    (f"5998 {'far ' * 11}<!-- = a/demo/one.json n -->", "must stand behind its number"),
    ("a bare 0.5", "0.5 must name its source"),
    ("some 40 % of them", "40 % must name its source"),
    ("one 5998<!-- = a/demo/one.json n --> and one 0.3", "0.3 must name its source"),
    ("| mini | 0.31 |", "0.31 must name its source"),
    ("15 %<!-- asserted: share > 0.15 -->", "must stand in an assertion"),
]


@pytest.mark.parametrize(("text", "says"), BROKEN)
def test_a_number_that_disagrees_or_has_no_source_is_named(text, says, results):
    found = problems(f"One.\nTwo.\n\n{text}\n", results)
    assert len(found) >= 1
    assert found[0].startswith("text:4: ")
    assert says in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nrun --alpha 0.5\n```",
        "the option `--alpha 0.5` and ``a ` 0.3``",
        "[paper](https://example.org/1.5) and https://example.org/2.5",
        "open_clip 3.3.0 with Python 3.11 since 2026-11-21, 1,000 photos at ndcg@10",
        "ndcg@10 [95 %], with 95 % bootstrap intervals",
        "<!-- table: leaderboard a/demo -->\n| 0.3 |\n<!-- end -->",
        "<!-- a remark on 0.5 -->",
        "## 1.2 Heading",
        "Apache-2.0 and 1 and 2,000",
    ],
)
def test_what_is_no_claim_needs_no_source(text, results):
    assert problems(text, results) == []


def test_a_range_is_two_numbers_and_no_minus(results):
    found = problems("from 0.2-0.3 on", results)
    assert [problem.split()[1] for problem in found] == ["0.2", "0.3"]


@given(value=st.floats(-1000, 1000), digits=st.integers(0, 6))
def test_a_number_printed_from_its_value_agrees_and_its_neighbours_do_not(value, digits):
    class One(Results):
        def find(self, reference):
            return value

    source = "<!-- = f.json x -->"
    assert check_text(f"{value:.{digits}f}{source}", One(".")) == []
    for step in (-2, 2):
        other = f"{value + step * 10.0**-digits:.{digits}f}"
        assert len(check_text(f"{other}{source}", One("."))) == 1


@given(text=st.text(max_size=200))
def test_any_text_can_be_checked(text):
    check_text(text, Results("nowhere"))


# -- notebooks --------------------------------------------------------------------------------


def notebook(path, markdown, code):
    cells = [
        {"cell_type": "markdown", "source": [markdown]},
        {"cell_type": "code", "source": code.splitlines(keepends=True)},
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


@pytest.mark.parametrize("number", ["0.95", "95 %"])
def test_a_notebook_may_name_an_assertion_of_its_own(tmp_path, results, number):
    text = f"Recall stays above {number}<!-- asserted: recall >= 0.95 -->."
    path = notebook(tmp_path / "05.ipynb", text, "recall = 0.97\nassert recall >= 0.95, recall\n")
    assert check_file(path, results) == []
    notebook(path, text, "recall >= 0.95\nassert recall >= 0.9")
    (problem,) = check_file(path, results)
    assert str(problem).startswith(
        "05.ipynb, cell 1:1: 'recall >= 0.95' must stand in an assertion"
    )
    notebook(path, text.replace(f"{number}<", "0.96<"), "assert recall >= 0.95")
    (problem,) = check_file(path, results)
    assert "the text says 0.96" in problem.says


@pytest.mark.parametrize(("number", "held"), [("11", True), ("12.5", False), ("20", False)])
def test_a_number_may_lie_between_the_bounds_of_its_assertion(tmp_path, results, number, held):
    text = f"At 20 it is about {number}<!-- asserted: 10 < at20 < 12 -->."
    path = notebook(tmp_path / "06.ipynb", text, "assert 10 < at20 < 12")
    assert (check_file(path, results) == []) == held


# -- looking up -------------------------------------------------------------------------------


def test_keys_may_hold_dots_spaces_and_slashes():
    values = {"new mrr@10": {"a.b": 1, "c": [2, [3]]}, "x/y": {"z": 4}}
    assert pick(values, "new mrr@10.a.b") == 1
    assert pick(values, "new mrr@10.c[1][0]") == pick(values, "new mrr@10.c.1.0") == 3
    assert pick(values, "x/y.z") == 4
    assert pick(values, ".") is values


def test_a_path_with_two_readings_is_refused():
    with pytest.raises(InputError, match="got 2 readings"):
        pick({"a.b": 1, "a": {"b": 2}}, "a.b")


def test_a_file_that_is_no_json_is_named(tmp_path):
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.json must be a file of results"):
        Results(tmp_path).find("bad.json a")
