"""Judging tasks from the command line: made of queries, exported as a dataset."""

import json

import pytest
from PIL import Image

from searchlab.evaluation.datasets import read_dataset
from searchlab.evaluation.judging.comparisons import open_comparison
from searchlab.evaluation.judging.tasks import open_task
from searchlab.library.library import open_library
from tests.support import cli_world

whole = cli_world.whole
mine = cli_world.mine


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("red photo\nde\tblaues Bild\n")
    return path


@pytest.fixture
def made(run, mine, queries):
    return run("judge", "create", "reds", "--data", mine, "--queries", queries, "--depth", "4")


def test_a_task_pools_what_the_library_finds(made, mine, run):
    assert (made.code, made.out.strip()) == (0, "/judge/reds")
    pool = open_task(mine, "reds").pool
    assert (len(pool.queries), len(pool)) == (2, 8)
    assert run("judge", "list", "--data", mine).out.startswith("reds: reds; 8 photos to grade")


def test_several_configurations_are_pooled(run, mine, queries, tmp_path):
    files = []
    for name, changes in (("one", '"words": null'), ("other", '"index": "clustered"')):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(f'{{"model": "palette", {changes}}}')
    configs = [word for file in files for word in ("--config", file)]
    done = run("judge", "create", "two", "--data", mine, "--queries", queries, *configs)
    assert done.code == 0, done.err
    assert len(open_task(mine, "two").pool.systems) == 2


def test_two_configurations_are_compared_blind(run, mine, queries, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"model": "captions", "words": null}')
    done = run("judge", "compare", "ab", "--data", mine, "--queries", queries, "--config", other)
    assert (done.code, done.out.strip()) == (0, "/judge/ab/compare"), done.err
    task = open_comparison(mine, "ab")
    assert len(task.runs) == 2
    session = task.comparing("ann", pictures=str)
    session.choose("left")
    assert "ab: ab; 2 queries to compare\n    ann: 1" in run("judge", "list", "--data", mine).out
    again = run("judge", "compare", "ab", "--data", mine, "--queries", queries, "--config", other)
    assert (again.code, "taken" in again.err) == (1, True)


@pytest.fixture
def configs(tmp_path):
    words = []
    for name, model in (("seen", "palette"), ("told", "captions")):
        path = tmp_path / f"{name}.json"
        path.write_text(f'{{"model": "{model}", "words": null}}')
        words += ["--config", path]
    return words


def judge_all(mine, name, grade_of):
    task = open_task(mine, name)
    session = task.grading("ann", pictures=lambda _: "")
    for pair in task.pool.pairs:
        session.choose(grade_of(pair))


def test_few_photos_are_judged_and_say_how_good_each_configuration_is(run, mine, queries, configs):
    made = run(
        *("judge", "create", "few", "--data", mine, "--queries", queries, *configs),
        *("--most", "6", "--metric", "precision@4"),
    )
    assert (made.code, made.out.strip()) == (0, "/judge/few"), made.err
    assert len(open_task(mine, "few").pool) == 6
    early = run("judge", "estimate", "few", "--data", mine)
    assert (early.code, "judge first" in early.err) == (2, True)
    judge_all(mine, "few", lambda pair: 2)
    done = run("judge", "estimate", "few", "--data", mine)
    assert done.code == 0, done.err
    first, *systems, missed = done.out.splitlines()
    assert first.startswith("precision@4 by 6 of ")
    assert {line.split(":")[0] for line in systems} == {"palette × exact", "captions × exact"}
    assert missed.startswith("relevant without a judgment before: ")
    assert "not told apart yet" in done.err


def test_judging_goes_on_with_other_photos_until_all_are_judged(run, mine, queries, configs):
    run(
        *("judge", "create", "few", "--data", mine, "--queries", queries, *configs),
        *("--most", "6", "--metric", "precision@4"),
    )
    judge_all(mine, "few", lambda pair: 2)
    more = run("judge", "more", "few", "rest", "--data", mine, "--most", "100")
    assert (more.code, more.out.strip()) == (0, "/judge/rest"), more.err
    first, rest = (open_task(mine, name).pool.pairs for name in ("few", "rest"))
    assert not set(first) & set(rest)
    judge_all(mine, "rest", lambda pair: 2)
    done = run("judge", "estimate", "rest", "--data", mine)
    assert done.out.startswith(f"precision@4 by {len(rest)} of {len(rest)} photos")
    # All that was found is relevant, so the estimate is exact: 1 for both.
    assert all("1.000 [1.000, 1.000]" in line for line in done.out.splitlines()[1:3]), done.out
    assert (
        "all that the runs found was judged"
        in run("judge", "more", "rest", "x", "--data", mine).err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "precision@4"), "--metric and --known go with --most"),
        (("--most", "5", "--random-share", "1"), "--random-share without"),
        (("--most", "5", "--known"), "--known must come with a --dataset"),
        (("--most", "5", "--metric", "ndcg@10"), "must be precision@k, success@1 or dcg@k"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_line(run, mine, queries, arguments, message):
    done = run("judge", "create", "x", "--data", mine, "--queries", queries, *arguments)
    assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1), done.err


