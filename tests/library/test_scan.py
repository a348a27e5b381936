import hashlib
import json
import os

import pytest

from searchlab.errors import InputError
from searchlab.library import scan as scan_module
from searchlab.library.roots import Root, check_root
from searchlab.library.scan import scan_roots
from searchlab.progress import Progress


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def look(photos, cache):
    """Scans `photos`, or the roots that are given."""

    def scan(*roots):
        return scan_roots(roots or [Root(photos)], cache, Progress())

    return scan


@pytest.fixture
def read_files(monkeypatch):
    """Names of the files whose bytes are read."""
    names = []
    digest_of = hashlib.file_digest

    def counted(file, algorithm):
        names.append(os.path.basename(file.name))  # noqa: PTH119 - the name may be bytes
        return digest_of(file, algorithm)

    monkeypatch.setattr(scan_module.hashlib, "file_digest", counted)
    return names


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def names(scan):
    return [picture.path.name for picture in scan.pictures]


def test_files_in_all_folders_come_by_path_with_the_digest_of_their_bytes(look, photos):
    put(photos / "b.png", b"B")
    put(photos / "sub/deeper/a.png", b"A")
    scan = look()
    assert [(p.path, p.sha256) for p in scan.pictures] == [
        (photos / "b.png", sha256(b"B")),
        (photos / "sub/deeper/a.png", sha256(b"A")),
    ]
    assert (scan.problems, scan.missing) == ([], [])


def test_an_empty_folder_holds_nothing(look):
    scan = look()
    assert (scan.pictures, scan.problems, scan.missing) == ([], [], [])


def test_hidden_files_and_folders_are_left_out_and_named(look, photos):
    put(photos / ".hidden.png", b"1")
    put(photos / ".thumbnails/a.png", b"2")
    put(photos / "seen.png", b"3")
    put(photos / "sub/.DS_Store", b"4")
    os.mkfifo(photos / ".pipe")
    scan = look()
    assert names(scan) == ["seen.png"]
    assert {(problem.where, problem.reason) for problem in scan.problems} == {
        (str(photos / ".hidden.png"), "a hidden file"),
        (str(photos / ".thumbnails"), "a hidden folder"),
        (str(photos / "sub/.DS_Store"), "a hidden file"),
    }


def test_a_link_to_a_file_is_a_picture(look, photos, tmp_path):
    target = put(tmp_path / "elsewhere.png", b"E")
    (photos / "link.png").symlink_to(target)
    [picture] = look().pictures
    assert (picture.path, picture.sha256) == (photos / "link.png", sha256(b"E"))


def test_links_to_folders_are_not_followed_so_that_loops_end(look, photos):
    put(photos / "sub/a.png", b"A")
    (photos / "sub/again").symlink_to(photos, target_is_directory=True)
    (photos / "round").symlink_to("round")
    (photos / "broken.png").symlink_to("nowhere.png")
    assert names(look()) == ["a.png"]


def test_pipes_and_sockets_are_left_alone(look, photos):
    os.mkfifo(photos / "pipe.png")
    put(photos / "a.png", b"A")
    assert names(look()) == ["a.png"]


