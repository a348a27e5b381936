"""Datasets whose photos may not be redistributed, read from the folder of SEARCHLAB_DATASETS."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.labelled import NO_LANGUAGE, LabelledQuery
from searchlab.evaluation.datasets.plain_words import WORDS, forms_of
from searchlab.evaluation.datasets.rows import language_tag, make_dataset, read_rows
from searchlab.evaluation.datasets.written import rewrite
from searchlab.photos.photo import photo_id_of

ENVIRONMENT = "SEARCHLAB_DATASETS"

_CLEAR = 2  # grade from which most judges agreed
_CAPTIONS_TAUGHT = ("en", "zh", "ar", "de", "fr", "cs")  # of photos like these, to `mini`


def external_root() -> Path | None:
    """Return the folder that SEARCHLAB_DATASETS names, None if it is not set."""
    value = os.environ.get(ENVIRONMENT, "")
    return Path(value).expanduser() if value else None


def stamps() -> Dataset:
    """Load 296 cut-outs, with each distinct label of a language as a query."""
    folder = external_folder("stamps")
    records = [
        _record(folder, row, "tuxpaint-stamps", "gpl-2.0", row["label_en"])
        for row in read_rows(folder / "photos.tsv")
    ]
    queries = [
        LabelledQuery(row["query_id"], language_tag(row["lang"]), "label", row["text"])
        for row in read_rows(folder / "queries.tsv")
    ]
    qrels = _judgments(folder / "qrels.tsv", "tuxpaint-stamps")
    return make_dataset("stamps", folder, queries, qrels, records)


def flickr8k() -> Dataset:
    """Load the 1,000 test photos with captions in five languages and grades from 0 to 3.

    References:
        Hodosh, Young and Hockenmaier, Framing image description as a ranking task, JAIR 47, 2013.
    """
    folder, records = _flickr8k_photos()
    path = folder / "graded_qrels.tsv"
    grades = _judgments(path, "flickr", query="judged_as", grade="grade")
    queries, qrels = [], {}
    for row in read_rows(folder / "graded_queries.tsv"):
        lang = language_tag(row["lang"])
        queries.append(LabelledQuery(row["query_id"], lang, "graded", row["text"]))
        qrels[row["query_id"]] = grades[row["judged_as"]]
    return make_dataset("flickr8k", folder, queries, qrels, records)


def flickr8k_described() -> Dataset:
    """Load `flickr8k` with an English caption of each photo as its description.

    The description is the photo's first caption that no query is, nor the translation of one; so
    the queries, in five languages, find what somebody else wrote about the same photo.
    """
    base = flickr8k()
    folder = external_folder("flickr8k")
    asked = {row["judged_as"] for row in read_rows(folder / "graded_queries.tsv")}
    first: dict[str, tuple[int, str]] = {}
    for row in read_rows(folder / "captions.tsv"):
        if row["lang"] == "en" and row["kind"] == "written" and row["caption_id"] not in asked:
            caption = (int(row["idx"]), row["text"])
            photo_id = photo_id_of("flickr", row["photo_id"])
            first[photo_id] = min(first.get(photo_id, caption), caption)
    texts = {
        photo_id: {"source_description": text}
        for photo_id, (_, text) in first.items()
        if photo_id in base.photo_ids
    }
    return rewrite(base, "flickr8k-described", texts)


def flickr8k_captions() -> Dataset:
    """Load the test photos with every caption in eleven languages: each finds its own photo."""
    folder, records = _flickr8k_photos()
    tested = {record["source_photo_id"] for record in records}
    rows = [row for row in read_rows(folder / "captions.tsv") if row["photo_id"] in tested]
    queries = [
        LabelledQuery(row["caption_id"], language_tag(row["lang"]), "caption", row["text"])
        for row in rows
    ]
    qrels = {row["caption_id"]: {photo_id_of("flickr", row["photo_id"]): 1} for row in rows}
    return make_dataset("flickr8k-captions", folder, queries, qrels, records)


def coco_judge() -> Dataset:
    """Load 351 COCO photos with the English captions that people wrote: each finds its own photo.

    Nothing may be fitted or tuned on them.
    """
    folder = external_folder("coco-judge")
    photos = read_rows(folder / "photos.tsv")
    records = [_record(folder, row, "coco", "research-only", None) for row in photos]
    rows = [row for row in read_rows(folder / "captions.tsv") if row["lang"] == "en"]
    queries = [LabelledQuery(row["caption_id"], "en", "caption", row["text"]) for row in rows]
    qrels = {row["caption_id"]: {photo_id_of("coco", row["photo_id"]): 1} for row in rows}
    return make_dataset("coco-judge", folder, queries, qrels, records)


def web_judge() -> Dataset:
    """Load 828 varied web photos with one caption each, written by a model: for comparing models.

    Nothing may be fitted or tuned on them.
    """
    folder = external_folder("web-judge")
    photos = read_rows(folder / "photos.tsv")
    records = [_record(folder, row, "web", "research-only", None) for row in photos]
    rows = read_rows(folder / "captions.tsv")
    queries = [LabelledQuery(row["caption_id"], "en", "caption", row["text"]) for row in rows]
    qrels = {row["caption_id"]: {photo_id_of("web", row["photo_id"]): 1} for row in rows}
    return make_dataset("web-judge", folder, queries, qrels, records)


def flickr8k_abroad() -> Dataset:
    """Load the test photos with captions in languages that `mini` was taught no captions in."""
    folder, records = _flickr8k_photos()
    tested = {record["source_photo_id"] for record in records}
    captions = [*read_rows(folder / "captions.tsv"), *read_rows(folder / "captions_more.tsv")]
    rows = [
        row for row in captions if row["photo_id"] in tested and row["lang"] not in _CAPTIONS_TAUGHT
    ]
    queries = [
        LabelledQuery(row["caption_id"], language_tag(row["lang"]), "caption", row["text"])
        for row in rows
    ]
    qrels = {row["caption_id"]: {photo_id_of("flickr", row["photo_id"]): 1} for row in rows}
    return make_dataset("flickr8k-abroad", folder, queries, qrels, records)


def flickr8k_words() -> Dataset:
    """Load the test photos with plain words: a photo is relevant if its writers use the word.

    Five people described each photo; the grade is how many of them use the word, singular or
    plural. What nobody of the five mentions counts as not shown.
    """
    folder, records = _flickr8k_photos()
    tested = {record["source_photo_id"] for record in records}
    used: dict[str, Counter[str]] = {word: Counter() for word in WORDS}
    for row in read_rows(folder / "captions.tsv"):
        if row["lang"] == "en" and row["photo_id"] in tested:
            said = _words_in(row["text"])
            for word in WORDS:
                used[word][row["photo_id"]] += not said.isdisjoint(forms_of(word))
    queries, qrels = [], {}
    for number, word in enumerate(WORDS):
        grades = {photo: count for photo, count in used[word].items() if count}
        if grades:
            queries.append(LabelledQuery(f"word-{number:03d}", "en", "word", word))
            qrels[f"word-{number:03d}"] = {photo_id_of("flickr", p): n for p, n in grades.items()}
    return make_dataset("flickr8k-words", folder, queries, qrels, records)


def flickr8k_words_described() -> Dataset:
    """Load `flickr8k-words` with the captions of `flickr8k-described`.

    The grade is how many of the other four writers use the word, so that what is written is no
    judgment of itself.
    """
    base, described = flickr8k_words(), flickr8k_described()
    texts = {
        photo_id: {"source_description": text}
        for photo_id, record in zip(described.ids_of_records, described.records, strict=True)
        if (text := record.get("source_description"))
    }
    queries, qrels = [], {}
    for query in base.queries:
        forms = forms_of(query.text or "")
        others = {
            photo_id: count
            - (not _words_in(texts[photo_id]["source_description"]).isdisjoint(forms))
            for photo_id, count in base.qrels[query.query_id].items()
        }
        if any(others.values()):
            queries.append(query)
            qrels[query.query_id] = {photo_id: n for photo_id, n in others.items() if n}
    name = "flickr8k-words-described"
    return rewrite(base.derive(name, queries, qrels), name, texts)


def _words_in(caption: str) -> set[str]:
    return set(re.findall(r"[a-z]+", caption.lower()))


def flickr8k_similar() -> Dataset:
    """Load the test photos as queries for other photos that their caption describes.

    The grades are the judgments of the photo's own caption against the other photos. A photo is a
    query if at least one of them has grade 2 (most judges agreed); grade 1 (a single judge) is
    kept: `ndcg@k` weighs it, and `recall@k/l2` leaves it out.
    """
    folder, records = _flickr8k_photos()
    path = folder / "image_qrels.tsv"
    grades = _judgments(path, "flickr", query="query_photo_id", grade="grade")
    qrels = {
        name: by_photo for name, by_photo in grades.items() if max(by_photo.values()) >= _CLEAR
    }
    queries = [
        LabelledQuery(name, NO_LANGUAGE, "graded", photo_id=photo_id_of("flickr", name))
        for name in qrels
    ]
    return make_dataset("flickr8k-similar", folder, queries, qrels, records)


def _flickr8k_photos() -> tuple[Path, list[dict[str, str | None]]]:
    folder = external_folder("flickr8k")
    # Only test photos were judged; the others would count as errors though they may be relevant.
    return folder, [
        _record(folder, row, "flickr", "research-only", None)
        for row in read_rows(folder / "photos.tsv")
        if row["split"] == "test"
    ]


def external_folder(name: str) -> Path:
    """Return the folder of one dataset.

    Raises:
        NotFoundError: It is not there.
    """
    root = external_root()
    if root is None:
        msg = (
            f"dataset {name!r} does not ship with searchlab; set {ENVIRONMENT} to a folder that "
            f"holds {name}/"
        )
        raise NotFoundError(msg)
    if not (root / name / "photos.tsv").is_file():
        msg = f"{ENVIRONMENT} must be a folder that holds {name}/photos.tsv, got {root}"
        raise NotFoundError(msg)
    return root / name


def _record(
    folder: Path, row: Mapping[str, str], source: str, licence: str, title: str | None
) -> dict[str, str | None]:
    return {
        "file": str(folder / row["file"]),
        "source": source,
        "source_photo_id": row["photo_id"],
        "source_image_url": row.get("source_url"),
        "license_type": licence,
        "title": title,
        "source_description": title,
    }


def _judgments(
    path: Path, source: str, *, query: str = "query_id", grade: str = "relevance"
) -> dict[str, dict[str, int]]:
    """Read judgments whose photos are given by the ids of their source."""
    by_query: dict[str, dict[str, int]] = {}
    for row in read_rows(path):
        grades = by_query.setdefault(row[query], {})
        photo_id = photo_id_of(source, row["photo_id"])
        if photo_id in grades:
            msg = (
                f"{path} must judge a photo once, got {row['photo_id']!r} again for {row[query]!r}"
            )
            raise InputError(msg)
        grades[photo_id] = int(row[grade])
    return by_query
