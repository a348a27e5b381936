"""Judging in the browser: the notebooks' sessions, several judges at once, blind and resumable."""

import re
import threading

import pytest

from searchlab.api.web.judging import tasks
from searchlab.evaluation.judging.tasks import list_tasks
from tests.support import judging_pages, served_pages
from tests.support.judging_pages import grade, journal_of
from tests.support.people import hidden, person

served = served_pages.served
ann = judging_pages.ann
ben = judging_pages.ben
task = judging_pages.task


# -- one by one -------------------------------------------------------------------------------


def test_a_grade_is_in_the_journal_before_the_next_photo_shows(ann, task):
    assert grade(ann, task, 2) == 1
    (entry,) = journal_of(task, ann).entries
    assert (entry.item, entry.choice) == (task.pool.pairs[0], 2)
    assert 0 <= entry.seconds < 60


def test_a_judge_goes_on_where_another_day_ended(ann, task):
    for choice in (3, 0, "skip"):
        grade(ann, task, choice)
    page = ann.get(f"/judge/{task.name}/one").text
    assert hidden(page)["n"] == "3"
    assert "3 of 12, 1 skipped" in page


def test_undo_takes_the_last_choice_back_and_shows_its_photo(ann, task):
    grade(ann, task, 3)
    grade(ann, task, 1)
    values = hidden(ann.get(f"/judge/{task.name}/one").text) | {"do": "undo"}
    answer = ann.post(f"/judge/{task.name}/one", data=values)
    assert "n=1" in answer.headers["location"]
    assert list(journal_of(task, ann).choices.values()) == [3]


def test_a_form_that_is_sent_twice_is_one_choice(ann, task):
    values = hidden(ann.get(f"/judge/{task.name}/one").text) | {"choice": 2}
    answers = [ann.post(f"/judge/{task.name}/one", data=values) for _ in range(2)]
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert len(journal_of(task, ann).entries) == 1


def test_looking_back_shows_the_choice_and_another_one_replaces_it(ann, task):
    grade(ann, task, 3)
    page = ann.get(f"/judge/{task.name}/one?n=0").text
    assert re.search(r'value="3"[^>]*aria-pressed="true"', page)
    grade(ann, task, 0, place=0)
    assert journal_of(task, ann).choices == {task.pool.pairs[0]: 0}


def test_after_the_last_photo_there_is_thanks(ann, task):
    for _ in range(12):
        number = grade(ann, task, 1)
    assert number == 12
    assert "All judged. Thank you." in ann.get(f"/judge/{task.name}/one").text


def test_a_page_says_nothing_of_score_rank_or_configuration(ann, task, served):
    engine = served.app.services.live_library.current.engine
    photos = engine.table.photos(range(len(engine.table)))
    for page in ("one", "grid"):
        text = ann.get(f"/judge/{task.name}/{page}").text
        assert engine.config.config_id not in text
        assert engine.config.model not in text
        assert "score" not in text.partition("<main")[2].lower()
        assert not any(photo.title and photo.title in text for photo in photos)


def test_the_order_is_not_that_of_the_ranking(task, served):
    engine = served.app.services.live_library.current.engine
    for query_id, places in task.pool.places.items():
        query = task.pool.queries[query_id].query()
        ranked = engine.table.photo_ids(engine.rank(query, 4).rows)
        shown = [task.pool.pairs[place].photo_id for place in places]
        assert sorted(shown) == sorted(ranked)
        if shown != ranked:
            return
    pytest.fail("every query is shown in the order of its ranking")


@pytest.mark.parametrize(
    "values",
    [
        {"choice": "4"},
        {"choice": "-1"},
        {"choice": "two"},
        {"choice": ""},
        {"n": "12"},
        {"n": "99999999999"},
        {"n": "x"},
        {"n": ""},
    ],
)
def test_what_is_no_choice_is_refused_and_nothing_is_recorded(ann, task, values):
    sent = hidden(ann.get(f"/judge/{task.name}/one").text) | {"choice": "2"} | values
    answer = ann.post(f"/judge/{task.name}/one", data=sent)
    assert answer.status_code == 422
    assert journal_of(task, ann).entries == ()


