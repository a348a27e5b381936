import json
import os
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.photos.sidecar import Record, Skipped, read_records
from tests.support.examples import examples

GOOD = b'{"file": "good.jpg", "title": "kept"}\n'


@pytest.fixture
def sidecar(tmp_path):
    """Writes bytes to a sidecar file and reads it back."""

    def write(content):
        path = tmp_path / "photos.jsonl"
        path.write_bytes(content)
        return list(read_records(path))

    return write


def test_a_line_names_a_picture_beside_the_file_and_what_is_said_of_it(sidecar, tmp_path):
    line = {
        "file": "sub/fox.jpg",
        "source": "wikimedia",
        "source_photo_id": "42",
        "source_image_url": "https://example.org/42",
        "title": "Fox",
        "photographer_username": "ana",
        "photographer_full_name": "Ana B.",
        "photographer_url": "https://example.org/ana",
        "source_description": "A fox in snow",
        "alt_description": "fox",
        "license_type": "cc0",
        "license_url": "https://example.org/cc0",
        "uploaded_on": "2020-02-29",
        "tags": ["fox", "Fuchs"],
        "place": "Oulu, Finland",
        "latitude": 65,
        "longitude": -25.4,
        "rating": 5,
    }
    fields = {name: value for name, value in line.items() if name != "file"}
    fields["tags"] = ("fox", "Fuchs")
    entries = sidecar(json.dumps(line).encode())
    assert entries == [((tmp_path / "sub/fox.jpg").resolve(), Record(**fields))]


def test_unknown_keys_are_ignored_and_null_is_empty(sidecar):
    [(_, record)] = sidecar(b'{"file": "a.jpg", "title": null, "camera": "box", "exif": {"f": 8}}')
    assert record == Record()


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{",
        b'{"file": "a.jpg"',
        b"{'file': 'a.jpg'}",
        b'{"file": "a.jpg"} {"file": "b.jpg"}',
        b"[]",
        b'["a.jpg"]',
        b'"a.jpg"',
        b"7",
        b"null",
        b"NaN",
        b"{}",
        b'{"title": "no file"}',
        b'{"file": ""}',
        b'{"file": null}',
        b'{"file": 7}',
        b'{"file": ["a.jpg"]}',
        b'{"file": "a\\u0000.jpg"}',
        b'{"file": "a.jpg", "title": 7}',
        b'{"file": "a.jpg", "title": true}',
        b'{"file": "a.jpg", "title": ["x"]}',
        b'{"file": "a.jpg", "title": {"x": 1}}',
        b'{"file": "a.jpg", "title": NaN}',
        b'{"file": "a.jpg", "source_photo_id": 42}',
        b'{"file": "a.jpg", "uploaded_on": "yesterday"}',
        b'{"file": "a.jpg", "uploaded_on": "2024-13-01"}',
        b'{"file": "a.jpg", "uploaded_on": "2023-02-29"}',
        b'{"file": "a.jpg", "uploaded_on": "2024-01-01T00:00:00"}',
        b'{"file": "a.jpg", "uploaded_on": 20240101}',
        b'{"file": "a.jpg", "tags": "fox"}',
        b'{"file": "a.jpg", "tags": ["fox", 7]}',
        b'{"file": "a.jpg", "latitude": 7}',
        b'{"file": "a.jpg", "latitude": 7, "longitude": "8"}',
        b'{"file": "a.jpg", "latitude": true, "longitude": 8}',
        b'{"file": "a.jpg", "latitude": 0, "longitude": 0.0}',
        b'{"file": "a.jpg", "latitude": 90.1, "longitude": 0}',
        b'{"file": "a.jpg", "latitude": NaN, "longitude": 0}',
        b'{"file": "a.jpg", "rating": 6}',
        b'{"file": "a.jpg", "rating": -2}',
        b'{"file": "a.jpg", "rating": 3.0}',
        b'{"file": "a.jpg", "rating": true}',
        b'{"file": "a.jpg", "title": "\xff\xfe"}',
        b"\x80abc",
        b'\0{"file": "a.jpg"}',
        b'{"file": "a.jpg", "n": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_line_that_cannot_be_used_is_a_problem_and_the_next_line_counts(sidecar, line):
    bad, (path, record) = sidecar(line + b"\n" + GOOD)
    assert isinstance(bad, Skipped)
    assert bad.where.endswith("photos.jsonl:1")
    assert bad.reason
    assert (path.name, record.title) == ("good.jpg", "kept")


@pytest.mark.parametrize("title", ["5", "true", "[5]", '{"x": null}'])
def test_a_text_that_is_none_is_quoted_as_it_is(sidecar, title):
    [bad] = sidecar(b'{"file": "a.jpg", "title": %s}' % title.encode())
    assert bad.reason.endswith(f"got {json.loads(title)!r}")


def test_text_of_ten_thousand_characters_passes_and_one_more_is_a_problem(sidecar):
    longest = json.dumps({"file": "a.jpg", "title": "é" * 10_000}).encode()
    longer = json.dumps({"file": "a.jpg", "title": "é" * 10_001}).encode()
    (_, record), problem = sidecar(longest + b"\n" + longer)
    assert record.title == "é" * 10_000
    assert "title" in problem.reason
    assert len(problem.reason) < 300


@pytest.mark.parametrize("depth", [100, 300, 500, 800, 900, 950, 980, 990, 1_000, 5_000, 100_000])
def test_nesting_of_any_depth_is_a_problem(sidecar, depth):
    nested = b"[" * depth + b"]" * depth
    bad, (path, _) = sidecar(b'{"file": "a.jpg", "title": ' + nested + b"}\n" + GOOD)
    assert isinstance(bad, Skipped)
    assert path.name == "good.jpg"


def test_a_byte_order_mark_windows_line_ends_and_blank_lines_are_no_problem(sidecar):
    entries = sidecar(
        b'\xef\xbb\xbf{"file": "a.jpg"}\r\n\r\n   \n\t\n{"file": "b.jpg"}\r\n\n{"file": "c.jpg"}'
    )
    assert [path.name for path, _ in entries] == ["a.jpg", "b.jpg", "c.jpg"]


def test_the_number_of_a_bad_line_counts_blank_lines(sidecar):
    assert [one.where.rpartition(":")[2] for one in sidecar(b"\n\nbad\n\nworse")] == ["3", "5"]


def test_an_empty_file_has_no_records(sidecar):
    assert sidecar(b"") == []


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'; DROP TABLE files; --",
        "[bold red]markup[/bold red] [link=https://example.org]x[/link]",
        "{{ 7 * 7 }} ${HOME} %s %n",
        "../../../etc/passwd",
        "ﷺ زرافة 🦒 ጎሽ e\u0301\u0323 \u202eevil",
        "-",
    ],
)
def test_hostile_strings_survive_as_text(sidecar, text):
    [(_, record)] = sidecar(json.dumps({"file": "a.jpg", "source_description": text}).encode())
    assert record.source_description == text


