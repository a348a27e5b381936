"""Datasets as others keep them: small files of each format, and what is wrong in them."""

import json

import pytest
from PIL import Image

from searchlab import grid
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.photos.photo import photo_id_of

SHADES = {"red": "#e50000", "green": "#15b01a", "blue": "#0343df"}


def put(path, shade):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 16), shade).save(path)


@pytest.fixture
def karpathy(tmp_path):
    images = []
    for number, (name, shade) in enumerate(SHADES.items()):
        split = "val" if name == "blue" else "test"
        file = f"COCO_val2014_{number:012}.jpg"
        put(tmp_path / "coco" / "val2014" / file, shade)
        sentence = {"tokens": [name], "raw": f" {name}\n", "imgid": number, "sentid": 10 + number}
        images.append(
            {
                "filepath": "val2014",
                "filename": file,
                "cocoid": 100 + number,
                "split": split,
                "sentences": [sentence],
                "sentids": [10 + number],
                "imgid": number,
            }
        )
    write(tmp_path / "coco" / "dataset_coco.json", {"images": images, "dataset": "coco"})
    return tmp_path / "coco"


def write(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_splits_of_karpathy(karpathy):
    dataset = load_dataset(str(karpathy))
    assert [(query.query_id, query.text) for query in dataset.queries] == [
        ("10", "red"),
        ("11", "green"),
    ]
    assert dataset.qrels["11"] == {photo_id_of("coco", "101"): 1}
    assert [query.text for query in load_dataset(f"{karpathy}:val").queries] == ["blue"]
    with pytest.raises(NotFoundError, match="the split must be one of test, val, got 'dev'"):
        load_dataset(f"{karpathy}:dev")


@pytest.mark.slow
def test_a_folder_in_the_format_of_coco_is_measured(karpathy):
    report = Experiment(load_dataset(karpathy), grid(["palette"]), ["success@1"]).run()
    assert report.results[0].metrics["success@1"] == 1.0


def test_pictures_may_lie_in_any_folder_and_missing_ones_are_counted(karpathy):
    (karpathy / "val2014").rename(karpathy / "some_folder")
    assert len(load_dataset(karpathy).photo_ids) == 2
    next((karpathy / "some_folder").iterdir()).unlink()
    with pytest.raises(InputError, match=r"got 1 of 2 missing, such as val2014/COCO_val2014_0"):
        load_dataset(karpathy)


def test_captions_of_coco(tmp_path):
    folder = tmp_path / "coco"
    for split, names in (("val2017", ["red", "green"]), ("train2017", ["blue"])):
        for number, name in enumerate(names):
            put(folder / split / f"{number:012}.jpg", SHADES[name])
        write(
            folder / "annotations" / f"captions_{split}.json",
            {
                "images": [{"id": n, "file_name": f"{n:012}.jpg"} for n in range(len(names))],
                "annotations": [
                    {"id": 7 + n, "image_id": n, "caption": f"{name}."}
                    for n, name in enumerate(names)
                ],
            },
        )
    dataset = load_dataset(f"{folder}:val2017")
    assert [query.text for query in dataset.queries] == ["red.", "green."]
    assert {record["file"] for record in dataset.records} == {
        str(path.resolve()) for path in (folder / "val2017").iterdir()
    }
    with pytest.raises(NotFoundError, match=r"one of train2017, val2017, got None; name it, .*:tr"):
        load_dataset(folder)


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "beir"
    for name, shade in SHADES.items():
        put(folder / "images" / f"{name}.png", shade)
    lines = [json.dumps({"_id": name, "title": "", "text": ""}) for name in SHADES]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    queries = [{"_id": "q1", "text": "red"}, {"_id": "q2", "text": "blau", "lang": "de"}]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tred\t2.0\nq1\tblue\t0\nq2\tblue\t1\n"
    )
    return folder


