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
CARD = ROOT / "searchlab" / "models" / "mini" / "data" / "MODEL_CARD.md"
PROSE = [
    ROOT / "README.md",
    CARD,
    ROOT / "searchlab" / "cluster" / "README.md",
    ROOT / "results" / "LIMITS.md",
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


def noted(text, *claims):
    """Put claims, a phrase and its sources each, at the end of a text."""
    lines = ["", "<!-- numbers: where they come from", ""]
    for phrase, *sources in claims:
        lines += [phrase, *(f"    {source}" for source in sources), ""]
    return "\n".join([text, *lines, "-->"])


def problems(text, results, *claims, **kwargs):
    whole = noted(text, *claims) if claims else text
    return [str(problem) for problem in check_text(whole, results, **kwargs)]


# -- the repository ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_number_in_prose_agrees_with_its_source(path):
    results = Results(ROOT / "results")
    assert [str(problem) for problem in check_file(path, results)] == []


@pytest.mark.parametrize(
    "path", [p for p in PROSE if p.suffix == ".md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_generated_table_says_what_the_results_say(path):
    assert stale_tables(path, Results(ROOT / "results")) == []


@pytest.mark.slow
def test_a_mutated_result_and_a_stale_number_are_caught(tmp_path):
    """A result that was changed, and a number that was not kept up."""
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("*.tsv"))
    readme = tmp_path / "results" / "README.md"
    assert check_file(readme, Results(tmp_path / "results")) == []
    path = tmp_path / "results" / "adapt" / "flickr8k" / "migrate.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["migrate"]["new success@10"] -= 0.02
    write(path, values)
    (mutated,) = check_file(readme, Results(tmp_path / "results"))
    assert "migrate.new success@10" in mutated.message
    text = readme.read_text(encoding="utf-8")
    stale = re.sub(r"(mrr@10\s+)0\.\d+", r"\g<1>0.999", text, count=1)
    readme.write_text(stale, encoding="utf-8")
    (problem,) = check_file(readme, Results(ROOT / "results"))
    assert "the text says 0.999, adapt/flickr8k/curve.json " in problem.message
    assert "0.999" in stale.splitlines()[problem.line - 1]


# -- numbers and sources ----------------------------------------------------------------------

ONE = "a/demo/one.json"
TWO = "a/demo/two.json"
HELD = [
    ("It finds 68.6 % of them.", "finds {} of", f"= {ONE} metrics.recall@10 x100"),
    ("It finds **69 %** of them.", "finds **{}**", f"= {ONE} metrics.recall@10 x100"),
    ("0.454 [0.437, 0.471]", "{} [{}, {}]", f"= {ONE} intervals.ndcg@10.macro"),
    ("0.25 (0.20 to 0.30)", "{} ({} to {})", f"= {ONE} mean"),
    ("with about 6,000 photos", "about {} photos", f"about {ONE} n"),
    ("with 5,998 photos", "with {}", f"= {ONE} n"),
    ("under 2 ms", "under {} ms", f"below {ONE} metrics.p50_ms"),
    ("more than 0.96", "than {}", f"above {ONE} rows[ef=20].r"),
    ("5.0 times", "{} times", f"= {ONE} metrics.p50_ms / {TWO} metrics.p50_ms"),
    ("0.054 more", "{} more", f"= {ONE} rows[of=hnsw & ef=20].r - rows[0].r"),
    ("a 0.5", "a {}", f"= {ONE} metrics.success@5/l2"),
    ("3.0 times", "{} times", f"= {ONE} metrics.theirs / ours"),
    ("1.25 ms", "{} ms", "= a/demo/*.json[config.index=exact]  metrics.p50_ms"),
    ("−1.00 ms", "{} ms", f"= {TWO} metrics.p50_ms - {ONE} metrics.p50_ms"),
    ("60.1 %", "{}", "= a/tried.tsv [what=one, two: half].R@1/5/10[2]"),
    ("19.8 / 46.7 / 60.1 %", "{} / {} / {}", "= a/tried.tsv [0].R@1/5/10"),
    ("MRR of 33.7", "of {}", "= a/tried.tsv [what=one, two: half].MRR"),
    ("0.2 (0.1 to 0.3)", "{} ({} to {})", f"= {ONE} spread"),
    ("a `text_alpha` of 1.7", "a `text_alpha` of {}", "given: the default"),
    ("from 0.91\nto 0.964", "from {} to {}", f"= {ONE} rows[0].r", f"= {ONE} rows[1].r"),
    ("| mini | 5,998 | 1.25 |", "| mini | {} | {} |", f"= {ONE} n", f"= {ONE} metrics.p50_ms"),
]


@pytest.mark.parametrize("claim", HELD, ids=lambda claim: claim[0])
def test_a_number_that_agrees_is_no_problem(claim, results):
    text, phrase, *sources = claim
    assert problems(text, results, (phrase, *sources)) == []


BROKEN = [
    ("68.5 %", f"= {ONE} metrics.recall@10 x100", "the text says 68.5 %"),
    ("68.5 %", f"= {ONE} metrics.recall@10 x100", "metrics.recall@10 x100 says 68.6361"),
    ("68.6 %", f"= {ONE} metrics.recall@10", "says 0.686361"),
    ("0.454", f"= {ONE} intervals.ndcg@10.macro", "holds 3 numbers, got 1"),
    ("7,000", f"about {ONE} n", "says about 7,000"),
    ("1.25 ms", f"below {ONE} metrics.p50_ms", "says below 1.25"),
    ("0.97", f"above {ONE} rows[ef=20].r", "says above 0.97"),
    ("0.9", f"= {ONE} rows[of=hnsw].r", "must name one value"),
    ("0.9", f"= {ONE} rows[ef=30].r", "has 2 entries"),
    ("0.9", f"= {ONE} metrics.recall", "has recall@10, p50_ms, success@5/l2, theirs / ours"),
    ("0.9", "= a/demo/*.json metrics.p50_ms", "must name one file of"),
    ("0.9", "= a/demo/three.json n", "got none"),
    ("0.9", "= a/tried.tsv [what=three].MRR", "must name a number"),
    ("0.9", f"= {ONE} name", "must name a number"),
    ("0.9", "=", "must say more"),
    ("0.9", "given:", "must say more"),
    ("0.9", "= rows[0].r", "must be FILE.json PATH"),
    ("0.9", f"= {ONE} n - n - n", "'n - n' must name one value"),
    ("15 %", "asserted: share > 0.15", "must stand in an assertion"),
]


@pytest.mark.parametrize(("number", "source", "says"), BROKEN)
def test_a_number_that_disagrees_is_named_with_its_line(number, source, says, results):
    text = f"One.\nTwo.\n\nIt is {number} here.\n"
    (problem,) = problems(text, results, ("It is {}", source))
    assert problem.startswith("text:4: ")
    assert says in problem


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a bare 0.5", "0.5"),
        ("some 40 % of them", "40 %"),
        ("with 5,998 photos, one 0.3", "0.3"),
        ("| mini | 0.31 |", "0.31"),
    ],
)
def test_a_number_without_a_source_is_named_with_its_line(text, bare, results):
    bare_numbers = problems(f"with 5,998 photos\n\n{text}\n", results)
    assert bare_numbers == [f"text:3: {bare} must name its source, got none"]