def test_an_empty_file_is_found_and_left_to_the_decoder(look, photos):
    put(photos / "empty.png", b"")
    assert names(look()) == ["empty.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="permission bits do not bind root")
def test_an_unreadable_file_and_an_unreadable_folder_are_reported(look, photos):
    put(photos / "a.png", b"A").chmod(0o000)
    put(photos / "closed/b.png", b"B").parent.chmod(0o000)
    put(photos / "c.png", b"C")
    scan = look()
    (photos / "closed").chmod(0o700)
    assert names(scan) == ["c.png"]
    assert {problem.where for problem in scan.problems} == {
        str(photos / "a.png"),
        str(photos / "closed"),
    }


def test_a_file_that_vanishes_or_cannot_be_read_is_reported(look, photos, monkeypatch):
    put(photos / "a.png", b"A")
    put(photos / "b.png", b"B")

    def failing(file, _algorithm):
        if file.name.endswith("a.png"):
            raise OSError(5, "Input/output error")
        return hashlib.sha256(file.read())

    monkeypatch.setattr(scan_module.hashlib, "file_digest", failing)
    scan = look()
    assert names(scan) == ["b.png"]
    [problem] = scan.problems
    assert problem.where == str(photos / "a.png")
    assert "Input/output error" in problem.reason


def test_a_file_of_too_many_bytes_is_reported_without_being_read(look, photos, read_files):
    with (photos / "huge.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(50 * 2**20 + 1)
    with (photos / "video.mov").open("wb") as file:
        file.truncate(50 * 2**20 + 1)
    scan = look()
    assert (names(scan), read_files) == ([], [])
    assert "too many bytes" in scan.problems[0].reason
    assert scan.problems[1].reason == "not an image"


def test_names_of_any_script_with_quotes_and_line_ends(look, photos):
    file_names = sorted(
        ["ü e\u0301.png", "zèbre 🦓.png", "夜.png", "a'\"b;--.png", "a\nb.png", " x .png"]
    )
    for name in file_names:
        put(photos / name, name.encode())
    assert names(look()) == file_names


def test_a_name_that_is_not_unicode_is_reported_in_printable_words(look, photos):
    put(photos / os.fsdecode(b"bad\xff.png"), b"A")
    put(photos / os.fsdecode(b"folder\xfe") / "b.png", b"B")
    put(photos / "good.png", b"C")
    scan = look()
    assert names(scan) == ["good.png"]
    assert len(scan.problems) == 2
    for problem in scan.problems:
        assert "Unicode" in problem.reason
        problem.where.encode()


def test_an_unchanged_file_is_not_read_again(look, photos, read_files):
    put(photos / "a.png", b"A")
    put(photos / "b.png", b"B")
    first = look()
    assert sorted(read_files) == ["a.png", "b.png"]
    assert look() == first
    assert sorted(read_files) == ["a.png", "b.png"]


def test_only_the_edited_file_is_read_again_and_has_a_new_digest(look, photos, read_files):
    put(photos / "a.png", b"A")
    put(photos / "b.png", b"B")
    look()
    read_files.clear()
    put(photos / "a.png", b"other")
    assert [picture.sha256 for picture in look().pictures] == [sha256(b"other"), sha256(b"B")]
    assert read_files == ["a.png"]


def test_an_edit_of_the_same_length_is_noticed_by_its_time(look, photos):
    path = put(photos / "a.png", b"A")
    look()
    before = path.stat()
    path.write_bytes(b"Z")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert [picture.sha256 for picture in look().pictures] == [sha256(b"Z")]


@pytest.mark.parametrize("seconds", [-1_000_000_000, 0, 4_102_444_800, 10_500_000_000])
def test_times_of_change_of_any_century(look, photos, read_files, seconds):
    os.utime(put(photos / "a.png", b"A"), (seconds, seconds))
    assert names(look()) == ["a.png"]
    look()
    assert read_files == ["a.png"]


def test_a_moved_file_keeps_its_digest(look, photos):
    put(photos / "a.png", b"A")
    [before] = look().pictures
    (photos / "sub").mkdir()
    (photos / "a.png").rename(photos / "sub/z.png")
    [after] = look().pictures
    assert (after.path, after.sha256) == (photos / "sub/z.png", before.sha256)


def test_more_files_than_one_batch_are_all_remembered(look, photos, read_files):
    for i in range(600):
        put(photos / f"{i:03d}.png", b"%d" % i)
    look()
    assert len(read_files) == 600
    look()
    assert len(read_files) == 600


def test_the_sidecar_is_no_picture_and_its_records_go_to_theirs(look, photos):
    put(photos / "a.png", b"A")
    put(photos / "sub/b.png", b"B")
    put(photos / "photos.jsonl", b'{"file": "sub/b.png", "title": "Bee"}\n')
    scan = look()
    assert [(p.path.name, p.record.title) for p in scan.pictures] == [
        ("a.png", ""),
        ("b.png", "Bee"),
    ]
    assert scan.problems == []


def test_records_of_a_named_file_count_and_the_named_file_is_no_picture(look, photos):
    put(photos / "a.png", b"A")
    named = put(photos / "mine.jsonl", b'{"file": "a.png", "title": "mine"}\n')
    scan = look(Root(photos, named))
    assert [p.record.title for p in scan.pictures] == ["mine"]
    assert scan.problems == []


def test_records_that_lie_outside_the_folder_name_files_relative_to_themselves(
    look, photos, tmp_path
):
    put(photos / "a.png", b"A")
    named = put(tmp_path / "records/r.jsonl", b'{"file": "../photos/a.png", "title": "far"}\n')
    assert [p.record.title for p in look(Root(photos, named.resolve())).pictures] == ["far"]


def test_a_record_that_names_no_file_of_the_folder_is_reported(look, photos):
    put(photos / "a.png", b"A")
    put(photos / "photos.jsonl", b'{"file": "gone.png"}\n{"file": "a.png"}\n{"file": "."}\n')
    scan = look()
    assert names(scan) == ["a.png"]
    assert [problem.where for problem in scan.problems] == [str(photos / "gone.png"), str(photos)]
    assert {problem.reason for problem in scan.problems} == {
        "named in the records, not in the folder"
    }


def test_a_bad_line_is_reported_with_its_number(look, photos):
    put(photos / "photos.jsonl", b"\n[]\n")
    assert [problem.where for problem in look().problems] == [f"{photos / 'photos.jsonl'}:2"]


def test_of_two_lines_for_one_file_the_first_counts(look, photos):
    put(photos / "a.png", b"A")
    lines = [{"file": "a.png", "title": "one"}, {"file": "./a.png", "title": "two"}]
    put(photos / "photos.jsonl", "\n".join(map(json.dumps, lines)).encode())
    scan = look()
    assert [p.record.title for p in scan.pictures] == ["one"]
    assert "twice" in scan.problems[0].reason


def test_the_record_of_a_linked_picture_counts(look, photos, tmp_path):
    (photos / "link.png").symlink_to(put(tmp_path / "elsewhere.png", b"E"))
    put(photos / "photos.jsonl", b'{"file": "link.png", "title": "linked"}\n')
    scan = look()
    assert [p.record.title for p in scan.pictures] == ["linked"]
    assert scan.problems == []


def test_a_record_whose_file_is_a_loop_of_links_stops_nothing(look, photos):
    put(photos / "a.png", b"A")
    (photos / "loop.png").symlink_to("loop.png")
    put(photos / "photos.jsonl", b'{"file": "loop.png"}\n')
    assert names(look()) == ["a.png"]


@pytest.mark.parametrize("inner_first", [False, True])
def test_a_root_inside_another_is_walked_once_and_its_own_records_count(look, photos, inner_first):
    put(photos / "a.png", b"A")
    put(photos / "sub/b.png", b"B")
    put(photos / "sub/photos.jsonl", b'{"file": "b.png", "title": "inner"}\n')
    roots = [Root(photos), Root(photos / "sub", source="inner")]
    scan = look(*(roots[::-1] if inner_first else roots))
    titles = sorted((p.path.name, p.record.title) for p in scan.pictures)
    assert titles == [("a.png", ""), ("b.png", "inner")]
    assert scan.problems == []


def test_a_record_of_the_outer_root_for_a_file_of_the_inner_one_is_no_problem(look, photos):
    put(photos / "sub/b.png", b"B")
    put(photos / "photos.jsonl", b'{"file": "sub/b.png", "title": "outer"}\n')
    scan = look(Root(photos), Root(photos / "sub"))
    assert [p.record.title for p in scan.pictures] == ["outer"]
    assert scan.problems == []


def test_a_missing_root_is_told_and_the_others_are_walked(look, photos, tmp_path):
    put(photos / "a.png", b"A")
    gone = Root(tmp_path / "gone")
    scan = look(gone, Root(photos))
    assert names(scan) == ["a.png"]
    assert scan.missing == [gone]


def test_a_root_whose_named_records_are_gone_is_told_and_the_others_are_walked(look, photos):
    put(photos / "a.png", b"A")
    put(photos.parent / "others" / "b.png", b"B")
    root = Root(photos, photos / "gone.jsonl")
    scan = look(root, Root(photos.parent / "others"))
    assert (names(scan), scan.missing) == (["b.png"], [root])
    [problem] = scan.problems
    assert problem.where == str(photos / "gone.jsonl")
    assert "stays as it was; put the file back" in problem.reason
    put(photos.parent / "c.png", b"C")
    scan = look(root, Root(photos.parent))  # a folder around it takes none of its photos
    assert "c.png" in names(scan)
    assert "a.png" not in names(scan)


def test_check_root_resolves_links_and_dots(photos, tmp_path):
    (tmp_path / "link").symlink_to(photos, target_is_directory=True)
    root = check_root(tmp_path / "link" / ".." / "photos", source=" unsplash ")
    assert (root.folder, root.source) == (photos, "unsplash")


def test_check_root_refuses_what_is_no_folder_no_records_and_no_name(photos, tmp_path):
    with pytest.raises(InputError, match="folder"):
        check_root(tmp_path / "nowhere")
    with pytest.raises(InputError, match="folder"):
        check_root(put(tmp_path / "file.png", b"A"))
    with pytest.raises(InputError, match="records"):
        check_root(photos, records=tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="records"):
        check_root(photos, records=photos)
    with pytest.raises(InputError, match="source"):
        check_root(photos, source="  ")


def test_folders_that_hold_a_library_are_passed_over(look, photos):
    put(photos / "seen.png", b"1")
    for name in ("library.json", "secret.key", "thumbnails/aa/small.webp"):
        put(photos / "deep/data" / name, b"2")
    put(photos / "deep/seen too.png", b"3")
    scan = look()
    assert names(scan) == ["seen too.png", "seen.png"]
    assert scan.problems == []


@pytest.mark.parametrize("file", ["library.json", "secret.key"])
def test_one_file_of_a_library_s_name_does_not_hide_a_folder(look, photos, file):
    put(photos / "sub" / file, b"1")
    put(photos / "sub/a.png", b"2")
    assert "a.png" in names(look())


def test_pictures_are_counted_by_root_and_a_root_without_any_is_left_out(look, photos):
    put(photos / "one/a.png", b"1")
    put(photos / "one/b.png", b"2")
    (photos / "two").mkdir()
    one, two = Root(photos / "one"), Root(photos / "two")
    assert look(one, two).pictures_by_root([one, two]) == {one: 2}


def test_records_may_name_files_through_a_link_to_the_folder(look, photos, tmp_path):
    path = put(photos / "a.png", b"A")
    link = tmp_path / "Pictures"
    link.symlink_to(photos)
    record = {"file": str(link / "a.png"), "title": "T"}
    (photos / "photos.jsonl").write_text(json.dumps(record))
    scan = look(check_root(link))
    assert scan.problems == []
    assert [(picture.path, picture.record.title) for picture in scan.pictures] == [(path, "T")]
