"""Teachers' figures are kept from a record of the same texts, and from no other."""

import argparse

import pytest

from benchmarks.mini.bench_mini import keep_conse
from benchmarks.mini.bench_reading import keep_teacher
from benchmarks.mini.teachers import describe, read_kept
from searchlab.evaluation.provenance.measurement import measurement_path, write_measurement

RECORD = {
    "benchmark": "reading",
    "dataset": "drawn",
    "name": "mini",
    "parameters": {},
    "metrics": {"R@1.all": 0.5, "teacher.R@1.all": 0.9},
    "by_language": {"de": {"sentences": 300, "teacher": {"mean": 90.0}}},
    "manifest": {"code": "1", "commit": "abc", "date": "2026-11-23", "machine": "m"},
}


def options_of(folder, **more):
    named = {"out": folder, "dataset": "drawn", "teacher": None} | more
    return argparse.Namespace(**named)


def test_a_record_that_is_there_is_read_and_described(tmp_path):
    write_measurement(measurement_path(tmp_path, "reading", "drawn", "mini"), RECORD)
    kept = read_kept(options_of(tmp_path), "reading", "mini")
    assert describe(kept) == {"date": "2026-11-23", "commit": "abc"}
    # Kept once more, they are still of the first record.
    kept["parameters"]["teachers"] = {"date": "2025-01-01", "commit": "first"}
    assert describe(kept)["commit"] == "first"


def test_no_record_or_both_options_end_with_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="--keep-teachers must find a record"):
        read_kept(options_of(tmp_path), "reading", "mini")
    with pytest.raises(SystemExit, match="give one of the two"):
        read_kept(options_of(tmp_path, teacher="packages"), "reading", "mini")


def test_a_teacher_is_kept_for_the_same_sentences_alone():
    rows = {"de": {"sentences": 300}}
    assert keep_teacher(RECORD, rows) == {"teacher.R@1.all": 0.9}
    assert rows["de"]["teacher"] == {"mean": 90.0}
    for other in ({"de": {"sentences": 299}}, {"fr": {"sentences": 300}}):
        with pytest.raises(SystemExit, match="the teacher's figures of the same"):
            keep_teacher(RECORD, other)


def test_what_is_beside_mini_is_kept_for_as_many_queries_alone():
    kept = {"same_sample": {"queries": 2, "mini": {"a": 1}, "ConSE e5": {"b": 2}}}
    assert keep_conse(kept, ["q1", "q2"]) == {"ConSE e5": {"b": 2}}
    with pytest.raises(SystemExit, match="figures of 3 queries"):
        keep_conse(kept, ["q1", "q2", "q3"])