@pytest.mark.parametrize(
    ("phrase", "says"),
    [
        ("of {} photos", "must stand once in the text, a number for each {}, got it 0 times"),
        ("with {} photos", "got it 2 times"),
        ("and `{}`", "got it 0 times"),
        ("5,998 photos", "must be a phrase with {} for each number"),
        ("= a/demo/one.json n", "must be a phrase with {} for each number"),
    ],
)
def test_a_phrase_that_is_not_quoted_from_the_text_is_named_with_its_line(phrase, says, results):
    text = "with 5,998 photos, with 5,998 photos, and `0.5`"
    (problem,) = problems(text, results, (phrase, f"= {ONE} n"))
    assert problem.startswith("text:5: ")
    assert says in problem


def test_each_number_of_a_phrase_has_a_source(results):
    claim = ("from {} to {}", f"= {ONE} rows[0].r")
    (problem,) = problems("from 0.91 to 0.97", results, claim)
    assert problem.endswith("'from {} to {}' must have a source for each number, got 1 source")


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
    bare_numbers = problems("from 0.2-0.3 on", results)
    assert [problem.split()[1] for problem in bare_numbers] == ["0.2", "0.3"]


@given(value=st.floats(-1000, 1000), digits=st.integers(0, 6))
def test_a_number_printed_from_its_value_agrees_and_its_neighbours_do_not(value, digits):
    class One(Results):
        def find(self, reference):
            return value

    claim = ("{}", "= f.json x")
    assert check_text(noted(f"{value:.{digits}f}", claim), One(".")) == []
    for step in (-2, 2):
        other = f"{value + step * 10.0**-digits:.{digits}f}"
        assert len(check_text(noted(other, claim), One("."))) == 1


@given(text=st.text(max_size=200))
def test_any_text_can_be_checked(text):
    check_text(text, Results("nowhere"))
    check_text(f"a 0.5\n<!-- numbers\n{text}\n-->", Results("nowhere"))


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
    text = noted(f"Recall stays above {number}.", ("above {}", "asserted: recall >= 0.95"))
    path = notebook(tmp_path / "05.ipynb", text, "recall = 0.97\nassert recall >= 0.95, recall\n")
    assert check_file(path, results) == []
    notebook(path, text, "recall >= 0.95\nassert recall >= 0.9")
    (problem,) = check_file(path, results)
    assert "05.ipynb, cell 1:1: 'recall >= 0.95' must stand in an assertion" in str(problem)
    notebook(path, text.replace(f"{number}.", "0.96."), "assert recall >= 0.95")
    (problem,) = check_file(path, results)
    assert "the text says 0.96" in problem.message


@pytest.mark.parametrize(("number", "holds"), [("11", True), ("12.5", False), ("20", False)])
def test_a_number_may_lie_between_the_bounds_of_its_assertion(tmp_path, results, number, holds):
    text = noted(f"At 20 it is about {number}.", ("about {}", "asserted: 10 < at20 < 12"))
    path = notebook(tmp_path / "06.ipynb", text, "assert 10 < at20 < 12")
    assert (check_file(path, results) == []) == holds


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
