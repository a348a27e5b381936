"""The queries of a result, worst first: compared with their definition, and with another system."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab import Config, Experiment, build_demo_library, load_dataset
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.reporting.named import find_system
from searchlab.evaluation.reporting.query_scores import list_query_scores

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report():
    dataset = load_dataset("demo").sample(["ar", "en"], 12, seed=3)
    configs = [Config(model="palette"), Config(model="captions")]
    return Experiment(dataset, configs, library=build_demo_library()).run()


@given(order=st.sampled_from(["worst", "best"]), lang=st.sampled_from(["", "ar", "en", "tlh"]))
def test_queries_are_those_of_the_language_in_the_order_of_their_scores(report, order, lang):
    result = report.results[0]
    listed = list_query_scores(result, order=order, lang=lang)
    scores = dict(zip(result.scores.query_ids, result.scores.values["ndcg@10"], strict=True))
    langs = dict(zip(result.scores.query_ids, result.scores.langs, strict=True))
    assert {one.query_id for one in listed} == {i for i in scores if lang in ("", langs[i])}
    assert all(
        (one.score, one.lang) == (scores[one.query_id], langs[one.query_id]) for one in listed
    )
    keys = [one.score if order == "worst" else -one.score for one in listed]
    assert keys == sorted(keys)
    for first, second in pairwise(listed):
        assert first.score != second.score or first.query_id < second.query_id


def test_against_another_system_the_worst_loss_comes_first(report):
    best, other = report.results
    listed = list_query_scores(best, against=other, metric="success@5")
    differences = best.scores.values["success@5"] - other.scores.values["success@5"]
    np.testing.assert_allclose([one.difference for one in listed], np.sort(differences))
    assert listed[0].score - listed[0].other == differences.min()


def test_words_are_found_in_upper_and_lower_case(report):
    texts = {"q1": "Ein TURM am Meer", "q2": "a tower"}
    ids = report.results[0].scores.query_ids
    named = dict(zip(ids, texts.values(), strict=False))
    assert list_query_scores(report.results[0], contains="turm an", texts=named) == []
    (found,) = list_query_scores(report.results[0], contains=" turm am ", texts=named)
    assert (found.query_id, found.text) == (ids[0], "Ein TURM am Meer")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"metric": "ndcg@7"}, "metric must be one of ndcg@10, success@5, got 'ndcg@7'"),
        ({"order": "first"}, "order must be one of worst, best, got 'first'"),
    ],
)
def test_what_cannot_be_listed_is_said(report, asked, said):
    with pytest.raises(InputError, match=said):
        list_query_scores(report.results[0], **asked)


def test_a_system_of_other_queries_is_no_comparison(report):
    dataset = load_dataset("demo").sample(["en"], 3, seed=3)
    experiment = Experiment(dataset, [Config(model="palette")], library=build_demo_library())
    (other,) = experiment.run().results
    with pytest.raises(InputError, match="against must have the same queries"):
        list_query_scores(report.results[0], against=other)


def test_a_system_is_found_by_its_model_name_and_hash(report):
    for result in report.results:
        for named in (result.config.model, result.name, result.config_id, result.config_id[:5]):
            assert find_system(named, report) is result
    with pytest.raises(NotFoundError, match="got none of them: 1 "):
        find_system("mini", report)
    with pytest.raises(InputError, match="got 2 of them"):
        find_system("exact", report)
