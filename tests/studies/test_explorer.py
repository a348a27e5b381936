"""The explorer of notebooks: what is asked in the browser is listed, shown and kept in Python."""

import json

import pytest

from searchlab import Config, Experiment, Explorer, build_demo_library, load_dataset
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.results import read_run_beside

# All bundled photos are embedded.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("demo").sample(["ar", "en"], 30, seed=1)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("mine")


@pytest.fixture(scope="module")
def library():
    return build_demo_library()


@pytest.fixture(scope="module")
def report(dataset, out, library):
    configs = [Config(model=model) for model in ("mini", "palette", "captions")]
    return Experiment(dataset, configs, out=out, library=library).run()


@pytest.fixture
def explorer(report, dataset, out, library):
    return Explorer(report, dataset, out, library=library)


def press(explorer, **message):
    before = explorer.heard
    explorer._handle_custom_msg(message, [])
    assert explorer.heard == before + 1


def system_of(report, model):
    return next(one for one in report.results if one.config.model == model)


def test_it_opens_on_the_worst_query_of_the_best_system(explorer, report):
    best = report.results[0]
    assert explorer.system is best
    assert [one.score for one in explorer.queries] == sorted(best.scores.values["ndcg@10"])
    assert explorer.shown == explorer.queries[0]
    assert explorer.board["ids"][0] == best.config_id
    assert len(explorer.board["rows"][0]) == len(explorer.board["columns"])


def test_a_click_on_a_system_lists_its_queries(explorer, report):
    palette = system_of(report, "palette")
    press(
        explorer, do="rank", system=palette.config_id, order="best", metric="success@5", lang="ar"
    )
    assert (explorer.system, explorer.metric, explorer.problem) == (palette, "success@5", "")
    assert {one.lang for one in explorer.queries} == {"ar"}
    assert explorer.listing["rows"][0][0] == explorer.queries[0].query_id
    assert (explorer.listing["lang"], explorer.listing["order"]) == ("ar", "best")


def test_what_each_system_found_is_its_ranking_with_the_grades(explorer, report, dataset, out):
    explorer.rank("mini", order="best")
    shown, case = explorer.shown, explorer.case
    assert case["strips"][0]["name"] == "mini × exact"
    assert len(case["strips"]) == 3
    grades = dataset.qrels[shown.query_id]
    for strip in case["strips"]:
        result = next(one for one in report.results if one.name == strip["name"])
        run = read_run_beside(result.path(out))[shown.query_id][:8]
        assert [photo["grade"] for photo in strip["photos"]] == [grades.get(one) for one in run]
        assert (
            strip["score"]
            == result.scores.values["ndcg@10"][result.scores.query_ids.index(shown.query_id)]
        )
        assert all(photo["picture"].startswith("data:image/webp") for photo in strip["photos"])
    assert case["missed"] == []


def test_the_photo_judged_best_is_shown_where_no_system_found_it(explorer):
    explorer.rank("palette", against="captions", lang="en")
    missed = next(one for one in explorer.queries if (one.score, one.other) == (0.0, 0.0))
    explorer.show(missed.query_id)
    (photo,) = explorer.case["missed"]
    assert photo["grade"] >= 1
    assert len(explorer.case["strips"]) == 2


def test_scrolling_sends_only_what_comes_next(explorer):
    first = [row[0] for row in explorer.listing["rows"]]
    press(explorer, do="more")
    assert explorer.listing["first"] == len(first) == 40
    second = [row[0] for row in explorer.listing["rows"]]
    assert first + second == [one.query_id for one in explorer.queries]
    press(explorer, do="more")
    assert explorer.listing["rows"] == []
    press(explorer, do="again")
    assert [row[0] for row in explorer.listing["rows"]] == first


