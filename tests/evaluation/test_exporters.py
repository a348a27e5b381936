"""Leaderboards in the forms of other tools; no service is asked, stand-ins take what is sent."""

import json
import sys
import types

import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.errors import InputError, MissingExtraError
from searchlab.evaluation.exporters import EXPORTERS, load_exporter
from searchlab.evaluation.outside.comparison import compare_files
from searchlab.evaluation.reports import load_report
from tests.support.made_results import MINI, PALETTE, result


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    for config, changes in ((MINI, {}), (PALETTE, {"shift": 0.3})):
        path = result(config, dataset="made", **changes).save(out)
    return path.parent


@pytest.fixture(scope="module")
def report(board):
    return load_report(board)


def test_mtebs_json_comes_back_as_what_was_measured(board, report, tmp_path):
    words = ["export", "results", board, tmp_path, "--to", "mteb"]
    done = CliRunner().invoke(searchlab, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    models = sorted(path for path in tmp_path.iterdir())
    assert len(models) == 2
    back = compare_files([f"mini={models[0]}", f"palette={models[1]}"])
    assert back.unit == "tasks by language"
    assert back.languages == ("de", "en")
    for name, one in zip(("mini", "palette"), report.results, strict=True):
        expected = [one.intervals["ndcg@10"].groups[lang].mean for lang in ("de", "en")]
        assert back.scores[name]["main_score"].tolist() == expected
        (file,) = (tmp_path / models[0].name).rglob("made.json")
    assert json.loads(file.read_text())["dataset_revision"] == "r1"


def test_cards_have_the_metrics_that_the_hub_reads_and_their_intervals(report, tmp_path):
    files = load_exporter("card")(report, tmp_path)
    assert len(files) == 2
    text = (tmp_path / "mini_exact.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    assert head.startswith('model-index:\n- name: "mini × exact"\n  results:\n')
    mean = report.results[0].intervals["ndcg@10"].macro
    assert f'    - type: "ndcg@10"\n      value: {mean.mean:.4f}\n' in head
    assert f"| ndcg@10 | {mean} |" in body
    assert "mean over 2 languages" in body


class Run:
    def __init__(self, **options):
        self.options, self.summary, self.finished = options, {}, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finished = True

    finish = __exit__


def test_mlflow_gets_a_run_for_each_system(report, tmp_path, monkeypatch):
    said = []

    def start_run(run_name):
        said.append({"name": run_name})
        return Run()

    stand_in = types.SimpleNamespace(
        set_experiment=lambda name: said.append({"experiment": name}),
        start_run=start_run,
        log_params=lambda values: said[-1].update(params=values),
        log_metrics=lambda values: said[-1].update(metrics=values),
        set_tags=lambda values: said[-1].update(tags=values),
    )
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    load_exporter("mlflow")(report, tmp_path)
    experiment, mini, palette = said
    assert experiment == {"experiment": "search_quality-made"}
    assert (mini["name"], palette["tags"]["rank"]) == ("mini × exact", "2")
    assert mini["params"]["model"] == "mini"
    assert mini["metrics"]["ndcg_at_10"] == report.results[0].metrics["ndcg@10"]
    assert not [name for name in mini["metrics"] if "@" in name]


def test_wandb_gets_a_run_for_each_system(report, tmp_path, monkeypatch):
    runs = []

    def init(**options):
        runs.append(Run(**options))
        return runs[-1]

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    load_exporter("wandb")(report, tmp_path)
    assert [run.options["name"] for run in runs] == ["mini × exact", "palette × exact"]
    assert runs[0].options["config"]["model"] == "mini"
    assert runs[0].summary["ndcg@10"] == report.results[0].metrics["ndcg@10"]
    assert runs[1].summary["rank"] == 2


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tool_that_is_not_installed_is_named(report, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"pip install {name}"):
        load_exporter(name)(report, tmp_path)


def test_an_unknown_form_is_refused_with_the_list():
    with pytest.raises(InputError, match=f"one of {', '.join(EXPORTERS)}, got 'csv'"):
        load_exporter("csv")
