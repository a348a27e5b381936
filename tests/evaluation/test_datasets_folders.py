"""Datasets of one's own: a folder of three files, read and written."""

import json
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import (
    NO_LANGUAGE,
    WITHHELD,
    LabelledQuery,
    load_dataset,
    read_dataset,
    write_dataset,
)
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.photos.photo import photo_id_of
from searchlab.search.filters.photo_filter import PhotoFilter
from tests.support.bundled import bundled

RED, BLUE = photo_id_of("mine", "1"), photo_id_of("mine", "2")


@pytest.fixture
def folder(tmp_path: Path, make_picture) -> Path:
    root = tmp_path / "my-photos"
    (root / "photos").mkdir(parents=True)
    lines = []
    for number, name in enumerate(["red one", "blue"], start=1):
        make_picture(root / f"photos/{name}.png")
        record = {"file": f"photos/{name}.png", "source": "mine", "source_photo_id": str(number)}
        lines.append(json.dumps(record))
    (root / "photos.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / "queries.tsv").write_text(
        "query_id\tlang\ttext\nq1\ten\ta red thing\nq2\tzh\t蓝色的\n", encoding="utf-8"
    )
    (root / "qrels.tsv").write_text(
        f"query_id\tphoto_id\trelevance\nq1\tphotos/red one.png\t2\nq2\t{BLUE}\t1\n",
        encoding="utf-8",
    )
    return root


def test_a_folder_of_your_own_is_a_dataset(folder):
    dataset = read_dataset(folder)
    assert dataset.name == "my-photos"
    assert dataset.queries == (
        LabelledQuery("q1", "en", "written", "a red thing"),
        LabelledQuery("q2", "zh", "written", "蓝色的"),
    )
    assert dataset.qrels == {"q1": {RED: 2}, "q2": {BLUE: 1}}
    assert dataset.photo_ids == {RED, BLUE}
    assert dataset.withheld == frozenset()
    assert dataset.photos == folder / "photos.jsonl"
    assert [Path(record["file"]).is_file() for record in dataset.records] == [True, True]


def test_the_mark_that_some_editors_put_first_is_no_part_of_a_column(folder):
    before = read_dataset(folder)
    for name in ("queries.tsv", "qrels.tsv"):
        path = folder / name
        path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert read_dataset(folder).queries == before.queries
    assert read_dataset(folder).qrels == before.qrels


def test_load_dataset_takes_the_folder_as_path_or_text(folder):
    assert load_dataset(folder) == load_dataset(str(folder)) == read_dataset(str(folder))


def test_judgments_may_be_a_trec_file(folder):
    (folder / "qrels.tsv").unlink()
    (folder / "qrels.trec").write_text(f"q1 0 {RED} 2\nq2 0 photos/blue.png 1\n")
    assert read_dataset(folder).qrels == {"q1": {RED: 2}, "q2": {BLUE: 1}}


def test_photo_queries_filters_and_kinds_are_columns(folder):
    (folder / "queries.tsv").write_text(
        "query_id\tlang\tkind\ttext\tphoto_id\tfilter\ttext_alpha\n"
        "q1\t\t\t\tphotos/blue.png\t\t\n"
        'q2\ten\ttag\tat night\tphotos/red one.png\t{"orientation": ["square"]}\t3.5\n',
        encoding="utf-8",
    )
    dataset = read_dataset(folder, name="mine", withholds={"tag": ["title"]})
    assert dataset.queries == (
        LabelledQuery("q1", NO_LANGUAGE, "written", photo_id=BLUE),
        LabelledQuery(
            "q2", "en", "tag", "at night", RED, PhotoFilter(orientation=("square",)), 3.5
        ),
    )
    assert (dataset.name, dataset.task) == ("mine", "mixed")
    assert dataset.withheld == {"title"}


def test_of_a_kind_that_nobody_explains_every_text_is_withheld(folder):
    rows = "query_id\tlang\tkind\ttext\nq1\ten\ttag\tred\nq2\ten\ttag\tblue\n"
    (folder / "queries.tsv").write_text(rows)
    silent = read_dataset(folder)
    assert silent.withheld == {"source_description", "title", "alt_description", "description"}
    explained = read_dataset(folder, withholds={"tag": []})
    assert explained.withheld == frozenset()
    assert explained.revision != silent.revision


