import json
import re

import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab.cli import searchlab
from searchlab.errors import ConflictError, InputError, NotFoundError, SearchlabError
from searchlab.evaluation.datasets import ENVIRONMENT

SHADES = {"red": "#e50000", "green": "#15b01a", "blue": "#0343df", "white": "#ffffff"}


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    """A folder of one's own with four photos, asked for in two languages."""
    folder = tmp_path_factory.mktemp("own") / "shades"
    folder.mkdir()
    names = {"en": SHADES, "de": ("rot", "grün", "blau", "weiß")}
    queries, qrels, records = ["query_id\tlang\ttext"], ["query_id\tphoto_id\trelevance"], []
    for number, (name, shade) in enumerate(SHADES.items()):
        Image.new("RGB", (32, 24), shade).save(folder / f"{name}.png")
        records.append({"file": f"{name}.png", "source": "shades", "source_photo_id": name})
        for lang, words in names.items():
            queries.append(f"{lang}-{name}\t{lang}\t{list(words)[number]}")
            qrels.append(f"{lang}-{name}\t{name}.png\t1")
    (folder / "photos.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "queries.tsv").write_text("\n".join([*queries, ""]), encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join([*qrels, ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words):
        return CliRunner().invoke(searchlab, [str(word) for word in words])

    return call


@pytest.fixture
def evaluate(run, shades, cache, tmp_path):
    """Evaluate palette on the dataset of one's own, with further words."""

    def call(*words):
        return run("evaluate", "--dataset", shades, "--out", tmp_path, "--data", cache, *words)

    return call


@pytest.mark.slow
def test_datasets_are_listed_with_what_is_in_them_or_why_they_are_not_here(run):
    done = run("datasets")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    demo = next(line for line in lines if line.split()[:1] == ["demo"]).split()
    assert demo[:3] == ["demo", "text", "602"]
    assert any(line.split()[:2] == ["demo-similar", "photo"] for line in lines)
    assert "Not here: stamps; dataset 'stamps' does not ship with searchlab; set" in done.stdout
    assert done.stdout.count("'flickr8k' does not ship") == 1


def test_models_and_indexes_are_measured_and_the_leaderboard_printed(evaluate, tmp_path):
    done = evaluate("--model", "palette", "--index", "exact", "--index", "hnsw")
    assert done.exit_code == 0, done.output
    assert "search_quality on shades@" in done.stdout
    assert "palette × exact" in done.stdout
    assert "palette × hnsw" in done.stdout
    assert "8 queries about 4 of 4 photos" in done.stdout
    assert "recorded in" in done.stderr
    assert len(list(tmp_path.glob("search_quality/shades/*.json"))) == 2


def test_what_is_recorded_is_not_measured_again_unless_forced(evaluate, tmp_path):
    evaluate("--model", "palette")
    (path,) = tmp_path.rglob("*.json")
    before = path.stat().st_mtime_ns
    evaluate("--model", "palette")
    assert path.stat().st_mtime_ns == before
    evaluate("--model", "palette", "--force")
    assert path.stat().st_mtime_ns > before


def test_languages_and_a_sample_of_each_are_taken(evaluate, tmp_path):
    done = evaluate("--model", "palette", "--languages", "en", "--per-language", 3)
    assert "3 queries about 3 of 4 photos" in done.stdout
    (path,) = tmp_path.rglob("*.json")
    assert list(json.loads(path.read_text("utf-8"))["intervals"]["ndcg@10"]["langs"]) == ["en"]


def test_metrics_and_configurations_of_a_file_are_taken(evaluate, tmp_path):
    evaluate("--model", "palette")
    (path,) = tmp_path.rglob("*.json")
    done = evaluate("--config", path, "--metric", "mrr@5", "--metric", "recall@20")
    assert done.exit_code == 0, done.output
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["parameters"]["metrics"] == ["mrr@5", "recall@20"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "nonsense"], "a dataset must be one of"),
        (["--model", "nonsense"], "a model spec must begin with"),
        (["--index", "nonsense"], "index must be one of exact, hnsw"),
        (["--metric", "nonsense@3"], "a metric must be one of"),
        (["--languages", "en,xx"], "got 'xx'"),
        (["--out", "/proc/none/here"], "--out must be a folder that can be written"),
        (["--languages", ""], "--languages must be among"),
        (["--per-language", "0"], "--per-language must be an integer from 1"),
        (["--config", "/none.json"], "must hold a config as JSON"),
    ],
)
def test_bad_words_are_refused_before_anything_is_measured(evaluate, tmp_path, words, message):
    done = evaluate("--model", "palette", *words)
    assert isinstance(done.exception, SearchlabError)
    assert message in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_fresh_result_is_verified(evaluate, run, shades, cache, tmp_path):
    evaluate("--model", "palette")
    done = run("verify", tmp_path, "--data", cache, "--dataset", shades)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("verified: ")
    assert "same: code, machine, python" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 file: 1 verified"


