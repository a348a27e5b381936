import gzip
import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets.judgments import read_qrels, read_run, write_qrels, write_run
from searchlab.photos.photo import photo_id_of

QRELS = {"dunes": {"a": 3, "b": 1}, "harbour": {"c": 0}}
RUN = {"dunes": ["b", "a"], "harbour": ["c"]}
NAMES = st.text("abcäß狗0-_#", min_size=1, max_size=5)


def test_reads_trec_qrels():
    assert read_qrels("dunes 0 a 3\ndunes   0  b  1\n\nharbour 0 c 0\n") == QRELS


@pytest.mark.parametrize("name", ["qrels.trec", "qrels.tsv", "qrels.trec.gz", "qrels.tsv.gz"])
def test_qrels_survive_a_round_trip(tmp_path, name):
    write_qrels(QRELS, tmp_path / name)
    assert read_qrels(tmp_path / name) == QRELS


@pytest.mark.parametrize("name", ["run.trec", "run.tsv", "run.gz", "run.tsv.gz"])
def test_runs_survive_a_round_trip(tmp_path, name):
    write_run(RUN, tmp_path / name)
    assert read_run(tmp_path / name) == RUN


@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=60, unique=True), min_size=1))
def test_any_run_survives_a_round_trip(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("runs")
    write_run(run, folder / "run.trec")
    write_run(run, folder / "run.tsv")
    write_run(run, folder / "run.gz")
    assert read_run(folder / "run.trec") == run
    assert read_run(folder / "run.tsv") == run
    assert read_run(folder / "run.gz") == run


def test_a_compressed_run_holds_the_bytes_of_the_plain_one_and_no_time(tmp_path, monkeypatch):
    write_run(RUN, tmp_path / "plain.trec")
    write_run(RUN, tmp_path / "one.gz")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_run(dict(reversed(RUN.items())), tmp_path / "two.gz")
    data = (tmp_path / "one.gz").read_bytes()
    assert data == (tmp_path / "two.gz").read_bytes()
    assert gzip.decompress(data) == (tmp_path / "plain.trec").read_bytes()


@pytest.mark.parametrize("read", [read_qrels, read_run])
@pytest.mark.parametrize("keep", [0, 5, 30])
def test_a_compressed_file_that_is_cut_short_is_refused(tmp_path, read, keep):
    data = gzip.compress(b"q 0 a 1\n" * 50, mtime=0)
    (tmp_path / "cut.gz").write_bytes(data[:keep])
    with pytest.raises(InputError, match=r"cut\.gz must be a whole gzip file"):
        read(tmp_path / "cut.gz")


@pytest.mark.parametrize("read", [read_qrels, read_run])
def test_a_name_that_promises_gzip_is_held_to_it(tmp_path, read):
    (tmp_path / "plain.gz").write_text("q 0 a 1\n")
    with pytest.raises(InputError, match=r"plain\.gz must be a whole gzip file, got: Not a gzip"):
        read(tmp_path / "plain.gz")


def test_trec_files_look_as_trec_defines_them(tmp_path):
    write_qrels({"q": {"p": 2}}, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text("utf-8") == "q 0 p 2\n"
    write_run({"q": ["p", "r"]}, tmp_path / "run.txt", tag="mini")
    expected = "q Q0 p 1 1.0 mini\nq Q0 r 2 0.5 mini\n"
    assert (tmp_path / "run.txt").read_text("utf-8") == expected


def test_a_trec_run_is_ordered_by_score_then_rank():
    assert read_run("q Q0 a 1 0.2 x\nq Q0 b 3 0.9 x\nq Q0 c 2 0.9 x\n") == {"q": ["c", "b", "a"]}


@pytest.mark.parametrize("scores", [[0.5, 0.75], [0.5], [0.5, math.nan], [math.inf, 0.5], []])
def test_scores_that_would_be_read_in_another_order_are_not_written(tmp_path, scores):
    path = tmp_path / "run.trec"
    with pytest.raises(InputError, match="never rise, got"):
        write_run({"dunes": ["b", "a"]}, path, scores={"dunes": scores})
    assert not path.exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "run.gz"
    write_run(RUN, path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError):  # noqa: PT011
        write_run({"dunes": ["z"]}, path)
    assert path.read_bytes() == before


def test_tsv_qrels_may_name_photos_by_their_source():
    text = "query_id\tsource\tsource_photo_id\trelevance\nq\tpond\ta b\t1\n"
    assert read_qrels(text) == {"q": {photo_id_of("pond", "a b"): 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one judgment"),
        ("q 0 a\n", "text:1 must have the columns query_id, 0, photo_id, relevance"),
        ("q 0 a 1\nq 0 b high\n", "text:2 must have a number as relevance, got 'high'"),
        ("query_id\tphoto\tgrade\nq\ta\t1\n", "text:1 must have the columns query_id, photo_id"),
        ("q 0 a 0.5\n", "a whole number"),
        ("q 0 a nan\n", "a number as relevance"),
        ("q 0 a -1\n", "text:1 must have a whole number from 0 to 1000 as relevance, got '-1'"),
        ("q 0 a 1001\n", "a whole number from 0 to 1000"),
        ("q 0 -1 1\n", "text:1 must have an id as photo_id, got '-1'"),
        ("None 0 a 1\n", "text:1 must have an id as query_id, got 'None'"),
        ("query_id\tphoto_id\trelevance\nq\t\t1\n", "text:2 must have an id as photo_id, got ''"),
        ("query_id\tsource\tsource_photo_id\trelevance\nq\tpond\tnan\t1\n", "as source_photo_id"),
        ("q 0 a 1\nq 0 a 2\n", "must judge a photo once, got 'a' again for 'q'"),
    ],
)
def test_unusable_qrels_say_where_and_why(text, message):
    with pytest.raises(InputError, match=message):
        read_qrels(text)


def test_a_run_names_a_photo_once():
    with pytest.raises(InputError, match="a run must name a photo once for 'q', got 'a' again"):
        read_run("q Q0 a 1 1 x\nq Q0 a 2 0.5 x\n")


@pytest.mark.parametrize("padding", ["-1", "None", "NaN", "null", "<NA>"])
def test_padding_is_no_answer(padding):
    with pytest.raises(InputError, match=f"text:2 must have an id as photo_id, got '{padding}'"):
        read_run(f"q Q0 a 1 1 x\nq Q0 {padding} 2 0.5 x\n")


@pytest.mark.parametrize("name", ["qrels.trec", "qrels.tsv"])
def test_the_mark_that_some_editors_put_first_is_no_part_of_an_id(tmp_path, name):
    path = tmp_path / name
    write_qrels({"q1": {"a": 2}}, path)
    path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert read_qrels(path) == {"q1": {"a": 2}}


def test_grades_may_be_written_as_floats():
    assert read_qrels("q 0 a 2.0\n") == {"q": {"a": 2}}


def test_deep_runs_are_read_in_linear_time():
    text = "".join(f"q Q0 p{rank} {rank} {1 / rank} x\n" for rank in range(1, 30_001))
    started = time.process_time()
    assert len(read_run(text)["q"]) == 30_000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("read", [read_qrels, read_run])
def test_a_file_that_cannot_be_read_is_named_with_what_to_do(tmp_path, read):
    with pytest.raises(NotFoundError, match=r"nope\.tsv must be a file .* check the path"):
        read(tmp_path / "nope.tsv")
    with pytest.raises(InputError, match="must be a file that can be read, got: Is a directory"):
        read(tmp_path)
    (tmp_path / "latin.tsv").write_bytes("q 0 schön 1\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.tsv must be text in UTF-8, got other bytes at 7"):
        read(tmp_path / "latin.tsv")


@pytest.mark.parametrize("read", [read_qrels, read_run])
def test_the_name_of_a_file_is_not_taken_for_its_text(read):
    with pytest.raises(InputError, match=r"got 'qrels\.tsv'; pass a file as a Path"):
        read("qrels.tsv")


@pytest.mark.parametrize("photo_id", ["a b", "", "a\n", "-1", "None"])
def test_ids_with_spaces_are_not_written(tmp_path: Path, photo_id):
    with pytest.raises(InputError, match="an id must be text without spaces"):
        write_run({"q": [photo_id]}, tmp_path / "run.trec")
