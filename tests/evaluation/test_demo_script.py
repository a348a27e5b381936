"""What reads GCompris for the bundled dataset and what makes its judgments, on made files."""

import struct
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

DATASETS = Path(__file__).parents[2] / "datasets"


@pytest.fixture
def scripts(monkeypatch):
    """Modules beside the script, which are no part of the package."""
    monkeypatch.syspath_prepend(str(DATASETS))
    import demo_judgments
    import gcompris
    import kinds

    yield SimpleNamespace(gcompris=gcompris, kinds=kinds, judgments=demo_judgments)
    for name in ("demo_judgments", "gcompris", "kinds"):
        sys.modules.pop(name, None)


def resource_file():
    """A resource file of version 3: `a/plain.txt` and `a/packed.txt`."""
    names, places = b"", []
    for name in ("a", "plain.txt", "packed.txt"):
        places.append(len(names))
        names += struct.pack(">HI", len(name), 0) + name.encode("utf-16-be")
    packed = struct.pack(">I", 300) + zlib.compress(b"x" * 300)
    blobs = struct.pack(">I", 5) + b"hello" + struct.pack(">I", len(packed)) + packed
    tree = struct.pack(">IHIIQ", 0, 2, 1, 1, 0)
    tree += struct.pack(">IHIIQ", places[0], 2, 2, 2, 0)
    tree += struct.pack(">IHHHIQ", places[1], 0, 0, 0, 0, 0)
    tree += struct.pack(">IHHHIQ", places[2], 1, 0, 0, 9, 0)
    head = struct.pack(">4sIIIII", b"qres", 3, 24, 24 + len(tree) + len(names), 24 + len(tree), 1)
    return head + tree + names + blobs


def test_a_resource_file_is_read_with_its_folders_plain_and_packed(scripts):
    files = scripts.gcompris.read_rcc(resource_file())
    assert files == {"a/plain.txt": b"hello", "a/packed.txt": b"x" * 300}


def test_another_kind_of_file_is_refused(scripts):
    with pytest.raises(ValueError, match="must begin with qres"):
        scripts.gcompris.read_rcc(b"PK\3\4" + bytes(40))


def test_translations_are_read_by_their_messages(scripts):
    def text(tag, value):
        return struct.pack(">BI", tag, len(value)) + value

    message = text(3, "Fische".encode("utf-16-be")) + text(6, b"Fishes") + text(7, b"board") + b"\1"
    sections = text(0x42, struct.pack(">II", 7, 0)) + text(0x69, message)
    assert scripts.gcompris.read_qm(bytes(16) + sections) == {"Fishes": "Fische"}


def test_credits_need_a_licence_that_is_known_and_an_address(scripts):
    found = scripts.gcompris.read_credits(
        "Copyright: © 2014 Jee & Rani\nSource: https://example.org/a.jpg\n"
        "License: CC-BY-SA 4.0\nComments: cropping\nFiles: a.webp\n\n"
        "Copyright: Ann\nLicense: Public Domain\nSource: https://example.org/b.jpg\nFiles:\n"
        "  sub/b.webp\n  c.webp\n\n"
        "Copyright: Bob\nLicense: CC0-1.0\nFiles: d.webp\n\n"
        "Copyright: Eve\nLicense: ask her\nSource: https://example.org/e.jpg\nFiles: e.webp\n"
    )
    assert found == {
        "a.webp": ("Jee & Rani", "cc-by-sa-4.0", "https://example.org/a.jpg"),
        "b.webp": ("Ann", "public-domain", "https://example.org/b.jpg"),
        "c.webp": ("Ann", "public-domain", "https://example.org/b.jpg"),
    }


NOUNS = """\
  1 This is the licence.
00000001 05 n 01 bird 0 000 | flies
00000002 05 n 01 hen 0 001 @ 00000001 n 0000 | lays
00000003 05 n 01 cat 0 000 | purrs
"""


@pytest.fixture
def judgments(scripts, tmp_path):
    """A bird, a hen and a cat: what they show, and what "A bird." means."""
    (tmp_path / "data.noun").write_text(NOUNS)
    rows = (
        "source_photo_id\tsynset\tname",
        "b\t00000001\tbird",
        "h\t00000002\then",
        "c\t00000003\tcat",
    )
    (tmp_path / "kinds.tsv").write_text("\n".join(rows) + "\n")
    rows = (
        "from\ttext\tsynset\tname",
        "label\tA bird.\t00000001\tbird",
        "word\then\t00000002\then",
    )
    (tmp_path / "words.tsv").write_text("\n".join(rows) + "\n")
    known = scripts.kinds.Kinds(tmp_path, tmp_path / "data.noun")
    sources = dict.fromkeys("bhc", "mine")
    titles = {"b": "A bird.", "h": "A brown hen.", "c": "A cat."}
    return scripts.judgments.Judgments(sources, titles, known)


def written(judgments, folder, eye=()):
    """Text -> photo -> (grade, origin) of what was told."""
    judgments.write(folder, dict(eye))
    lines = (folder / "queries.tsv").read_text().splitlines()[1:]
    texts = {row[0]: row[3] for row in (line.split("\t") for line in lines)}
    found = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, _, photo, grade, origin = line.split("\t")
        found.setdefault(texts[query], {})[photo] = (int(grade), origin)
    return found


def test_a_plain_label_counts_kinds_and_one_that_says_more_does_not(judgments, tmp_path):
    judgments.tell("label", "en", "A bird.", "b")
    judgments.tell("label", "de", "Ein Vogel.", "b")
    judgments.tell("label", "en", "A brown hen.", "h")
    judgments.tell("label", "en", "A cat.", "c")
    birds = {"b": (1, "name"), "h": (1, "kind")}
    assert written(judgments, tmp_path) == {
        "A bird.": birds,
        "Ein Vogel.": birds,
        "A brown hen.": {"h": (1, "name")},
        "A cat.": {"c": (1, "name")},
    }


def test_one_text_for_two_things_counts_kinds_only_where_both_are_plain(judgments, tmp_path):
    judgments.tell("label", "xx", "flap", "b")
    judgments.tell("label", "xx", "Flap.", "c")
    both = {"b": (1, "name"), "c": (1, "name")}
    assert written(judgments, tmp_path) == {"flap": both, "Flap.": both}


def test_a_word_is_judged_by_what_photos_show(judgments, tmp_path):
    judgments.tell_word("label", "en", "bird", "00000001")
    judgments.tell_word("label", "en", "dog", "00000009")
    assert written(judgments, tmp_path) == {"bird": {"b": (1, "name"), "h": (1, "kind")}}


def test_by_eye_every_photo_is_judged(judgments, tmp_path):
    found = written(judgments, tmp_path, {"a pet": {"c": 3}})
    assert found == {"a pet": {"b": (0, "eye"), "h": (0, "eye"), "c": (3, "eye")}}


def test_a_synset_of_another_name_is_refused(scripts, judgments, tmp_path):
    (tmp_path / "words.tsv").write_text("from\ttext\tsynset\tname\nword\tcow\t00000003\tcow\n")
    with pytest.raises(ValueError, match=r"must name synsets of WordNet 3\.0, got 00000003 cow"):
        scripts.kinds.Kinds(tmp_path, tmp_path / "data.noun")