def test_everything_in_the_folder_is_in_the_revision(folder, make_picture):
    revisions = [read_dataset(folder).revision]
    for name, old, new in (
        ("queries.tsv", "a red thing", "a red car"),
        ("qrels.tsv", "\t2", "\t3"),
        ("photos.jsonl", '"mine"', '"mine", "title": "x"'),
    ):
        text = (folder / name).read_text("utf-8")
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
        revisions.append(read_dataset(folder).revision)
    make_picture(folder / "photos/blue.png", color="#123456")
    revisions.append(read_dataset(folder).revision)
    assert len(set(revisions)) == 5


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("queries.tsv", "query_id\tlang\ttext\nq1\ten\n", r"queries.tsv:2 has 2 columns"),
        ("queries.tsv", "", "queries.tsv has no header"),
        ("queries.tsv", "id\ttext\nq1\tred\n", r"columns among query_id, .*, got \['id'\]"),
        (
            "queries.tsv",
            "lang\ttext\nen\tred\n",
            r"query_id and columns .*, got \['lang', 't",
        ),
        ("queries.tsv", "query_id\tlang\ttext\n", "must have queries and qrels"),
        (
            "queries.tsv",
            "query_id\tlang\ttext\tfilter\nq1\ten\tred\t{}\nq2\ten\tred\t{nonsense\n",
            r"queries.tsv:3 must be a query, got: Expecting property name",
        ),
        (
            "queries.tsv",
            'query_id\tlang\ttext\tfilter\nq1\ten\tred\t{"colour": "red"}\n',
            r"queries.tsv:2 must be a query, got: .*'colour'",
        ),
        (
            "queries.tsv",
            "query_id\tlang\ttext\tfilter\nq1\ten\tred\t[]\n",
            r"queries.tsv:2 must be a query, got: filter must be a JSON object, got \[\]",
        ),
        (
            "queries.tsv",
            "query_id\tlang\ttext\ttext_alpha\nq1\ten\tred\tnan\n",
            r"queries.tsv:2 must be a query, got: text_alpha must be a number from 0 to 10",
        ),
        ("queries.tsv", "query_id\ttext\nq1\tred\nq2\tblue\n", "name a language for every query"),
        ("queries.tsv", "query_id\tlang\ttext\nq1\ten\t\n", "queries.tsv:2 must be a query"),
        ("queries.tsv", "query_id\tlang\ttext\nq1\ten\tred\n", "judge known queries only"),
        ("qrels.tsv", "q1 0 elsewhere 1\nq2 0 elsewhere 1\n", "judge known photos only"),
        ("qrels.tsv", "q1 0 a -1\n", "qrels.tsv:1 must have a whole number from 0"),
        ("photos.jsonl", "{}\n", r"photos.jsonl:1 must be a record, got: .*file"),
        ("photos.jsonl", "[1]\n", r"photos.jsonl:1 must be a record"),
        ("photos.jsonl", '{"title": "Blue"}\n', "must be a record|must have file"),
        (
            "photos.jsonl",
            '{"file": "no.png", "source": "mine", "source_photo_id": "1"}\n',
            "must name pictures that are there, got 'no.png'",
        ),
    ],
)
def test_a_folder_that_cannot_be_used_says_where_and_why(folder, name, text, message):
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_dataset(folder)


def test_a_photo_judged_by_its_file_and_by_its_id_is_refused(folder):
    (folder / "qrels.trec").write_text(f"q1 0 photos/blue.png 1\nq1 0 {BLUE} 0\n")
    (folder / "qrels.tsv").unlink()
    with pytest.raises(InputError, match="judge a photo once for 'q1', got its file and its id"):
        read_dataset(folder)


