"""A folder of TREC: topics in both forms, judgments, pictures, and what is wrong in them."""

import pytest
from PIL import Image

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import load_dataset
from searchlab.photos.photo import photo_id_of

BLOCKS = """<top>
<num> Number: 301
<title> a red
  square

<desc> Description:
Nothing else is asked for.
</top>
<top><num>302</num><title>Topic: green</title></top>
<top><num> 303 <title> nobody judged this </top>
"""
LINES = "301\ta red square\n\n302\tgreen\n303\tnobody judged this\n"
QRELS = "301 0 red 2\n301 0 green 0\n301 Q0 blue -2\n\n302\t0\tgreen\t1\n303 0 blue 0\n"


@pytest.fixture
def folder(tmp_path):
    for name, shade in {
        "red": "#e50000",
        "green": "#15b01a",
        "blue": "#0343df",
        "sea": "#00f",
    }.items():
        path = tmp_path / "squares" / "images" / name[0] / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (24, 16), shade).save(path)
    (tmp_path / "squares/topics.txt").write_text(LINES, encoding="utf-8")
    (tmp_path / "squares/qrels.txt").write_text(QRELS, encoding="utf-8")
    return tmp_path / "squares"


@pytest.mark.parametrize("topics", [LINES, BLOCKS, "\ufeff" + LINES])
def test_topics_and_judgments_are_read_and_every_picture_is_a_photo(folder, topics):
    (folder / "topics.txt").write_text(topics, encoding="utf-8")
    dataset = load_dataset(str(folder))
    assert [(q.query_id, q.text, q.lang) for q in dataset.queries] == [
        ("301", "a red square", "en"),
        ("302", "green", "en"),
    ]
    ids = {name: photo_id_of("squares", name) for name in ("red", "green", "blue", "sea")}
    assert dataset.qrels["301"] == {ids["red"]: 2, ids["green"]: 0, ids["blue"]: 0}
    assert dataset.qrels["302"] == {ids["green"]: 1}
    assert set(dataset.photo_ids) == set(ids.values())


def test_judgments_may_name_the_files(folder):
    plain = load_dataset(str(folder))
    named = QRELS.replace(" red ", " red.png ").replace(" green ", " green.png ")
    (folder / "qrels.txt").write_text(named, encoding="utf-8")
    dataset = load_dataset(str(folder))
    assert dataset.photo_ids == plain.photo_ids
    assert dataset.qrels == plain.qrels


def test_entities_in_titles_are_characters(folder):
    (folder / "topics.txt").write_text("<top><num>301<title>red &amp; green</top>")
    (folder / "qrels.txt").write_text("301 0 red 1\n")
    assert load_dataset(str(folder)).queries[0].text == "red & green"


def test_two_pictures_of_one_name_are_refused(folder):
    Image.new("RGB", (24, 16)).save(folder / "images" / "red.jpg")
    with pytest.raises(InputError, match=r"one picture of each name, got images/r.* and images/r"):
        load_dataset(str(folder))


@pytest.mark.parametrize("name", ["qrels", "qrels.test.trec", "qrels-adhoc.qrel"])
def test_files_have_the_names_that_people_give_them(folder, name):
    (folder / "qrels.txt").rename(folder / name)
    (folder / "topics.txt").rename(folder / "topics.301-303.tsv")
    assert len(load_dataset(str(folder)).queries) == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("topics.txt", "301 a red square\n", "txt:1 must be a number, a tab and a text"),
        ("topics.txt", LINES + "301\tagain\n", "must hold each topic once, got '301'"),
        ("topics.txt", "<top><num> 301 </top>", "block 1 must have <num> and <title>"),
        ("qrels.txt", "301 0 red\n", "txt:1 must be topic, 0, document, grade, got '301 0 red'"),
        ("qrels.txt", "301 0 red 1\n301 0 green much\n", "txt:2 must be topic, 0, document"),
        ("qrels.txt", "301 0 red 1.5\n", "txt:1 must be topic, 0, document, grade"),
        ("qrels.txt", "999 0 red 1\n", r"must judge topics of topics\.txt, got '999'"),
        ("qrels.txt", "301 0 lost 1\n", "1 of 5 missing, such as lost"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(folder, name, text, said):
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_dataset(str(folder))


def test_there_are_no_splits(folder):
    with pytest.raises(NotFoundError, match="has no splits, got 'test'"):
        load_dataset(f"{folder}:test")


@pytest.mark.parametrize("name", ["qrels", "topics"])
def test_there_is_one_file_of_each(folder, name):
    (folder / f"{name}.other.txt").write_text("", encoding="utf-8")
    with pytest.raises(
        InputError, match=rf"one file of {name}, got {name}\.other\.txt, {name}\.txt"
    ):
        load_dataset(str(folder))