def test_a_changed_result_ends_with_an_error_and_says_which(evaluate, run, tmp_path):
    evaluate("--model", "palette")
    (path,) = tmp_path.rglob("*.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    values["metrics"]["ndcg@10"] += 0.01
    path.write_text(json.dumps(values), encoding="utf-8")
    done = run("verify", path, "--quick")
    assert isinstance(done.exception, SearchlabError)
    assert str(done.exception) == "all must be as recorded, got 1 of 1 file that differ; see above"
    assert f"differs: {path}" in done.stdout
    assert "changed after they were written" in done.stdout


def test_quick_says_that_nothing_was_computed(evaluate, run, shades, tmp_path):
    evaluate("--model", "palette")
    done = run("verify", tmp_path, "--quick", "--dataset", shades)
    assert done.exit_code == 0
    assert done.stdout.endswith("\n1 file: 1 sealed but not computed again\n")


def test_a_result_of_a_dataset_that_is_not_here_is_counted(evaluate, run, tmp_path):
    evaluate("--model", "palette")
    done = run("verify", tmp_path)
    assert done.exit_code == 0
    assert "cannot be recomputed here: a dataset must be one of" in done.stdout
    assert done.stdout.endswith("\n1 file: 1 cannot be recomputed here\n")


def test_nothing_to_verify_is_bad_usage(run, tmp_path):
    assert run("verify").exit_code == 2
    empty = run("verify", tmp_path).exception
    assert isinstance(empty, NotFoundError)
    assert str(empty).startswith(f"{tmp_path} must hold a measurement (.json), got none")
    missing = run("verify", tmp_path / "none").exception
    assert isinstance(missing, NotFoundError)
    assert "got no " in str(missing)


@pytest.mark.parametrize("name", ["README.md", "report.html"])
def test_a_file_that_is_no_measurement_is_bad_usage_but_not_in_the_way_of_a_folder(
    evaluate, run, tmp_path, name
):
    evaluate("--model", "palette")
    (tmp_path / name).write_text("text", encoding="utf-8")
    (path,) = tmp_path.rglob("*.json")
    done = run("verify", "--quick", path, tmp_path / name)
    assert isinstance(done.exception, InputError)
    assert f"must be a measurement (.json) or a folder of them, got {tmp_path / name}" in str(
        done.exception
    )
    assert done.stdout == ""
    assert run("verify", "--quick", tmp_path).exit_code == 0


@pytest.mark.parametrize("words", [["--per-language", 2], ["--languages", "de"]])
def test_a_sample_does_not_replace_the_whole_unless_forced(evaluate, tmp_path, words):
    evaluate("--model", "palette")
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    done = evaluate("--model", "palette", *words)
    assert isinstance(done.exception, ConflictError)
    revision = json.loads(whole)["dataset_revision"]
    assert f"{path} must be replaced by figures of the same data" in str(done.exception)
    assert f"got revision {revision} on record and " in str(done.exception)
    assert "--out" in str(done.exception)
    assert "--force" in str(done.exception)
    assert path.read_bytes() == whole
    assert evaluate("--model", "palette", *words, "--force").exit_code == 0
    assert path.read_bytes() != whole


@pytest.mark.slow
def test_what_a_leaderboard_prints_is_what_the_next_commands_take(run, evaluate, cache, tmp_path):
    board = evaluate("--index", "exact", "--index", "hnsw", "--model", "palette")
    assert board.exit_code == 0, board.output
    assert re.search(r"^ *# +rank", board.output, re.M)
    assert re.search(r"^ *2 +(\* )?1= ", board.output, re.M)
    hint = re.search(r"query by query: searchlab (diff 2 1 --results \S+), by", board.output)
    report = tmp_path / "report.html"
    for words in (
        hint[1].split(),
        ["report", tmp_path, "--data", cache, "--out", report],
        re.search(r"the chosen one: searchlab (promote \d --results \S+)", board.output)[1].split(),
    ):
        done = run(*words)
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert "data:image" in report.read_text(encoding="utf-8")


def test_a_place_is_that_of_the_leaderboard_that_was_printed_last(run, evaluate, tmp_path):
    """The folder holds more systems than the last leaderboard, and another one is its first."""
    out = ("--results", tmp_path)
    evaluate("--model", "palette", "--index", "exact", "--index", "hnsw")
    for index in ("hnsw", "exact"):
        board = evaluate("--model", "palette", "--index", index)
        assert "searchlab promote 1 " in board.output
        assert run("promote", "1", "--force", *out).exit_code == 0
        chosen = json.loads((tmp_path / "chosen.json").read_text(encoding="utf-8"))
        assert chosen["config"]["index"] == index
    board = evaluate("--model", "palette", "--index", "exact")
    done = run("diff", "2", "1", *out)
    assert isinstance(done.exception, NotFoundError)
    assert "2 " not in str(done.exception).partition("none of them: ")[2]
    assert run("diff", "hnsw", "exact", *out).exit_code == 0  # of the folder, by name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function Popen")  # Ray leaves them
def test_languages_are_measured_on_ray(evaluate, tmp_path):
    pytest.importorskip("ray", reason="ray: pip install 'searchlab[cluster]'")
    done = evaluate("--model", "palette", "--on", "ray:local")
    assert done.exit_code == 0, done.output
    assert "no time is shown" in " ".join(done.stdout.split())
    assert len(list(tmp_path.glob("search_quality/shades/*.json"))) == 1


def test_a_runner_that_is_none_is_refused_before_anything_is_made(evaluate, tmp_path):
    done = evaluate("--model", "palette", "--on", "spark")
    assert isinstance(done.exception, InputError)
    assert "must be ray:local or ray:ADDRESS, got 'spark'" in str(done.exception)
    assert not list(tmp_path.iterdir())
