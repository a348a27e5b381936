"""Scope of claims: what must stand beside a number, taken from the record that holds it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from searchlab.evaluation.provenance.study import TABLES
from searchlab.evaluation.reporting.claims import TABLE, check_text, read_claims
from searchlab.evaluation.reporting.lookup import Results
from searchlab.evaluation.reporting.scope import needs_of, where_of

ROOT = Path(__file__).parents[2]

SUMMARY = "scale/scenes-512/summary.json"
TEXTS, PHOTOS = "scale/spliced-256/summary.json", "scale/mixed-256/summary.json"
EMBEDDED, SERVED = "embedding/photos/compared.json", "http/demo/filters.json"
TANTIVY = "words/spliced-9/tantivy.json"
PEER = "rows[system=hnswlib & n_photos=1000000]"
OURS = "rows[system=searchlab-clustered & n_photos=1000000]"
AT = "p50_ms text random 1%"


@pytest.fixture
def results(tmp_path):
    """Records of each kind that asks for words."""
    cells = [{"share": share, "n_queries": n} for share, n in ((1.0, 100), (0.001, 4))]
    peer = {"system": "hnswlib", "n_photos": 1000000, f"one setting: {AT}": 78.0, AT: 77.0}
    ours = {"system": "searchlab-clustered", "n_photos": 1000000, "memory_mib": 5.0}
    points = [
        {"system": "hnswlib", "n_photos": 1000000, "queries": "text", "filter": "random 1%"}
        | {"p50_ms": ms, "n_queries": n}
        for ms, n in ((78.0, 9), (77.0, 41))
    ]
    indexes = [{"system": "hnswlib", "n_queries": 100, "p50_ms text at 0.99": 0.06}]
    http = {
        "granian, Litestar.64.cpu_ratio": 0.38,
        "granian, the API without searches.1.x_ratio": 4,
    }
    texts = {"parameters": {"queries": 30}, "rows": [{"texts alone p50 ms": 0.06, "photos": 9}]}
    records = {
        SUMMARY: {"rows": [peer, {**ours, "rows_mib": 7.0}], "filters": points},
        TEXTS: {"rows": [{**ours, "build_cpu_s": 31.0}]},
        PHOTOS: {"rows": [{**ours, "build_cpu_s": 25.0}]},
        "filters/clustered-9/summary.json": {"metrics": {"hnswlib / searchlab p50_ms": 63.0}},
        "filters/clustered-9/hnswlib.json": {"cells": cells},
        "index/photos-mini/summary.json": {"rows": indexes},
        "facets/drawn/1.json": {"metrics": {"us": 5.0}},
        "http/demo/servers.json": {"metrics": http, "parameters": {"base": "uvicorn, FastAPI"}},
        "calibration/flickr8k/mini.json": {"metrics": {"ece.text": 0.008}},
        "relevance/flickr8k/mini.json": {"left_out": [{"left_out": "words", "ece": 0.078}]},
        **dict.fromkeys((TANTIVY, TANTIVY.replace("tantivy", "searchlab")), texts),
        "search_quality/demo/a.json": {"config": {"model": "captions"}, "metrics": {"n": 0.2}},
        "embedding/photos/a.json": {"metrics": {"mini.1920 px": 4.0}},
        EMBEDDED: {
            "parameters": {"runs": 3, "photos": 12, "texts": 8},
            "ratios": [{"model": "mini", "photo.b1": 4.0, "text.b1": 5.0, "peak_mib": 7}],
        },
        SERVED: {
            "parameters": {"rounds": 3, "seconds": 1.0},
            "rows": [{"server": "granian", "cpu_us": 9, "sent": "a request"}],
        },
    }
    for path, values in records.items():
        benchmark, dataset, name = path.removesuffix(".json").split("/")
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        told = {"benchmark": benchmark, "dataset": dataset, "name": name}
        file.write_text(json.dumps({**told, **values}))
    return Results(tmp_path)


def problems(text, phrase, source, results):
    whole = f"{text}\n\n<!-- numbers: of this text\n\n{phrase}\n    = {source}\n-->\n"
    return [problem.message for problem in check_text(whole, results)]


HELD = [
    ("In one setting it takes 78 ms over made vectors (9 queries).", "takes {}",
     f"{SUMMARY} {PEER}.one setting: {AT}"),
    ("With the least effort it takes 77 ms over made vectors (41 queries).", "takes {}",
     f"{SUMMARY} {PEER}.{AT}"),
    ("5.0 MiB beside mapped rows, over made vectors", "{} MiB", f"{SUMMARY} {OURS}.memory_mib"),
    ("Of real text vectors (SEARCHLAB_DATASETS) 31.0 s", ") {} s", f"{TEXTS} {OURS}.build_cpu_s"),
    ("Of vectors mixed of two real ones (SEARCHLAB_DATASETS) 25.0 s", ") {} s",
     f"{PHOTOS} {OURS}.build_cpu_s"),
    ("63 times (geometric mean down to 0.1%-ish, 0.10 %), 4 to 100 queries, made vectors.",
     "{} times", "filters/clustered-9/summary.json metrics.hnswlib / searchlab p50_ms"),
    ("Real ones: 0.06 ms over real photos at the least effort (100 queries), SEARCHLAB_DATASETS",
     ": {} ms", "index/photos-mini/summary.json rows[system=hnswlib].p50_ms text at 0.99"),
    ("5.0 us over made records", "{} us", "facets/drawn/1.json metrics.us"),
    ("On the demo a stub costs 0.38 of FastAPI's over 64 connections.", "costs {}",
     "http/demo/servers.json metrics.granian, Litestar.64.cpu_ratio"),
    ("Bundled: without its search it costs 4.0 times FastAPI's over one connection. It is bundled",
     "costs {}", "http/demo/servers.json metrics.granian, the API without searches.1.x_ratio"),
    ("On `flickr8k` (SEARCHLAB_DATASETS), fitted again on the same set, it is 0.008.", "is {}",
     "calibration/flickr8k/mini.json metrics.ece.text"),
    ("On `flickr8k` (SEARCHLAB_DATASETS), with words left out, it is 0.078.", "is {}",
     "relevance/flickr8k/mini.json left_out[left_out=words].ece"),
    ("Of the demo, by what `mini` wrote: 0.2", ": {}", "search_quality/demo/a.json metrics.n"),
    ("4.0 times as many drawn ones", "{} times", "embedding/photos/a.json metrics.mini.1920 px"),
]  # fmt: skip
WORDS = (
    "made vectors",
    "9 queries",
    "41 queries",
    "one setting",
    "least effort",
    "mapped",
    "0.10 %",
    "geometric mean",
    "4 to 100 queries",
    "real photos",
    "real text vectors",
    "mixed of two real ones",
    "SEARCHLAB_DATASETS",
    "100 queries",
    "made records",
    "stub",
    "FastAPI",
    "64 connections",
    "without its search",
    "one connection",
    "fitted again on the same",
    "left out",
    "`flickr8k`",
    "`mini` wrote",
    "demo",
    "drawn",
)


@pytest.mark.parametrize("claim", HELD, ids=lambda claim: claim[0][:40])
def test_a_sentence_with_its_scope_holds_and_without_any_word_of_it_fails(claim, results):
    text, phrase, source = claim
    flagged = [one for one in problems(text, phrase, source, results) if "source, got" not in one]
    assert flagged == []
    tried = [word for word in WORDS if word in text]
    assert tried
    for word in tried:
        bare = text.replace(word, "something").replace("Bundled", "B").replace("bundled", "b")
        assert any("must stand in its" in one for one in problems(bare, phrase, source, results))


def test_the_words_must_stand_in_the_very_sentence(results):
    source = "facets/drawn/1.json metrics.us"
    (problem,) = problems("Of made records. It takes 5.0 us.", "takes {}", source, results)
    assert problem == (
        "5.0: 'made records' or 'made photos' or 'made library' must stand in its sentence: "
        "the records are drawn at random"
    )
    assert (
        problems("It takes 5.0 us, e.g. of made records. Yes.", "takes {}", source, results) == []
    )


def test_words_of_another_list_item_or_section_do_not_count(results):
    source = "search_quality/demo/a.json metrics.n"
    text = "# A\n\n- By what `mini` wrote of the demo.\n- It is 0.2 here.\n"
    assert len(problems(text, "is {}", source, results)) == 2
    text = "# A\n\nBy what `mini` wrote of the demo.\n\nIt is 0.2 here.\n"
    assert problems(text, "is {}", source, results) == []
    text = "# A\n\nBy what `mini` wrote of the demo.\n\n## B\n\nIt is 0.2 here.\n"
    assert len(problems(text, "is {}", source, results)) == 2


def test_the_section_of_a_generated_table_names_its_ground(results):
    table = "<!-- table: rows facets/drawn/1.json rows a b -->\n| 5 |\n<!-- end -->\n"
    assert check_text(f"# A\n\nMade records: of made records.\n\n{table}", results) == []
    (problem,) = check_text(f"Made records, made records.\n\n# A\n\n{table}", results)
    assert "the table of facets/drawn/1.json: 'made records'" in problem.message


def test_a_table_of_peers_times_says_of_how_many_queries_they_are_medians(results):
    shown = f'rows[system=hnswlib] system "{AT}=ms"'
    table = f"<!-- table: rows {SUMMARY} {shown} -->\n| 77 |\n<!-- end -->\n"
    told = "# A\n\nOver made vectors, medians of 41 queries:\n\n"
    assert check_text(told + table, results) == []
    (problem,) = check_text(told.replace("41", "some") + table, results)
    assert "'41 queries' must stand in its section" in problem.message
    assert check_text(told.replace("41", "some") + table.replace(AT, "n_photos"), results) == []


def test_a_table_of_another_text_index_says_of_how_many_queries_its_times_are_medians(results):
    shown = 'query "texts alone p50 ms:3=ms"'
    table = f"<!-- table: rows {TANTIVY} rows {shown} -->\n| 0.06 |\n<!-- end -->\n"
    told = "# A\n\nOver made vectors (SEARCHLAB_DATASETS), medians of 30 queries:\n\n"
    assert check_text(told + table, results) == []
    (problem,) = check_text(told.replace("30", "some") + table, results)
    assert "'30 queries' must stand in its section" in problem.message
    untimed = table.replace("texts alone p50 ms", "photos")
    assert check_text(told.replace("30", "some") + untimed, results) == []
    ours = table.replace("tantivy", "searchlab")
    assert check_text(told.replace("30", "some") + ours, results) == []


@pytest.mark.parametrize(
    ("file", "row", "shown", "cell", "words"),
    [
        (EMBEDDED, "ratios", "model photo.b1:1=photos", "4.0", "3 runs over 12 photos"),
        (EMBEDDED, "ratios", "model text.b1:1=texts", "5.0", "3 runs over 8 texts"),
        (EMBEDDED, "ratios", "model peak_mib", "7", ""),
        (SERVED, "rows", "server cpu_us:0=us", "9", "3 rounds of 1 s"),
        (SERVED, "rows", "server sent", "a request", ""),
    ],
)
def test_a_table_of_times_says_how_often_and_over_how_many_they_were_taken(
    results, file, row, shown, cell, words
):
    table = f"<!-- table: rows {file} {row} {shown} -->\n| {cell} |\n<!-- end -->\n"
    told = f"# A\n\nOver the bundled photos, medians of {words}:\n\n"
    assert check_text(told + table, results) == []
    found = check_text("# A\n\nOver the bundled photos:\n\n" + table, results)
    assert [f"{words!r} must stand in its section" in one.message for one in found] == (
        [True] if words else []
    )


PAGES = sorted((ROOT / "results").rglob("README.md"))
EACH = {"commit", "manifest.commit", "where"}  # columns by which each row says its own


def commits_of(spec, results):
    """Return the commits that the rows of a generated table were measured at."""
    kind, *words = shlex.split(spec)
    paths = []
    if kind in ("leaderboard", "languages", "frontier"):
        paths = results.files(f"{words[0]}/*.json")
    elif kind == "files":
        paths = results.files(words[0])
    elif kind == "rows" and words[1] in ("rows", "plan") and Path(words[0]).stem in TABLES:
        own = {row.get("system", row.get("part")) for row in results.find(f"{words[0]} rows")}
        beside = results.files(f"{Path(words[0]).parent}/*.json")
        values = ((path, results.values(path)) for path in beside if path.stem not in TABLES)
        paths = [path for path, one in values if {one.get("system"), part_of(one)} & own]
    return {results.values(path)["manifest"]["commit"] for path in paths}


def part_of(values):
    parameters = values.get("parameters", {})
    return parameters.get("part") or parameters.get("of") or values["name"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_table_of_several_states_of_the_code_names_the_commit_of_each_row(page):
    results = Results(ROOT / "results")
    text = page.read_text(encoding="utf-8")
    specs = [table["spec"] for table in TABLE.finditer(text)]
    mixed = [spec for spec in specs if len(commits_of(spec, results)) > 1]
    silent = [s for s in mixed if not EACH & {w.split("=")[0] for w in shlex.split(s)}]
    assert silent == []
    if page.parent == ROOT / "results":
        assert len(mixed) > 1


CARD = ROOT / "searchlab" / "models" / "mini" / "data" / "MODEL_CARD.md"
FINDING = re.compile(r"ndcg@|nDCG@|success@|mrr@|precision@|shipped\.json")


def quality_tables(text):
    """Yield the tables of how well photos are found, each with the prose since the last table."""
    end = 0
    for table in TABLE.finditer(text):
        spec = table["spec"]
        if spec.startswith("leaderboard") or (FINDING.search(spec) and "reading/" not in spec):
            yield table["spec"], text[end : table.end()]
        end = table.end()


@pytest.mark.parametrize("page", [ROOT / "results" / "README.md", CARD], ids=lambda p: p.stem)
def test_every_table_of_quality_says_whether_its_ground_is_home_or_abroad(page):
    tables = list(quality_tables(page.read_text(encoding="utf-8")))
    silent = [spec for spec, near in tables if not re.search(r"\b([Hh]ome|[Aa]broad)\b", near)]
    assert silent == []
    assert len(tables) > 5
    assert where_of("flickr8k-described") == "home"
    assert where_of("demo-everyday") == where_of("coco-judge") == "abroad"


@pytest.mark.parametrize("benchmark", ["filters", "index"])
def test_tables_of_speed_have_real_vectors_and_made_ones(benchmark):
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    paths = re.findall(rf"table: rows {benchmark}/(\S+)/summary", text)
    made = [path.startswith(("clustered-", "smooth-", "scenes-")) for path in paths]
    assert not made[0]  # real ones first
    assert any(made)


@pytest.mark.slow
def test_a_claim_of_the_results_fails_when_its_scope_is_taken_out():
    """The repository's own page: no claim of a made vector stands without these words."""
    results = Results(ROOT / "results")
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    flagged = check_text(text.replace("made vectors", "vectors"), results)
    assert len([one for one in flagged if "'made vectors' must stand" in one.message]) > 20
    flagged = check_text(text.replace("SEARCHLAB_DATASETS", "it"), results)
    assert len([one for one in flagged if "'SEARCHLAB_DATASETS' must" in one.message]) > 20
    asked = [needs_of(rest, results) for one in read_claims(text) for _, rest in one.sources]
    assert sum(map(bool, asked)) > 60