def test_control_characters_and_lone_surrogates_are_dropped(sidecar):
    line = rb'{"file": "a.jpg", "title": "a\u0000b\u001b[31mc\ud800d\udfffe\tf\ng"}'
    assert [record.title for _, record in sidecar(line)] == ["ab[31mcde\tf\ng"]


def test_a_file_may_be_named_with_them_but_for_nul_and_lone_surrogates(sidecar, tmp_path):
    """Such as "ß" that was encoded twice."""
    names = ["Stra\xc3\x9fe.jpg", "a\x1b[31m.jpg", "a\n.jpg", "a\x7f.jpg"]
    lines = b"\n".join(json.dumps({"file": name}).encode() for name in names)
    assert [path for path, _ in sidecar(lines)] == [tmp_path / name for name in names]
    for name in ("a\0.jpg", "a\ud800.jpg"):
        [refused] = sidecar(json.dumps({"file": name}).encode())
        assert "without NUL" in refused.reason


def test_eight_bit_control_characters_are_dropped_too(sidecar):
    # U+009B opens an escape sequence in a terminal just as ESC [ does.
    line = rb'{"file": "a.jpg", "title": "a\u009b31mb\u007fc\u0085d"}'
    assert [record.title for _, record in sidecar(line)] == ["a31mbcd"]


def test_surrogates_that_were_written_as_bytes_are_dropped(sidecar):
    [entry] = sidecar(b'{"file": "a.jpg", "title": "a\xed\xa0\x80b"}')
    assert isinstance(entry, Skipped) or entry[1].title == "ab"


@pytest.mark.parametrize("name", [r"\ud800.jpg", r"\udc80.jpg", r"\udfff/\udcff.jpg"])
def test_what_is_said_of_a_file_name_with_lone_surrogates_can_be_printed(sidecar, name):
    [entry] = sidecar(b'{"file": "' + name.encode() + b'"}')
    where = entry.where if isinstance(entry, Skipped) else str(entry[0])
    where.encode()


def test_blanks_around_a_text_are_dropped(sidecar):
    line = {"file": "a.jpg", "title": "  x \n", "uploaded_on": " 2020-01-02 "}
    [(_, record)] = sidecar(json.dumps(line).encode())
    assert (record.title, record.uploaded_on) == ("x", "2020-01-02")


def test_a_file_name_may_climb_out_or_be_absolute(sidecar, tmp_path):
    up, absolute = sidecar(b'{"file": "../up.jpg"}\n{"file": "/somewhere/else.jpg"}')
    assert up[0] == (tmp_path.parent / "up.jpg").resolve()
    assert str(absolute[0]) == "/somewhere/else.jpg"


def test_a_file_name_that_is_a_loop_of_links_is_a_problem(sidecar, tmp_path):
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    entry, (path, _) = sidecar(b'{"file": "loop.jpg"}\n' + GOOD)
    assert isinstance(entry, Skipped) or entry[0].name == "loop.jpg"
    assert path.name == "good.jpg"


def test_a_file_name_longer_than_any_file_system_allows_stops_nothing(sidecar):
    line = json.dumps({"file": "x" * 5_000 + ".jpg"}).encode()
    assert len(sidecar(line + b"\n" + GOOD)) == 2


def test_a_sidecar_that_cannot_be_read_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"photos\.jsonl"):
        list(read_records(tmp_path / "photos.jsonl"))
    with pytest.raises(InputError, match="readable"):
        list(read_records(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="permission bits do not bind root")
def test_a_sidecar_without_permission_is_an_input_error(tmp_path):
    path = tmp_path / "photos.jsonl"
    path.touch(mode=0o000)
    with pytest.raises(InputError, match="Permission"):
        list(read_records(path))


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=120))
def test_no_bytes_raise(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    for entry in read_records(path):
        assert isinstance(entry, tuple | Skipped)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.dictionaries(st.sampled_from(["file", "title", "source", "uploaded_on", "x"]), _json).map(
        lambda values: {"file": "a.jpg", **values}
    )
)
def test_no_json_object_raises_and_texts_come_out_as_unicode(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text(json.dumps(values), encoding="ascii")
    [entry] = list(read_records(path))
    if isinstance(entry, Skipped):
        entry.reason.encode()
    else:
        "".join(map(str, astuple(entry[1]))).encode()