def test_a_page_of_a_task_that_was_made_anew_records_nothing(ann, task):
    sent = hidden(ann.get(f"/judge/{task.name}/one").text) | {"choice": "2", "pool": "0" * 12}
    assert ann.post(f"/judge/{task.name}/one", data=sent).status_code == 409
    assert journal_of(task, ann).entries == ()


@pytest.mark.parametrize("shown_at", ["nan", "x", "", "-1e300", "1e300"])
def test_a_clock_of_the_browser_cannot_spoil_a_journal(ann, task, shown_at):
    grade(ann, task, 2, shown_at=shown_at)
    (entry,) = journal_of(task, ann).entries
    assert 0 <= entry.seconds <= 3_600


# -- the grid ---------------------------------------------------------------------------------


def test_a_grid_records_all_of_a_query_and_goes_on(ann, task):
    page = ann.get(f"/judge/{task.name}/grid").text
    places = sorted({int(n) for n in re.findall(r'name="g(\d+)"', page)})
    assert places == [0, 1, 2, 3]
    values = hidden(page) | {"g0": "3", "g1": "0", "g3": "skip"}
    answer = ann.post(f"/judge/{task.name}/grid", data=values)
    assert answer.headers["location"] == f"/judge/{task.name}/grid?q=1"  # 2 is left for later
    choices = {task.pool.pairs.index(i): e.choice for i, e in journal_of(task, ann).latest.items()}
    assert choices == {0: 3, 1: 0, 3: None}
    again = ann.get(f"/judge/{task.name}/grid").text
    assert len(re.findall(r'name="g\d+" value="\w+" checked', again)) == 3


def test_a_grid_that_is_sent_again_records_what_changed(ann, task):
    page = f"/judge/{task.name}/grid"
    values = hidden(ann.get(page).text)
    ann.post(page, data=values | {"g0": "3", "g1": "0"})
    ann.post(page, data=values | {"g0": "3", "g1": "1"})
    assert [entry.choice for entry in journal_of(task, ann).entries] == [3, 0, 1]


def test_a_grid_with_a_wrong_grade_records_nothing(ann, task):
    page = f"/judge/{task.name}/grid"
    for wrong in ({"g0": "3", "g1": "7"}, {"g0": "3", "g99": "1"}):
        answer = ann.post(page, data=hidden(ann.get(page).text) | wrong)
        assert answer.status_code == 422
    assert journal_of(task, ann).entries == ()


def test_the_script_of_a_grid_records_one_grade_and_stays(ann, task):
    values = hidden(ann.get(f"/judge/{task.name}/grid").text)
    sent = values | {"n": 2, "choice": "1", "view": "stay"}
    assert ann.post(f"/judge/{task.name}/one", data=sent).status_code == 204
    assert journal_of(task, ann).choices == {task.pool.pairs[2]: 1}


# -- several judges ---------------------------------------------------------------------------


def test_judges_do_not_see_each_other_while_they_judge(ann, ben, task):
    grade(ann, task, 3)
    assert hidden(ben.get(f"/judge/{task.name}/one").text)["n"] == "0"
    page = ben.get(f"/judge/{task.name}/one?n=0").text
    assert "aria-pressed" not in page


def test_several_people_of_an_account_have_journals_of_their_own(ann, task):
    values = hidden(ann.get(f"/judge/{task.name}/one?judge=Zoë <b>").text)
    assert values["judge"] == "Zoë <b>"
    ann.post(f"/judge/{task.name}/one", data=values | {"choice": 1})
    grade(ann, task, 3)
    assert {j.judge: len(j.entries) for j in task.journals()} == {"ann": 1, "ann/Zoë <b>": 1}
    assert ann.get(f"/judge/{task.name}/one?judge=a/b").status_code == 422


