"""Files of other toolkits, each a few lines in the form that its documentation gives."""

import gzip
import json
import subprocess
import sys

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.outside.judged import read_judgments, read_labels
from searchlab.evaluation.outside.systems import read_system

ANSWERS = {"q1": {"b": 0.5, "a": 2.0}, "q2": {"c": 1.0}}
RUN = {"q1": ["a", "b"], "q2": ["c"]}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    return write


def task(name, subset, languages, score):
    figures = {"hf_subset": subset, "languages": languages, "main_score": score}
    figures["ndcg_at_10"] = score / 2
    return {"task_name": name, "mteb_version": "2.1.0", "scores": {"test": [figures]}}


def test_runs_of_trec_ranx_and_mteb_are_the_same_answers(write):
    trec = "q1 Q0 b 2 0.5 bm25\nq1 Q0 a 1 2.0 bm25\nq2 Q0 c 1 1.0 bm25\n"
    predictions = {"mteb_model_meta": {"model_name": "m"}, "default": {"test": ANSWERS}}
    for name, content in (
        ("bm25.trec", trec),
        ("bm25.run.txt", trec.replace(" ", "\t")),
        ("bm25.json", ANSWERS),
        ("bm25_predictions.json", predictions),
        ("bm25.tsv", "qid\tdocno\tscore\nq1\tb\t0.5\nq1\ta\t2\nq2\tc\t1\n"),
    ):
        system = read_system(write(name, content))
        assert system.run == RUN, name
        assert system.scores == {}
        assert system.name.startswith("bm25")


def test_a_run_as_parquet_is_read_too(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {"q_id": query, "doc_id": document, "score": score}
        for query, documents in ANSWERS.items()
        for document, score in documents.items()
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "dense.parquet")
    assert read_system(tmp_path / "dense.parquet").run == RUN


def test_equal_scores_are_in_the_order_of_ids_however_the_file_is_sorted(write):
    run = write("run.json", {"q": {"b": 1.0, "c": 1.0, "a": 1.0}})
    assert read_system(run).run == {"q": ["a", "b", "c"]}


@pytest.mark.slow
def test_the_output_of_ir_measures_by_query_is_read(write):
    qrels = write("qrels", "q1 0 a 1\nq2 0 x 1\n")
    run = write("run", "q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\nq2 Q0 c 1 1 t\n")
    command = [sys.executable, "-m", "ir_measures", qrels, run, "RR@10 P@1", "--by_query"]
    printed = {
        form: subprocess.run(
            [*command, "--output", form], capture_output=True, text=True, check=True
        ).stdout
        for form in ("tsv", "jsonl")
    }
    for form, text in printed.items():
        system = read_system(write(f"scores.{form}", text))
        assert system.scores == {
            "mrr@10": {"q1": 0.5, "q2": 0.0},
            "precision@1": {"q1": 0.0, "q2": 0.0},
        }
        assert system.run == {}


def test_the_output_of_trec_eval_q_is_read_without_its_summary(write):
    lines = "ndcg_cut_10           \tq1\t0.5\nndcg_cut_10           \tq2\t1.0\n"
    summary = "runid                 \tall\tbm25\nndcg_cut_10           \tall\t0.75\n"
    system = read_system(write("bm25.eval.txt", lines + summary))
    assert system.scores == {"ndcg@10": {"q1": 0.5, "q2": 1.0}}


def test_the_output_of_trec_eval_without_its_summary_is_read_by_its_measures(write):
    lines = ["map  \tq1\t0.5", "P_5 \tq1\t0.2", "map\tq2\t0.25", "P_5\tq2\t0.4"]
    system = read_system(write("scores.txt", "\n".join(lines)))
    assert system.scores == {"map": {"q1": 0.5, "q2": 0.25}, "precision@5": {"q1": 0.2, "q2": 0.4}}


def test_quoted_cells_may_hold_commas(write):
    system = read_system(write("s.csv", 'query_id,text,ndcg@10\nq1,"a cat, a dog",0.5\n'))
    assert system.scores == {"ndcg@10": {"q1": 0.5}}


def test_a_folder_of_several_models_or_revisions_is_refused(write, tmp_path):
    for place, score in (("a/1", 0.9), ("b/1", 0.1)):
        write(f"all/{place}/T.json", task("T", "default", ["eng-Latn"], score))
    with pytest.raises(InputError, match="one result of T/test/default, got several; give a fold"):
        read_system(tmp_path / "all")


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(b"q1 Q0 a 1 2.0 x\n" * 500, mtime=0)[:14] + b"\xff" * 40)
    for read in (read_system, read_judgments):
        with pytest.raises(InputError, match=r"run.gz must"):
            read(path)


def test_a_table_of_scores_may_name_languages_and_what_a_query_is_about(write):
    head = "query_id,lang,about,nDCG@10\n"
    system = read_system(write("scores.csv", f"{head}q1,de,p1,0.5\nq2,en,p1,1\n"))
    assert system.scores == {"ndcg@10": {"q1": 0.5, "q2": 1.0}}
    assert system.langs == {"q1": "de", "q2": "en"}
    assert system.clusters == {"q1": "p1", "q2": "p1"}