def test_a_folder_of_beir_with_pictures(beir):
    dataset = load_dataset(beir)
    assert {query.query_id: query.lang for query in dataset.queries} == {"q1": "en", "q2": "de"}
    assert sorted(dataset.qrels["q1"].values()) == [0, 2]
    assert len(dataset.photo_ids) == 3


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("qrels/test.tsv", "h\th\th\nq1\tpink\t1\n", "got document 'pink'"),
        ("qrels/test.tsv", "h\th\th\nq9\tred\t1\n", "got query 'q9'"),
        ("qrels/test.tsv", "h\th\th\nq1\tred\t0.5\n", r"test.tsv:2 must be query, document and a"),
        ("qrels/test.tsv", "h\th\th\nq1\tred\n", "a grade from 0, got"),
        ("qrels/test.tsv", "q1\tred\t1.5\n", r"test.tsv:1 must be query, document and a"),
        ("qrels/test.tsv", "q1\tred\t1\nq1\tred\t2\n", "judgment of 'red' for the query once"),
        ("queries.jsonl", '{"_id": 1, "text": "a"}\n{"_id": 1, "text": "b"}', "another one of '1'"),
        ("queries.jsonl", '{"id": 1}', r"queries.jsonl:1 must be a JSON object with _id"),
        ("corpus.jsonl", "{", r"corpus.jsonl:1 must be a JSON object"),
    ],
)
def test_what_is_wrong_in_a_folder_of_beir_is_named(file, text, message, beir):
    (beir / file).write_text(text)
    with pytest.raises(InputError, match=message):
        load_dataset(beir)


def test_judgments_of_beir_may_lack_a_header_and_mark_spam(beir):
    (beir / "qrels" / "test.tsv").write_text("q1\tred\t2\nq1\tblue\t-1\nq2\tblue\t1\n\n")
    corpus = (beir / "corpus.jsonl").read_text()
    (beir / "corpus.jsonl").write_text(corpus, encoding="utf-8-sig")
    dataset = load_dataset(beir)
    assert {query_id: sorted(grades.values()) for query_id, grades in dataset.qrels.items()} == {
        "q1": [0, 2],
        "q2": [1],
    }


def test_captions_of_one_id_are_refused(karpathy):
    path = karpathy / "dataset_coco.json"
    values = json.loads(path.read_text())
    for image in values["images"]:
        for number, sentence in enumerate(image["sentences"]):
            sentence["sentid"] = number
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="must give each query once, got another one of '0'"):
        load_dataset(karpathy)


def test_a_damaged_file_of_splits_is_named(karpathy):
    (karpathy / "dataset_coco.json").write_text('{"images": [{}]}')
    with pytest.raises(InputError, match=r"dataset as it was published, got KeyError: 'split'"):
        load_dataset(karpathy)
    write(karpathy / "dataset_flickr8k.json", {})
    with pytest.raises(InputError, match=r"one file of Karpathy's splits, got dataset_coco.json, "):
        load_dataset(karpathy)


def test_of_pictures_with_one_name_that_of_the_told_folder_is_taken(beir):
    documents = [{"_id": name, "image": f"{name}s/1.png"} for name in ("cat", "dog")]
    (beir / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (beir / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "a dog"}))
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tdog\t1\n")
    for name, shade in (("cats", SHADES["red"]), ("dogs", SHADES["blue"])):
        put(beir / "data" / name / "1.png", shade)
    files = {record["source_photo_id"]: record["file"] for record in load_dataset(beir).records}
    assert [file.split("/")[-2] for file in (files["cat"], files["dog"])] == ["cats", "dogs"]
    (beir / "data" / "dogs").rename(beir / "data" / "elsewhere")
    with pytest.raises(InputError, match=r"several of dogs/1\.png"):
        load_dataset(beir)
    (beir / "data" / "elsewhere" / "1.png").unlink()
    shared = r"a picture for each, got .* for cats/1\.png and dogs/1\.png"
    with pytest.raises(InputError, match=shared):
        load_dataset(beir)
    put(beir / "cats" / "1.png", SHADES["red"])  # one of the two lies where it should
    (beir / "data" / "cats" / "1.png").unlink()
    with pytest.raises(InputError, match=shared):
        load_dataset(beir)


def test_pictures_named_by_their_id_come_before_others_of_that_name(beir):
    (beir / "corpus.jsonl").write_text(json.dumps({"_id": "x1"}))
    (beir / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "red"}))
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tx1\t1\n")
    put(beir / "augmented" / "x1.png", SHADES["blue"])
    put(beir / "images" / "x1.png", SHADES["red"])
    [record] = load_dataset(beir).records
    assert record["file"].endswith("images/x1.png")
