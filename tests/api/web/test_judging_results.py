"""What came of a judging task: who sees which grades, and what the files hold."""

from searchlab.evaluation.datasets.judgments import read_origins, read_qrels
from searchlab.evaluation.judging.tasks import COMMAND_LINE, LOCAL, create_task
from tests.support import judging_pages, served_pages
from tests.support.judging_pages import grade, journal_of
from tests.support.people import person

served = served_pages.served
ann = judging_pages.ann
ben = judging_pages.ben
task = judging_pages.task


def judge_all(browser, task, choose):
    for place in range(12):
        grade(browser, task, choose(place), place=place)


def test_results_show_agreement_and_give_judgments(ann, ben, task, tmp_path):
    judge_all(ann, task, lambda place: place % 4)
    judge_all(ben, task, lambda place: min(3, place % 4 + (place < 3)))
    page = ann.get(f"/judge/{task.name}/results").text
    assert "Krippendorff" in page
    assert "ann</bdi> and <bdi>ben" in page
    for name in ("qrels.tsv", "qrels.txt"):
        answer = ann.get(f"/judge/{task.name}/files/{name}")
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="{task.name}-{name}"'
        )
        kind = "text/plain" if name.endswith("txt") else "text/tab-separated-values"
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        (tmp_path / name).write_bytes(answer.content)
        assert read_qrels(tmp_path / name) == task.qrels("median")
    origins = read_origins(tmp_path / "qrels.tsv")
    assert {word for by in origins.values() for word in by.values()} == {"eye"}
    strict = ann.get(f"/judge/{task.name}/files/qrels.tsv?rule=strict").text
    assert strict.count("\n") == 10
    assert ann.get(f"/judge/{task.name}/files/grades.tsv").text.count("\n") == 25
    assert ann.get(f"/judge/{task.name}/files/queries.tsv").text.count("\n") == 4


def test_nobody_reads_the_grades_of_others_for_photos_still_to_judge(served, ann, ben, task):
    carl = person(served, "carl")
    for browser, choice in ((ann, 0), (ben, 3)):
        grade(browser, task, choice, place=0)
    assert "Far apart" in ann.get(f"/judge/{task.name}/results").text
    assert "Far apart" not in carl.get(f"/judge/{task.name}/results").text


def test_files_hold_what_the_page_shows_until_all_is_judged(served, ann, ben, task):
    carl = person(served, "carl")
    for place in (0, 1):
        grade(ann, task, 3, place=place)
    grade(ben, task, 0, place=0)

    def rows(browser, file, **asked):
        answer = browser.get(f"/judge/{task.name}/files/{file}", params=asked)
        return answer.text.count("\n") if answer.status_code == 200 else answer.status_code

    # Each table has a first line with the names of its columns.
    files, note = ("grades.tsv", "qrels.tsv", "qrels.txt"), "Until you have judged all"
    pages = [browser.get(f"/judge/{task.name}/results").text for browser in (ann, ben, carl)]
    assert [note in page for page in pages] == [False, True, True]
    assert [rows(ann, file) for file in files] == [4, 3, 2]
    assert [rows(ben, file) for file in files] == [3, 2, 1]
    assert [rows(carl, file) for file in files] == [1, 422, 422]
    assert rows(ben, "grades.tsv", judge="another of the account") == 1
    assert [rows(browser, "queries.tsv") for browser in (ann, ben, carl)] == [4, 4, 4]
    for place in range(1, 12):
        grade(ben, task, "skip", place=place)
    assert [rows(ben, file) for file in files] == [4, 3, 2]


def test_a_judge_in_a_notebook_opens_nothing_to_an_account_of_its_name(ann, ben, task):
    judge_all(ann, task, lambda _place: 0)
    notebook = task.grading("ben", pictures=lambda _: "")
    for _ in range(12):
        notebook.choose(3)
    assert n_graded(ben, task) == 0
    page = ben.get(f"/judge/{task.name}/results").text
    assert ("Far apart" in page, "Until you have judged all" in page) == (False, True)
    grade(ben, task, 1)
    assert n_graded(ben, task) == 3


def test_an_account_sees_all_grades_when_all_of_its_judges_are_done(served, ann, ben, task):
    judge_all(ann, task, lambda _place: 0)
    judge_all(ben, task, lambda _place: "skip")
    assert n_graded(ben, task) == 12
    page = ben.get(f"/judge/{task.name}/one", params={"judge": "Zoë"}).text
    assert n_graded(ben, task) == 12  # to look is not to judge
    ben.post(f"/judge/{task.name}/one", data=judging_pages.hidden(page) | {"choice": 1})
    assert n_graded(ben, task) == 0
    assert "Until you have judged all" in ben.get(f"/judge/{task.name}/results").text


def n_graded(browser, task):
    """Count the grades in the file that an account is sent."""
    return browser.get(f"/judge/{task.name}/files/grades.tsv").text.count("\n") - 1


def test_an_account_of_the_name_of_a_maker_is_not_the_maker(served, ann, task):
    grade(ann, task, 3)
    namesake = person(served, COMMAND_LINE)
    here = create_task(
        served.library, f"{task.name}-here", task.pool, made_by=COMMAND_LINE, owner=LOCAL
    )
    here.grading("ben", pictures=lambda _: "").choose(3)
    assert "Until you have judged all" in namesake.get(f"/judge/{here.name}/results").text
    assert namesake.get(f"/judge/{here.name}/files/grades.tsv").text.count("\n") == 1


def test_queries_are_sent_even_where_a_journal_is_damaged(ann, task):
    grade(ann, task, 3)
    journal_of(task, ann).path.write_text("{")
    answer = ann.get(f"/judge/{task.name}/files/queries.tsv")
    assert (answer.status_code, answer.text.count("\n")) == (200, 4)


def test_results_without_a_grade_say_so(ann, task):
    assert "Nobody has judged yet" in ann.get(f"/judge/{task.name}/results").text
    assert ann.get(f"/judge/{task.name}/files/qrels.tsv").status_code == 422
    assert ann.get(f"/judge/{task.name}/files/qrels.tsv?rule=x").status_code == 422
    assert ann.get(f"/judge/{task.name}/files/task.json").status_code == 404