def test_a_photo_twice_is_refused(folder):
    line = (folder / "photos.jsonl").read_text("utf-8").splitlines()[0]
    (folder / "photos.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"'my-photos' must hold every photo once, got '{RED}'"):
        read_dataset(folder)


@pytest.mark.parametrize("name", ["photos.jsonl", "queries.tsv", "qrels.tsv"])
@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xed\xa0\x80\n"])
def test_files_that_are_no_text_are_refused(folder, name, data):
    (folder / name).write_bytes(data)
    with pytest.raises(InputError, match=name):
        read_dataset(folder)


@pytest.mark.parametrize("name", ["photos.jsonl", "queries.tsv", "qrels.tsv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    missing = folder / name.replace("qrels.tsv", "qrels.trec")
    with pytest.raises(NotFoundError) as caught:
        read_dataset(folder)
    assert "photos.jsonl, queries.tsv and qrels.tsv" in str(caught.value)
    assert f"got no {missing}" in str(caught.value)


def test_a_folder_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        load_dataset(tmp_path / "nowhere")


@pytest.mark.parametrize("pictures", [True, False])
def test_a_dataset_survives_a_round_trip(folder, tmp_path, pictures):
    dataset = read_dataset(folder)
    copy = read_dataset(
        write_dataset(dataset, tmp_path / "a/copy", pictures=pictures), name="my-photos"
    )
    assert (copy.queries, copy.qrels, copy.photo_ids) == (
        dataset.queries,
        dataset.qrels,
        dataset.photo_ids,
    )
    assert copy.revision == dataset.revision
    own = [Path(record["file"]).is_relative_to(tmp_path / "a/copy") for record in copy.records]
    assert own == [pictures, pictures]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "demo-similar", "demo-steered"])
def test_what_ships_survives_a_round_trip(tmp_path, name):
    dataset = bundled(name)
    copy = read_dataset(write_dataset(dataset, tmp_path / name))
    assert copy.queries == dataset.queries
    assert copy.qrels == dataset.qrels
    assert copy.withheld == dataset.withheld
    assert (copy.revision == dataset.revision) == (name == "demo")


def test_origins_survive_a_round_trip_and_are_counted(folder, tmp_path):
    dataset = read_dataset(folder)
    assert dataset.judged_by == {}
    origins = {i: dict.fromkeys(grades, "eye") for i, grades in dataset.qrels.items()}
    copy = read_dataset(write_dataset(replace(dataset, origins=origins), tmp_path / "copy"))
    assert copy.origins == origins
    n_relevant = sum(grade >= 1 for grades in copy.qrels.values() for grade in grades.values())
    assert copy.judged_by == {"eye": n_relevant}
    assert copy.revision == dataset.revision


def test_filters_and_steering_survive_a_round_trip(folder, tmp_path):
    dataset = read_dataset(folder)
    narrow = PhotoFilter(color_hex="#ff0000", color_tolerance=40, after_date="2020-01-01")
    steered = replace(dataset.queries[0], photo_id=BLUE, filter=narrow, text_alpha=0.25)
    changed = dataset.derive("changed", (steered, dataset.queries[1]), dataset.qrels)
    assert read_dataset(write_dataset(changed, tmp_path / "copy")).queries == changed.queries


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\rb"])
def test_a_text_that_breaks_the_lines_of_a_file_is_not_written(folder, tmp_path, text):
    dataset = read_dataset(folder)
    broken = replace(dataset, queries=(replace(dataset.queries[0], text=text), dataset.queries[1]))
    with pytest.raises(InputError, match="must be without tabs and line breaks"):
        write_dataset(broken, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_pictures_of_one_name_are_not_written_over_each_other(folder, tmp_path):
    dataset = read_dataset(folder)
    records = tuple({**record, "file": dataset.records[0]["file"]} for record in dataset.records)
    with pytest.raises(InputError, match="must have names of their own"):
        write_dataset(replace(dataset, records=records), tmp_path / "copy", pictures=True)


@pytest.mark.slow
def test_kinds_that_ship_are_all_explained():
    kinds = {query.kind for name in ("demo", "demo-similar") for query in bundled(name).queries}
    assert kinds <= WITHHELD.keys()


def test_a_photo_without_an_identity_has_the_one_that_it_has_in_a_library(tmp_path, make_picture):
    """As the README's example of `photos.jsonl` has none."""
    make_picture(tmp_path / "blue.png")
    (tmp_path / "photos.jsonl").write_text('{"file": "blue.png", "title": "Blue"}\n')
    (tmp_path / "queries.tsv").write_text("query_id\tlang\ttext\nq\ten\tblue\n")
    (tmp_path / "qrels.tsv").write_text("query_id\tphoto_id\trelevance\nq\tblue.png\t1\n")
    library = create_library(tmp_path.parent / f"{tmp_path.name}-library")
    index_photos(library, [check_root(tmp_path)])
    (photo_id,) = read_dataset(tmp_path).qrels["q"]
    assert library.engine.table.photo_ids([0]) == [photo_id]


def test_blank_lines_between_queries_are_no_queries(folder):
    lines = (folder / "queries.tsv").read_text().splitlines()
    (folder / "queries.tsv").write_text("\n".join([lines[0], "", *lines[1:], "", ""]))
    assert [query.query_id for query in read_dataset(folder).queries] == ["q1", "q2"]
    (folder / "queries.tsv").write_text("\n".join([lines[0], "", "q1"]))
    with pytest.raises(InputError, match=r"queries\.tsv:3 has 1 columns"):
        read_dataset(folder)


def test_equal_pictures_are_named_by_their_files(folder):
    (folder / "photos" / "copy.png").write_bytes((folder / "photos" / "blue.png").read_bytes())
    lines = [{"file": f"photos/{name}.png"} for name in ("blue", "copy")]
    (folder / "photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match=r"got photos/blue\.png and photos/copy\.png, which are one"
    ):
        read_dataset(folder)


def test_a_file_is_found_in_either_form_of_its_accents(folder):
    apart, together = (normalize(form, "photos/Café.png") for form in ("NFD", "NFC"))
    (folder / "photos" / "blue.png").rename(folder / apart)
    record = {"file": together, "source": "mine", "source_photo_id": "2"}
    lines = (folder / "photos.jsonl").read_text().splitlines()
    (folder / "photos.jsonl").write_text(f"{lines[0]}\n{json.dumps(record)}\n")
    (folder / "qrels.tsv").write_text(f"query_id\tphoto_id\trelevance\nq1\t{apart}\t1\n")
    (folder / "queries.tsv").write_text("query_id\tlang\ttext\nq1\ten\tcoffee\n")
    dataset = read_dataset(folder)
    assert dataset.qrels == {"q1": {BLUE: 1}}
    assert all(Path(record["file"]).is_file() for record in dataset.records)