def test_queries_are_kept_once_and_make_a_dataset(explorer, dataset):
    press(explorer, do="keep")
    press(explorer, do="keep")
    press(explorer, do="show", query_id=explorer.queries[1].query_id)
    press(explorer, do="keep")
    assert explorer.kept == [one.query_id for one in explorer.queries[:2]]
    assert explorer.words == [one.text for one in explorer.queries[:2]]
    kept = dataset.only(explorer.kept)
    assert {query.query_id for query in kept.queries} == set(explorer.kept)


def test_words_narrow_the_list_and_none_may_be_left(explorer):
    word = explorer.queries[5].text[1:]
    press(explorer, do="rank", system="mini", contains=word.upper())
    assert all(word.casefold() in one.text.casefold() for one in explorer.queries)
    assert explorer.queries
    press(explorer, do="rank", system="mini", contains="no query says this")
    assert (explorer.queries, explorer.shown, explorer.case) == ([], None, {})
    press(explorer, do="keep")
    assert explorer.kept == []
    assert "0 queries" in repr(explorer)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({}, "do must be"),
        ({"do": "fly"}, "do must be"),
        ("nonsense", "do must be"),
        ({"do": "rank", "system": "vgg"}, "must be a system of this leaderboard"),
        ({"do": "rank", "system": "exact"}, "got 3 of them"),
        ({"do": "rank"}, "system must be a string"),
        ({"do": "rank", "system": ["mini"]}, "system must be a string"),
        ({"do": "rank", "system": "mini", "metric": "mood"}, "metric must be one of"),
        ({"do": "rank", "system": "mini", "order": "up"}, "order must be one of"),
        ({"do": "show", "query_id": "q0"}, "a query must be one of the 60 listed"),
        ({"do": "show"}, "query_id must be a string"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(explorer, message, said):
    before = (explorer.queries, explorer.listing, explorer.case)
    explorer._handle_custom_msg(message, [])
    assert said in explorer.problem
    assert (explorer.queries, explorer.listing, explorer.case) == before
    press(explorer, do="rank", system="mini")
    assert explorer.problem == ""


def test_a_frame_has_a_row_for_each_query_listed(explorer):
    explorer.rank("mini", against="palette")
    frame = explorer.frame()
    assert list(frame.index) == [one.query_id for one in explorer.queries]
    assert frame["score"].sub(frame["other"]).is_monotonic_increasing


def test_a_saved_notebook_shows_board_queries_and_photos(report, dataset, out, library):
    explorer = Explorer(report, dataset, out, library=library)
    sheet = explorer._repr_html_()
    assert "mini × exact" in sheet
    assert explorer.queries[0].text in sheet
    assert sheet.count("data:image/webp") >= 8 * 3
    bundle = explorer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"] == "Explorer: 60 queries of mini × exact by ndcg@10"


def test_without_rankings_there_are_scores_and_a_note(report, dataset):
    explorer = Explorer(report, dataset)
    assert [strip["photos"] for strip in explorer.case["strips"]] == [[], [], []]
    assert explorer.case["missed"] == []
    assert "There are no rankings" in explorer._repr_html_()


def test_another_dataset_is_refused(report):
    with pytest.raises(InputError, match="must hold the 60 queries of the report"):
        Explorer(report, load_dataset("demo").sample(["de"], 3, seed=1))


@pytest.mark.parametrize("depth", [0, 101])
def test_a_ranking_is_shown_from_one_photo_on(report, dataset, depth):
    with pytest.raises(InputError, match="depth must be from 1 to 100"):
        Explorer(report, dataset, depth=depth)


def test_a_query_that_is_not_listed_is_not_shown(explorer):
    explorer.rank("mini", lang="en")
    arabic = next(one for one in explorer._queries.values() if one.lang == "ar")
    with pytest.raises(NotFoundError, match="30 listed"):
        explorer.show(arabic.query_id)


def test_what_the_browser_gets_is_plain_and_needs_nothing_from_elsewhere(explorer):
    for state in (explorer.board, explorer.listing, explorer.case):
        json.dumps(state)
    assert "http" not in explorer._esm
    assert "import " not in explorer._esm
    assert "innerHTML" not in explorer._esm
