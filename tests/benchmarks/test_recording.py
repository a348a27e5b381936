import sys

import pytest

from benchmarks.common import recording
from benchmarks.common.recording import bench_parser, median_ms, on_record, record
from searchlab.errors import InputError
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import read_measurement


@pytest.fixture
def options(tmp_path):
    """The command line of a script, as the words of it are given."""

    def parse(*words):
        parser = bench_parser("What it does.\n\n    how to call it", dataset="demo")
        return parser.parse_args(["--out", str(tmp_path / "out"), *words])

    return parse


def measured(share=0.5, **manifest):
    return {"metrics": {"share": share}, "manifest": {**make_manifest("index"), **manifest}}


def test_every_script_has_the_same_command_line(options):
    defaults = options()
    names = ["allow_changes", "dataset", "force", "out", "runs", "seed", "smoke", "threads"]
    assert sorted(vars(defaults)) == names
    assert (defaults.dataset, defaults.runs, defaults.seed, defaults.threads) == ("demo", 5, 0, 1)
    assert (defaults.force, defaults.smoke) == (False, False)


def test_bad_input_is_said_in_one_line_and_a_fault_of_ours_with_where_it_happened(
    options, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "argv", ["benchmarks/scale/bench_scale.py"])
    options()
    for error in (InputError("a size must be a number, got 'foo'"), ZeroDivisionError("ours")):
        try:
            raise error
        except type(error):
            sys.excepthook(*sys.exc_info())
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "bench_scale.py: error: a size must be a number, got 'foo'"
    assert said[1].startswith("Traceback")
    assert said[-1] == "ZeroDivisionError: ours"


@pytest.mark.parametrize("option", ["--runs", "--threads"])
@pytest.mark.parametrize("given", ["0", "few"])
def test_runs_and_threads_are_counted_from_one(options, capsys, option, given):
    with pytest.raises(SystemExit):
        options(option, given)
    said = f"argument {option}: must be a whole number, at least 1, got {given!r}"
    assert said in capsys.readouterr().err


def test_a_script_that_times_refuses_other_machines(options, capsys):
    with pytest.raises(SystemExit):
        options("--on", "ray:auto")
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "error:" in one]
    assert "--on must be left out, got 'ray:auto'" in line
    assert "holds for one machine that does nothing else" in line


def test_a_script_may_be_spread_if_its_study_shares_machines():
    parser = bench_parser("doc", dataset="demo", spreads="search_quality")
    assert parser.parse_args(["--smoke", "--on", "ray:auto"]).on == "ray:auto"
    with pytest.raises(InputError, match="must share machines, got 'serving', which does not"):
        bench_parser("doc", dataset="demo", spreads="serving")


def test_a_script_may_have_a_cluster_to_measure():
    parser = bench_parser("doc", dataset="demo")
    parser.add_argument("--on", default="ray:local")
    assert parser.parse_args(["--smoke"]).on == "ray:local"
    assert parser.parse_args(["--smoke", "--on", "ray:auto"]).on == "ray:auto"


def test_results_lie_beside_the_scripts(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "benchmarks" / "index" / "bench_speed.py")])
    arguments = bench_parser("doc", dataset="demo").parse_args([])
    assert arguments.out == tmp_path / "results"


def test_a_script_may_say_which_datasets_it_knows(capsys):
    parser = bench_parser("doc", dataset="demo", datasets=["demo", "stamps"])
    assert parser.parse_args(["--dataset", "stamps"]).dataset == "stamps"
    with pytest.raises(SystemExit):
        parser.parse_args(["--dataset", "flickr8k"])
    assert "invalid choice" in capsys.readouterr().err


def test_what_was_recorded_is_found_again(options, tmp_path):
    path = record(options(), "index", "mini", measured())
    assert path == tmp_path / "out" / "index" / "demo" / "mini.json"
    read_back = on_record(options(), "index", "mini")
    assert read_back == read_measurement(path)
    assert (read_back["benchmark"], read_back["dataset"], read_back["name"]) == (
        "index",
        "demo",
        "mini",
    )


def test_what_is_not_there_or_forced_is_measured(options):
    assert on_record(options(), "index", "mini") is None
    record(options(), "index", "mini", measured())
    assert on_record(options("--force"), "index", "mini") is None
    assert on_record(options("--dataset", "stamps"), "index", "mini") is None
    assert on_record(options(), "index", "palette") is None


@pytest.mark.parametrize("name", ["code_of", "machine"])
def test_other_code_or_another_machine_is_measured_again(options, monkeypatch, name):
    record(options(), "index", "mini", measured())
    monkeypatch.setattr(recording, name, lambda *names: "another")
    assert on_record(options(), "index", "mini") is None
    read_back = on_record(options(), "index", "mini", any_code=True)
    assert (read_back is not None) == (name == "code_of")


def test_another_seed_or_number_of_threads_is_measured_again_where_they_count(options):
    record(options(), "index", "mini", measured(seed=0, threads=1))
    assert on_record(options("--seed", "1"), "index", "mini") is None
    assert on_record(options("--threads", "2"), "index", "mini") is None
    assert on_record(options("--seed", "0", "--threads", "1"), "index", "mini") is not None
    record(options(), "index", "drawn", measured(seed=None, threads=None))
    assert on_record(options("--seed", "1", "--threads", "2"), "index", "drawn") is not None


def test_a_changed_record_is_said_and_measured_again(options, capsys):
    path = record(options(), "index", "mini", measured())
    path.write_text(path.read_text(encoding="utf-8").replace("0.5", "0.9"), encoding="utf-8")
    capsys.readouterr()
    assert on_record(options(), "index", "mini") is None
    assert "changed after they were written" in capsys.readouterr().out


def test_files_beside_it_are_sealed_with_it(options, tmp_path):
    chart = tmp_path / "out" / "index" / "demo" / "mini.svg"
    chart.parent.mkdir(parents=True)
    chart.write_text("<svg/>")
    record(options(), "index", "mini", measured(), beside=[chart])
    chart.write_text("<svg></svg>")
    assert on_record(options(), "index", "mini") is None


def test_a_smoke_run_keeps_out_of_the_results(monkeypatch, tmp_path, options):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "benchmarks" / "index" / "bench_speed.py")])
    smoke = bench_parser("doc", dataset="demo").parse_args(["--smoke"])
    with pytest.raises(InputError, match="must keep out of"):
        record(smoke, "index", "mini", measured())
    assert not (tmp_path / "results").exists()
    assert record(options("--smoke"), "index", "mini", measured()).exists()


def test_the_median_leaves_out_the_first_run_and_outliers():
    moments = iter([0, 1, 10, 12, 20, 23, 30, 130, 200, 202])
    calls = []
    assert median_ms(lambda: calls.append(1), runs=5, clock=moments.__next__) == 2000
    assert len(calls) == 6
