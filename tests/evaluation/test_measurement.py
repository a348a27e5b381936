import copy
import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.evaluation.provenance.measurement import (
    measurement_path,
    read_measurement,
    write_measurement,
)
from searchlab.files import digest_of

VALUES = {
    "benchmark": "speed",
    "dataset": "demo",
    "name": "mini",
    "parameters": {"k": 10, "seed": 0, "note": "naïve"},
    "metrics": {"recall@10": 0.25, "n": 3, "p50_ms": 1.5},
    "curve": [[0.0, 1.0], [0.5, None], [True, "end"]],
    "manifest": {"code": "0.1+abc", "machine": "here", "packages": {"numpy": "2"}},
}


@pytest.fixture
def written(tmp_path):
    run = tmp_path / "speed" / "demo" / "mini.run.gz"
    run.parent.mkdir(parents=True)
    run.write_bytes(b"a run")
    path = measurement_path(tmp_path, "speed", "demo", "mini")
    return write_measurement(path, VALUES, beside=[run])


def rewrite(path, values):
    path.write_text(json.dumps(values), encoding="utf-8")


def leaves(values, way=()):
    """List the ways to every plain value."""
    if isinstance(values, dict | list):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        return [leaf for key, value in items for leaf in leaves(value, (*way, key))]
    return [way]


def changed(values, way, value):
    copied = copy.deepcopy(values)
    *above, last = way
    inner = copied
    for key in above:
        inner = inner[key]
    inner[last] = value
    return copied


def test_a_second_value_under_a_name_is_found(written):
    """The seal holds the last of the two; a person reads the first."""
    text = written.read_text(encoding="utf-8")
    forged = text.replace('"metrics": {', '"metrics": {"recall@10": 0.99},\n "metrics": {', 1)
    written.write_text(forged, encoding="utf-8")
    assert json.loads(forged) == json.loads(text)
    with pytest.raises(DataError, match="a name that stands twice"):
        read_measurement(written)


def test_what_was_written_is_read(written, tmp_path):
    assert written == tmp_path / "speed" / "demo" / "mini.json"
    read_back = read_measurement(written)
    assert {name: read_back[name] for name in VALUES} == VALUES
    assert set(read_back) == {*VALUES, "schema", "files", "digest"}
    assert list(read_back["files"]) == ["mini.run.gz"]


def test_it_is_readable_text_that_diffs_line_by_line(written):
    text = written.read_text(encoding="utf-8")
    assert "naïve" in text
    assert '\n  "recall@10": 0.25,\n' in text
    assert text.endswith("}\n")


def test_another_layout_of_the_same_values_is_the_same_measurement(written):
    values = read_measurement(written)
    backwards = dict(reversed(values.items()))
    written.write_text(json.dumps(backwards, indent=4, ensure_ascii=True), encoding="utf-8")
    assert read_measurement(written) == values


SEALED = {"schema": 2, **VALUES, "files": {"mini.run.gz": "0" * 64}}
SEALED["digest"] = digest_of(SEALED)
OTHER = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)


def told_apart(a, b):
    # As JSON has them: 1 is not 1.0, and not True.
    return json.dumps(a) != json.dumps(b)


@given(data=st.data())
def test_any_single_changed_value_changes_the_digest(data):
    way = data.draw(st.sampled_from([way for way in leaves(SEALED) if way != ("digest",)]))
    old = SEALED
    for key in way:
        old = old[key]
    new = data.draw(OTHER.filter(lambda value: told_apart(value, old)))
    assert digest_of(changed(SEALED, way, new)) != SEALED["digest"]


@given(data=st.data())
def test_the_least_change_of_any_number_is_found(data):
    numbers = [way for way in leaves(SEALED) if way[0] in ("metrics", "curve", "parameters")]
    way = data.draw(st.sampled_from(numbers))
    old = SEALED
    for key in way:
        old = old[key]
    if isinstance(old, int | float) and not isinstance(old, bool):
        for off in (1e-6, -1e-6, 1):
            assert digest_of(changed(SEALED, way, old + off)) != SEALED["digest"]


@given(data=st.data())
def test_a_renamed_added_or_dropped_key_is_found(data):
    parts = st.sampled_from(["parameters", "metrics", "manifest", "files"])
    part = data.draw(parts)
    key = data.draw(st.sampled_from(sorted(SEALED[part])))
    name = data.draw(st.text(max_size=6).filter(lambda name: name not in SEALED[part]))
    renamed, added, dropped = (copy.deepcopy(SEALED) for _ in range(3))
    renamed[part][name] = renamed[part].pop(key)
    added[part][name] = 1
    del dropped[part][key]
    for mutant in (renamed, added, dropped):
        assert digest_of(mutant) != SEALED["digest"]


