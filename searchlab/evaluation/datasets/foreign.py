"""Datasets as others keep them on disk, read in place: no picture is copied, nothing is written.

    dataset_coco.json                       Karpathy's splits of COCO, Flickr8k and Flickr30k
    annotations/captions_val2017.json       captions of COCO; the pictures in val2017/
    corpus.jsonl, queries.jsonl, qrels/     BEIR; `image` of a line, or images/ID.jpg
    captions.jsonl with image/key           Crossmodal-3600
    topics.txt, qrels.txt                   TREC; the pictures named by document number
    test_image_names.txt                    XTD10; captions in test_1kcaptions_de.txt and so on
    test/0.tar                              CLIP_benchmark's tars for retrieval
    corpus/, queries/, qrels/ of Parquet    MTEB and MIEB, from texts to pictures

Pictures are looked for by the path that the file gives, in `images/`, and by name in any folder
below; those within tars and Parquet are unpacked into the folder once. `load_dataset("FOLDER:val")`
reads another part than `test`.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from searchlab.errors import InputError, NotFoundError, quote
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.foreign_captions import (
    is_crossmodal,
    is_xtd,
    read_crossmodal,
    read_xtd,
)
from searchlab.evaluation.datasets.foreign_packed import (
    is_packed_in_parquet,
    is_packed_in_tars,
    read_parquet_retrieval,
    read_tars,
)
from searchlab.evaluation.datasets.foreign_parts import (
    PICTURES,
    ForeignParts,
    Read,
    Recognise,
    whole_grade,
)
from searchlab.evaluation.datasets.foreign_trec import is_trec, read_trec
from searchlab.evaluation.datasets.judgments import is_grade
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.datasets.rows import make_dataset
from searchlab.photos.photo import photo_id_of

_NUMBER: Final = re.compile(r"\s*[-+.\d].*")
_NAMES_OF_PICTURES: Final = ("image", "image_path", "file", "file_name", "filename", "img_path")


_READERS: Final[tuple[tuple[Recognise, Read], ...]] = (
    (is_crossmodal, read_crossmodal),
    (is_xtd, read_xtd),
    (is_packed_in_tars, read_tars),
    (is_packed_in_parquet, read_parquet_retrieval),
    (is_trec, read_trec),
)
"""Formats that stand in files of their own: whether a folder is one, and how it is read."""


def is_foreign(folder: Path) -> bool:
    """Tell whether a folder holds a dataset in one of these formats."""
    if any(recognise(folder) for recognise, _ in _READERS):
        return True
    return bool(_karpathy_file(folder) or _coco_files(folder) or _is_beir(folder))


def read_foreign(folder: Path, split: str | None = None, *, lang: str = "en") -> Dataset:
    """Read a dataset that another tool left on disk.

    Each caption is a query whose relevant photo is its own; other photos that it fits as well are
    unjudged, so figures are lower bounds.

    Args:
        folder: The folder.
        split: Such as `"test"` or `"val"`; `"test"` if left out, or the only one that there is.
        lang: Language of the texts, where the files do not say.

    Raises:
        NotFoundError: The folder holds no such dataset or split.
        InputError: A file cannot be read, pictures are missing, or they cannot be unpacked.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    karpathy, captions = _karpathy_file(folder), _coco_files(folder)
    read = next((read for recognise, read in _READERS if recognise(folder)), None)
    try:
        if read is not None:
            parts = read(folder, split, lang)
        elif karpathy is not None:
            parts = _read_karpathy(karpathy, split or "test", lang)
        elif captions:
            parts = _read_coco(_choose(captions, split, folder), lang)
        elif _is_beir(folder):
            parts = _read_beir(folder, split, lang)
        else:
            msg = (
                f"{folder} must hold a dataset in a known form (Karpathy, COCO captions, BEIR, "
                "TREC, Crossmodal-3600, XTD10, CLIP_benchmark or MTEB), got none"
            )
            raise NotFoundError(msg)
    except (OSError, KeyError, TypeError, ValueError, AttributeError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        msg = (
            f"{folder} must hold a dataset as it was published, got {type(error).__name__}: {error}"
        )
        raise InputError(msg) from error
    return _dataset(folder, parts, split)


def _dataset(folder: Path, parts: ForeignParts, split: str | None) -> Dataset:
    found = _find_pictures(folder, parts.pictures)
    records = [
        {"source": parts.source, "source_photo_id": picture, "file": str(path)}
        for picture, path in found.items()
    ]
    ids = {picture: photo_id_of(parts.source, picture) for picture in found}
    queries = [
        LabelledQuery(query_id, lang, "caption", text)
        for query_id, (text, lang) in parts.texts.items()
        if query_id in parts.qrels
    ]
    qrels = {
        query.query_id: {ids[one]: grade for one, grade in parts.qrels[query.query_id].items()}
        for query in queries
    }
    name = folder.resolve().name + (f"-{split}" if split else "")
    return make_dataset(name, folder, queries, qrels, records)


def _find_pictures(folder: Path, pictures: Mapping[str, str]) -> dict[str, Path]:
    anywhere: dict[str, list[Path]] | None = None
    sought: list[str] = []
    found: dict[str, Path] = {}
    missing = []
    for picture, named in pictures.items():
        places = [folder / named, folder / "images" / named] if named else []
        places = places or [
            folder / "images" / f"{picture}{end}" for end in ("", *sorted(PICTURES))
        ]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            anywhere = _pictures_below(folder) if anywhere is None else anywhere
            path = _choose_place(folder, picture, named, anywhere)
            sought.append(picture)
        if path is None:
            missing.append(named or picture)
        else:
            found[picture] = path.resolve()
    if missing:
        msg = (
            f"{folder} must hold the pictures of its dataset, got {len(missing):,} of "
            f"{len(pictures):,} missing, such as {missing[0]}; put them into {folder / 'images'}"
        )
        raise InputError(msg)
    # What was found by its name alone must be nobody else's, but under the same name.
    sharing: defaultdict[Path, set[str]] = defaultdict(set)
    for picture, path in found.items():
        sharing[path].add(pictures[picture] or picture)
    for picture in sought:
        if len(names := sharing[found[picture]]) > 1:
            listed = " and ".join(sorted(names)[:2])
            msg = f"{folder} must hold a picture for each, got {found[picture]} for {listed}"
            raise InputError(msg)
    return found


def _choose_place(
    folder: Path, picture: str, named: str, anywhere: Mapping[str, list[Path]]
) -> Path | None:
    """Return where a picture lies that is not where its dataset says."""
    names = (Path(named).name, Path(named).stem, picture)
    places: list[Path] = next((anywhere[name] for name in names if name in anywhere), [])
    if len(places) > 1:
        # Of several of a name that one is meant whose folders are as they are told.
        told = Path(named).parts
        places = [place for place in places if told and place.parts[-len(told) :] == told]
        if len(places) != 1:
            msg = (
                f"{folder} must hold one picture of each name, got several of {named or picture}; "
                f"put that of the dataset into {folder / 'images'}"
            )
            raise InputError(msg)
    return places[0] if places else None


def _pictures_below(folder: Path) -> dict[str, list[Path]]:
    """Map names of pictures, with their ending and without, to where they lie."""
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in PICTURES and path.is_file():
            places[path.name].append(path)
            places[path.stem].append(path)
    return dict(places)


# -- Karpathy ---------------------------------------------------------------------------------


def _karpathy_file(folder: Path) -> Path | None:
    files = [folder / "dataset.json", *sorted(folder.glob("dataset_*.json"))]
    there = [path for path in files if path.is_file()]
    if len(there) > 1:
        names = ", ".join(path.name for path in there)
        msg = f"{folder} must hold one file of Karpathy's splits, got {names}; use a folder each"
        raise InputError(msg)
    return there[0] if there else None


def _read_karpathy(path: Path, split: str, lang: str) -> ForeignParts:
    values = json.loads(path.read_text(encoding="utf-8"))
    parts = ForeignParts(str(values.get("dataset") or path.stem.removeprefix("dataset_")))
    splits: set[str] = set()
    for image in values["images"]:
        splits.add(image["split"])
        if image["split"] != split:
            continue
        picture = str(image.get("cocoid") or Path(image["filename"]).stem)
        parts.pictures[picture] = str(Path(image.get("filepath", "")) / image["filename"])
        for sentence in image["sentences"]:
            parts.add_caption(str(sentence["sentid"]), sentence["raw"], lang, picture)
    if not parts.pictures:
        msg = f"the split must be one of {', '.join(sorted(splits)) or 'none'}, got {split!r}"
        raise NotFoundError(msg)
    return parts


# -- captions of COCO -------------------------------------------------------------------------


def _coco_files(folder: Path) -> dict[str, Path]:
    files = [*folder.glob("captions_*.json"), *(folder / "annotations").glob("captions_*.json")]
    return {path.stem.removeprefix("captions_"): path for path in sorted(files)}


def _choose(files: Mapping[str, Path], split: str | None, folder: Path) -> Path:
    if split is None and len(files) == 1:
        return next(iter(files.values()))
    if split is None or split not in files:
        named = f"{folder}:{next(iter(files))}"
        msg = f"the split must be one of {', '.join(files)}, got {split!r}; name it, {named}"
        raise NotFoundError(msg)
    return files[split]


def _read_coco(path: Path, lang: str) -> ForeignParts:
    values = json.loads(path.read_text(encoding="utf-8"))
    parts = ForeignParts("coco")
    folder = path.stem.removeprefix("captions_")
    for image in values["images"]:
        name = str(image["file_name"])
        parts.pictures[str(image["id"])] = name if "/" in name else f"{folder}/{name}"
    for caption in values["annotations"]:
        picture = str(caption["image_id"])
        if picture not in parts.pictures:
            msg = f"caption {caption['id']} of {path} must be of an image in it, got {picture}"
            raise InputError(msg)
        parts.add_caption(str(caption["id"]), caption["caption"], lang, picture)
    return parts


# -- BEIR -------------------------------------------------------------------------------------


def _is_beir(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("corpus.jsonl", "queries.jsonl", "qrels"))


def _read_beir(folder: Path, split: str | None, lang: str) -> ForeignParts:
    parts = ForeignParts(folder.resolve().name)
    for line in _json_lines(folder / "corpus.jsonl"):
        named = next((line[name] for name in _NAMES_OF_PICTURES if line.get(name)), "")
        parts.pictures[str(line["_id"])] = str(named)
    for line in _json_lines(folder / "queries.jsonl"):
        text, told = str(line["text"]).strip(), str(line.get("lang") or lang)
        parts.add_query(str(line["_id"]), text, told)
    files = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    path = files.get(split or "test") if split or "test" in files else _choose(files, None, folder)
    if path is None:
        msg = f"the split must be one of {', '.join(files) or 'none'}, got {split!r}"
        raise NotFoundError(msg)
    _add_beir_qrels(parts, path)
    for query_id, grades in parts.qrels.items():
        unknown = [picture for picture in grades if picture not in parts.pictures]
        if unknown or query_id not in parts.texts:
            what = f"document {unknown[0]!r}" if unknown else f"query {query_id!r}"
            msg = f"{path} must judge what corpus and queries hold, got {what}"
            raise InputError(msg)
    parts.qrels = {q: grades for q, grades in parts.qrels.items() if any(grades.values())}
    return parts


def _json_lines(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    values = json.loads(line)
                    _ = values["_id"]
                except (ValueError, KeyError, TypeError) as error:
                    msg = f"{path}:{number} must be a JSON object with _id, got: {error}"
                    raise InputError(msg) from error
                yield values


def _add_beir_qrels(parts: ForeignParts, path: Path) -> None:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=1):
        if not row:
            continue
        if number == 1 and not _NUMBER.fullmatch(row[-1]):
            continue  # the header
        grade = whole_grade(row[2]) if len(row) == 3 else -1
        if not is_grade(grade):
            msg = f"{path}:{number} must be query, document and a grade from 0, got {quote(row)}"
            raise InputError(msg)
        parts.judge(row[0], row[1], grade)
