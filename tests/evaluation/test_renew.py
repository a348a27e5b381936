"""Records whose figures came out the same count as measured by the code of today."""

import json

import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.promotion import promote
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.provenance.renew import renew
from searchlab.evaluation.provenance.verify import verify, verify_result
from searchlab.evaluation.results import load_result
from tests.support import recorded_results
from tests.support.shades import reseal

FORMER = {"code": "0.0.9+aaaa", "commit": "bbbb", "date": "2026-01-01T00:00:00+00:00"}


shades = recorded_results.shades
known = recorded_results.known
cache = recorded_results.cache


@pytest.fixture
def recorded(shades, cache, tmp_path):
    """A result that former code measured, which came to the same figures."""
    out = tmp_path / "results"
    (result,) = Experiment(shades, [Config(model="palette")], cache=cache, out=out).run().results
    path = result.path(out)
    reseal(path, lambda values: values["manifest"].update(FORMER))
    return path


@pytest.mark.slow
def test_a_verified_record_takes_the_code_of_today_and_keeps_what_it_was_measured_on(
    recorded, cache
):
    before = read_measurement(recorded)
    assert renew(verify([recorded], cache=cache)) == [recorded]
    after = read_measurement(recorded)
    assert after["manifest"]["code"] == code_of("search_quality")
    assert after["manifest"]["measured_on"] == FORMER
    for name in ("code", "commit", "measured_on"):
        before["manifest"].pop(name, None)
        after["manifest"].pop(name)
    assert before.pop("digest") != after.pop("digest")
    assert after == before
    assert verify_result(recorded, cache=cache).status == "verified"


def test_what_it_was_first_measured_on_outlasts_a_second_renewal(recorded, cache):
    renew(verify([recorded], cache=cache))
    reseal(recorded, lambda values: values["manifest"].update(code="0.1.0+cccc"))
    renew(verify([recorded], cache=cache))
    manifest = read_measurement(recorded)["manifest"]
    assert manifest["code"] == code_of("search_quality")
    assert manifest["measured_on"] == FORMER


@pytest.mark.slow
def test_a_record_of_the_code_of_today_is_left_as_it_is(recorded, cache):
    renew(verify([recorded], cache=cache))
    text = recorded.read_bytes()
    assert renew(verify([recorded], cache=cache)) == []
    assert recorded.read_bytes() == text


def test_what_is_only_sealed_or_comes_out_differently_is_left_alone(recorded, cache):
    assert renew(verify([recorded], quick=True)) == []
    reseal(recorded, lambda values: values["metrics"].update({"ndcg@10": 0.999}))
    text = recorded.read_bytes()
    assert renew(verify([recorded], cache=cache)) == []
    assert recorded.read_bytes() == text


def test_a_chosen_configuration_names_the_new_seal_of_its_result(recorded, cache):
    chosen = promote(load_result(recorded), recorded.parents[2] / "chosen.json")
    assert renew(verify([recorded.parents[2]], cache=cache)) == [recorded, chosen]
    named = read_measurement(chosen)["evidence"]["result"]
    assert named["digest"] == read_measurement(recorded)["digest"]
    assert verify_result(chosen).status == "sealed"


def test_the_command_renews_and_counts_as_it_always_does(recorded, cache):
    shown = CliRunner().invoke(
        searchlab, ["verify", str(recorded), "--renew", "--data", str(cache)]
    )
    assert shown.exit_code == 0, shown.output
    assert f"renewed: {recorded}" in shown.output
    assert "1 file: 1 verified" in shown.output
    assert json.loads(recorded.read_text(encoding="utf-8"))["manifest"]["measured_on"] == FORMER


def test_a_quick_look_renews_nothing(recorded):
    shown = CliRunner().invoke(searchlab, ["verify", str(recorded), "--renew", "--quick"])
    assert shown.exit_code != 0
    assert "--renew must compute figures again" in str(shown.exception)