@pytest.mark.parametrize("way", [way for way in leaves(SEALED) if way[0] != "schema"])
def test_a_file_with_any_value_changed_is_refused(written, way):
    values = json.loads(written.read_text(encoding="utf-8"))
    rewrite(written, changed(values, way, "something else"))
    with pytest.raises(DataError, match="measure again"):
        read_measurement(written)


def test_two_swapped_numbers_are_found(written):
    values = json.loads(written.read_text(encoding="utf-8"))
    metrics = values["metrics"]
    metrics["n"], metrics["p50_ms"] = metrics["p50_ms"], metrics["n"]
    rewrite(written, values)
    with pytest.raises(DataError, match="changed after they were written"):
        read_measurement(written)


@pytest.mark.parametrize("change", [b"another", b"", b"a run\n", None])
def test_a_changed_or_missing_file_beside_it_is_found(written, change):
    run = written.with_name("mini.run.gz")
    run.unlink() if change is None else run.write_bytes(change)
    with pytest.raises(DataError, match=r"mini\.run\.gz beside it"):
        read_measurement(written)


@pytest.mark.parametrize("schema", [1, 3, "2", None])
def test_another_schema_is_refused(written, schema):
    values = {**json.loads(written.read_text(encoding="utf-8")), "schema": schema}
    rewrite(written, {**values, "digest": digest_of(values)})
    with pytest.raises(DataError, match="this searchlab reads 2"):
        read_measurement(written)


@pytest.mark.parametrize("name", ["benchmark", "dataset", "name", "metrics", "manifest", "files"])
def test_a_measurement_without_a_part_is_refused_though_sealed(written, name):
    values = json.loads(written.read_text(encoding="utf-8"))
    del values[name]
    rewrite(written, {**values, "digest": digest_of(values)})
    with pytest.raises(DataError, match=f"no {name}"):
        read_measurement(written)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"schema": 2}', "\udcff"])
def test_anything_else_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match="must hold a sealed measurement"):
        read_measurement(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DataError, match="must hold a sealed measurement"):
            read_measurement(path)


def test_it_may_be_moved_with_its_files(written, tmp_path):
    elsewhere = shutil.copytree(written.parent, tmp_path / "elsewhere")
    assert read_measurement(elsewhere / written.name) == read_measurement(written)
    (elsewhere / "mini.run.gz").unlink()
    with pytest.raises(DataError, match="beside it"):
        read_measurement(elsewhere / written.name)


def test_a_number_that_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    path = measurement_path(tmp_path, "speed", "demo", "mini")
    for bad in (float("nan"), float("inf")):
        with pytest.raises(InputError, match="finite"):
            write_measurement(path, {**VALUES, "metrics": {"recall@10": bad}})
    assert not path.exists()


def test_what_could_not_be_read_again_is_refused_before_anything_is_written(tmp_path):
    path = measurement_path(tmp_path, "speed", "demo", "mini")
    for name in ("benchmark", "metrics", "manifest"):
        with pytest.raises(InputError, match=f"none of \\['{name}'\\]"):
            write_measurement(path, {key: value for key, value in VALUES.items() if key != name})
    stray = tmp_path / "run.gz"
    stray.write_bytes(b"")
    with pytest.raises(InputError, match="its files in"):
        write_measurement(path, VALUES, beside=[stray])
    assert not path.exists()


def test_a_key_given_by_the_caller_cannot_pass_for_the_seal(tmp_path):
    path = measurement_path(tmp_path, "speed", "demo", "mini")
    write_measurement(path, {**VALUES, "digest": "0" * 16, "schema": 7, "files": {"x": "y"}})
    read_back = read_measurement(path)
    assert (read_back["schema"], read_back["files"]) == (2, {})


def test_keys_that_are_numbers_and_tuples_are_sealed_as_they_will_be_read(tmp_path):
    path = measurement_path(tmp_path, "speed", "demo", "mini")
    write_measurement(path, {**VALUES, "by_k": {2: (1, 2), 10: (3, 4)}})
    assert read_measurement(path)["by_k"] == {"2": [1, 2], "10": [3, 4]}