def test_a_task_without_a_plan_has_no_estimate(made, mine, run):
    done = run("judge", "estimate", "reds", "--data", mine)
    assert (done.code, "a task whose photos were drawn" in done.err) == (2, True)


def test_a_name_is_taken_once(made, mine, queries, run):
    done = run("judge", "create", "reds", "--data", mine, "--queries", queries)
    assert (done.code, "taken" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("create", "x"),
            "a task must get queries from either --queries or --dataset, got neither",
        ),
        (("create", "x", "--queries", "q", "--dataset", "d"), "--dataset, got both"),
        (("create", "x", "--queries", "gone.txt"), "must be a file"),
        (("create", "x", "--dataset", "nonsense"), "nonsense"),
        (("export", "gone", "out"), "must be that of a judging task"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_line(run, mine, arguments, message):
    done = run("judge", *arguments, "--data", mine)
    assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1)


def test_judgments_become_a_dataset_with_their_origin(made, mine, run, tmp_path):
    out = tmp_path / "judged"
    assert "judge first" in run("judge", "export", "reds", out, "--data", mine).err
    task = open_task(mine, "reds")
    session = task.grading("ann", pictures=lambda _: "")
    for _ in range(4):
        session.choose(3)
    for _ in range(4):
        session.choose(0)
    done = run("judge", "export", "reds", out, "--data", mine)
    assert (done.code, done.out.strip()) == (0, str(out))
    assert "4 judgments of 1 query; 1 without a relevant photo left out" in done.err
    (out / "photos.jsonl").write_text('{"file": "0.png", "title": "hand-written"}')
    refused = run("judge", "export", "reds", out, "--data", mine)
    assert (refused.code, refused.out) == (1, "")
    assert "must hold no photos.jsonl and no queries.tsv and no qrels.tsv" in refused.err
    assert "hand-written" in (out / "photos.jsonl").read_text()
    assert run("judge", "export", "reds", out, "--data", mine, "--force").code == 0
    dataset = read_dataset(out)
    assert dataset.judged_by == {"eye": 4}
    assert len(dataset.photo_ids) == 25


def test_judged_photos_keep_what_is_written_about_them_and_those_that_are_gone_are_told(
    run, tmp_path
):
    photos, data = tmp_path / "photos", tmp_path / "data"
    photos.mkdir()
    for number, color in enumerate(("red", "blue", "green")):
        Image.new("RGB", (40, 30), color).save(photos / f"{number}.png")
    record = {"file": "0.png", "title": "The coast", "tags": ["sea", "sun"], "license_type": "cc0"}
    (photos / "photos.jsonl").write_text(json.dumps(record))
    assert run("index", photos, "--data", data, "--model", "palette").code == 0
    (tmp_path / "queries.txt").write_text("red\n")
    words = ("--data", data, "--queries", tmp_path / "queries.txt", "--depth", "3")
    assert run("judge", "create", "reds", *words).code == 0
    session = open_task(data, "reds").grading("ann", pictures=lambda _: "")
    for _ in range(3):
        session.choose(3)
    (photos / "2.png").unlink()
    done = run("judge", "export", "reds", tmp_path / "judged", "--data", data)
    assert "2 judgments of 1 query; 1 photo without a file here left out; " in done.err
    assert "1 judgment of photos that are not in the library any more left out" in done.err
    dataset = read_dataset(tmp_path / "judged")
    assert dataset.photo_ids < set(open_library(data).engine.table.texts("photo_id"))
    [written] = [record for record in dataset.records if record.get("title")]
    assert (written["title"], written["tags"]) == ("The coast", ["sea", "sun"])
    assert written["license_type"] == "cc0"