def test_a_folder_of_mtebs_results_has_a_unit_for_each_task_and_language(write, tmp_path):
    folder = "org__model/abc"
    write(f"{folder}/model_meta.json", {"name": "org/model"})
    write(f"{folder}/A.json", task("A", "de", ["deu-Latn"], 0.25))
    write(f"{folder}/B.json", task("B", "default", ["eng-Latn"], 0.75))
    system = read_system(f"mine={tmp_path / 'org__model'}")
    assert system.name == "mine"
    assert system.are_tasks
    assert list(system.scores) == ["main_score", "ndcg@10"]
    assert system.scores["main_score"] == {"A/test/de": 0.25, "B/test/default": 0.75}
    assert system.langs == {"A/test/de": "deu-Latn", "B/test/default": "eng-Latn"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", {"q": ["a", "b"]}, "must map queries to documents to scores"),
        ("a.json", "{", "must be whole, and of a form .* got JSONDecodeError"),
        ("a.json", {"de": {"test": ANSWERS}, "en": {"test": ANSWERS}}, "got de/test, en/test"),
        ("a.trec", "q1 a 1 2\n", "must be a run of TREC, six columns, or scores"),
        ("a.tsv", "q1\tRR@10\t0.5\nq1\tRR@10\t0.6\n", "must score a query once, got 'q1' again"),
        ("a.tsv", "query_id\tndcg@10\nq1\tnan\n", "must have a finite score"),
        ("a.lz4", "x", "must be unpacked first"),
        ("a.txt", "", "got ''"),
    ],
)
def test_what_is_no_system_is_refused_in_one_line(write, name, content, message):
    with pytest.raises(InputError, match=message):
        read_system(write(name, content))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.trec must be a run or scores"):
        read_system(tmp_path / "none.trec")
    with pytest.raises(NotFoundError, match="must be a file of judgments"):
        read_judgments(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.trec", "q1 0 a 2\nq1 0 spam -2\nq2 0 b 1\nhopeless 0 c 0\n"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tspam\t0\nq2\tb\t1\nhopeless\tc\t0"),
        ("qrels.json", {"q1": {"a": 2, "spam": -2}, "q2": {"b": 1}, "hopeless": {"c": 0}}),
    ],
)
def test_judgments_of_trec_beir_and_ranx_are_the_same(write, name, content):
    judged = read_judgments(write(name, content))
    assert judged.qrels == {"q1": {"a": 2, "spam": 0}, "q2": {"b": 1}}
    assert judged.n_without == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 0 a 1\nq1 a 1\n", r":2 must have the columns query, 0, document, grade"),
        ("q1 0 a 1\nq1 0 a 2\n", r":2 must judge a document once"),
        ("q1 0 a 0.5\n", "whole numbers"),
        ("q1 0 a 0\n", "must judge a document relevant for some query"),
    ],
)
def test_judgments_that_cannot_be_read_are_refused(write, content, message):
    with pytest.raises(InputError, match=message):
        read_judgments(write("qrels.trec", content))


def test_labels_of_queries_come_from_a_table(write):
    table = write("queries.tsv", 'query_id\tlang\ttext\nq1\tde\tein "Haus\nq2\ten\ta\n')
    assert read_labels(table) == ({"q1": "de", "q2": "en"}, {})
    with pytest.raises(InputError, match="must have the columns query_id, and lang or about"):
        read_labels(write("wrong.tsv", "id\ttext\nq1\ta\n"))


def test_labels_in_another_encoding_are_refused_and_short_rows_say_nothing(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes("query_id,lang,about\nq1,de,Käse\n".encode("latin-1"))
    with pytest.raises(InputError, match="must be a table of queries in UTF-8, got"):
        read_labels(path)
    path.write_text("query_id,lang,about\nq1,de\nq2,en,b\n")
    assert read_labels(path) == ({"q1": "de", "q2": "en"}, {"q2": "b"})


def test_tables_with_a_rank_are_read_by_score_or_by_rank(write):
    rows = [("q1", "b", 2, 0.5), ("q1", "a", 1, 2), ("q2", "c", 1, 1)]
    scored = "".join(f"{q},{d},{rank},{score},words\n" for q, d, rank, score in rows)
    ranked = "".join(f"{q},{d},{rank}\n" for q, d, rank, _ in rows)
    for name, text in (
        ("a.csv", f"qid,docno,rank,score,query\n{scored}"),
        ("b.csv", f"qid,docno,rank\n{ranked}"),
    ):
        assert read_system(write(name, text)).run == RUN


def test_a_document_twice_in_a_table_is_refused(write):
    path = write("a.csv", "qid,docno,score\nq1,d1,0.9\nq1,d1,0.1\n")
    with pytest.raises(InputError, match=r"a\.csv must rank a document once, got 'd1' again: q1"):
        read_system(path)