def test_accounts_of_odd_names_never_share_a_journal(served, task):
    plain, odd = person(served, "x"), person(served, "x/y")
    page = plain.get(f"/judge/{task.name}/one?judge=y").text
    plain.post(f"/judge/{task.name}/one", data=hidden(page) | {"choice": 3})
    assert hidden(odd.get(f"/judge/{task.name}/one").text)["n"] == "0"
    assert len({j.judge for j in task.journals()}) == 2


def test_windows_of_one_judge_lose_no_grade(ann, task):
    values = hidden(ann.get(f"/judge/{task.name}/one").text)

    def send(place):
        ann.post(f"/judge/{task.name}/one", data=values | {"n": place, "choice": place % 4})

    threads = [threading.Thread(target=send, args=(place,)) for place in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    choices = {task.pool.pairs.index(i): c for i, c in journal_of(task, ann).choices.items()}
    assert choices == {place: place % 4 for place in range(12)}


def test_what_another_worker_has_recorded_is_seen(ann, task):
    grade(ann, task, 3)
    session = task.grading("ann", owner=str(ann.account_id), pictures=lambda _: "")
    session.choose(0)
    assert hidden(ann.get(f"/judge/{task.name}/one").text)["n"] == "2"


# -- who may ----------------------------------------------------------------------------------


def test_only_who_is_signed_in_judges(served, task):
    for path in ("", "/new", f"/{task.name}", f"/{task.name}/one", f"/{task.name}/results"):
        answer = served.anonymous.get(f"/judge{path}")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Cookie realm="searchlab"'
    form = {"choice": "1", "n": "0"}
    address = f"/judge/{task.name}/one"
    assert served.make_browser().post(address, data=form).status_code == 401
    assert task.journals() == []


def test_a_form_from_elsewhere_changes_nothing(ann, task):
    values = hidden(ann.get(f"/judge/{task.name}/one").text) | {"choice": 2}
    elsewhere = {"sec-fetch-site": "cross-site", "origin": "https://elsewhere.example"}
    for path in (f"{task.name}/one", f"{task.name}/grid", "new", f"{task.name}/delete"):
        assert ann.post(f"/judge/{path}", data=values, headers=elsewhere).status_code == 403
    assert journal_of(task, ann).entries == ()


@pytest.mark.parametrize("name", ["gone", "%2e%2e%2fx", "a%00b", "a%0ab", "A", "x" * 300])
def test_a_task_that_is_none_is_a_page_that_says_so(ann, name):
    for path in ("", "/one", "/grid", "/results", "/delete", "/files/qrels.tsv"):
        assert ann.get(f"/judge/{name}{path}").status_code == 404


def test_the_maker_alone_deletes_a_task(ann, ben, task):
    assert ben.post(f"/judge/{task.name}/delete").status_code == 403
    assert ben.get(f"/judge/{task.name}/delete").status_code == 403
    assert "Delete it" in ann.get(f"/judge/{task.name}/delete").text
    assert ann.post(f"/judge/{task.name}/delete").headers["location"] == "/judge"
    assert ann.get(f"/judge/{task.name}").status_code == 404


def test_the_list_shows_tasks_and_ones_own_progress(ann, ben, task):
    grade(ann, task, 2)
    for browser, done in ((ann, 1), (ben, 0)):
        page = browser.get("/judge").text
        assert f'href="/judge/{task.name}"' in page
        card = page.partition(f'href="/judge/{task.name}"')[2]
        assert f"{done} of 12" in card[:1200]
    assert ann.get("/judge?page=9").status_code == 200
    assert ann.get("/judge?page=x").status_code == 422


def test_a_task_that_is_deleted_while_the_list_is_made_is_left_out(ann, task, monkeypatch):
    def list_one_that_goes(library):
        return [*list_tasks(library), "gone"]

    monkeypatch.setattr(tasks, "list_tasks", list_one_that_goes)
    monkeypatch.setattr(tasks, "list_comparisons", lambda _: ["gone-too"])
    page = ann.get("/judge")
    assert page.status_code == 200
    assert f'href="/judge/{task.name}"' in page.text
    assert "/judge/gone" not in page.text
