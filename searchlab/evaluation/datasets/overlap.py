"""Overlap: photos of a dataset that another one holds too, or that a model was trained on.

By content, the same bytes are found; by name, what a training list writes; by embedding, the same
picture at another size or quality. What looks alike is listed to be looked at, since two photos of
one scene are near as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.files import sha256_of
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.photos.images.decode import as_rgb, for_model
from searchlab.progress import Progress, Step

AT_LEAST: Final = 0.97
_BATCH: Final = 32
_ROWS: Final = 1_000
_CHECKSUM: Final = re.compile(r"\\?([0-9a-fA-F]{64})(?:\s+\*?(.*))?")


@dataclass(frozen=True)
class Shared:
    """One photo that is on both sides.

    Attributes:
        name: Its file.
        other: The file, or the line of the list, that it is found in.
        by: `content`, `name` or `looks`.
        cosine: Of the two embeddings; 1 where the bytes or names are the same.
    """

    name: str
    other: str
    by: Literal["content", "name", "looks"]
    cosine: float = 1.0


def find_overlap(
    dataset: Dataset,
    other: Dataset | Path,
    *,
    model: Embedder | None = None,
    at_least: float = AT_LEAST,
    progress: Progress | None = None,
) -> list[Shared]:
    """List the photos of a dataset that are in another one, or in a list of training photos.

    Args:
        dataset: What is measured.
        other: Another dataset; or a text file with a SHA-256, a file name or an id in each line.
        model: Also compare how photos look; not possible with a list.
        at_least: Least cosine that counts as the same picture, above 0 and at most 1.
        progress: Shows the embedding.

    Returns:
        Each photo of the dataset at most once, by content before name before looks, then by file.

    Raises:
        NotFoundError: There is no such list.
        InputError: A model is given with a list, the level is out of range, or a picture cannot be
            read.
    """
    if not 0 < at_least <= 1:
        msg = f"at_least must be above 0 and at most 1, got {at_least}"
        raise InputError(msg)
    ours = _files(dataset)
    if isinstance(other, Path):
        if model is not None:
            msg = f"looks must be compared with a dataset that has pictures, got the list {other}"
            raise InputError(msg)
        return _in_list(dataset, ours, _read_list(other))
    theirs = _files(other)
    by_content = {sha256_of(path): path for path in reversed(theirs)}
    digests = [sha256_of(path) for path in ours]
    found = [
        Shared(path.name, str(by_content[digest]), "content")
        for path, digest in zip(ours, digests, strict=True)
        if digest in by_content
    ]
    if model is not None:
        rest = [p for p, digest in zip(ours, digests, strict=True) if digest not in by_content]
        found += _alike(rest, theirs, model, at_least, progress or Progress())
    return sorted(found, key=lambda one: (one.by, one.name))


def _files(dataset: Dataset) -> list[Path]:
    return [Path(str(record["file"])) for record in dataset.records]


def _read_list(path: Path) -> dict[str, str]:
    """Read a training list: what stands for a photo -> its line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError as error:
        msg = f"{path} must be a list of photos, one a line, got no file; check the path"
        raise NotFoundError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} must be a list of photos, one a line, in UTF-8, got: {error}"
        raise InputError(msg) from error
    listed: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        # As `sha256sum` and others print a digest, alone or before the name of its file.
        checksum = _CHECKSUM.fullmatch(line)
        digest, named = (checksum[1].lower(), checksum[2] or "") if checksum else ("", line)
        name = named.replace("\\", "/").rpartition("/")[2]
        listed |= dict.fromkeys(filter(None, (digest, named, name, Path(name).stem)), line)
    return listed


def _in_list(dataset: Dataset, files: Sequence[Path], listed: dict[str, str]) -> list[Shared]:
    found = []
    for path, record in zip(files, dataset.records, strict=True):
        digest = sha256_of(path)
        names = (path.name, path.stem, record["source_photo_id"] or "")
        if digest in listed:
            found.append(Shared(path.name, listed[digest], "content"))
        elif line := next((listed[name] for name in names if name in listed), None):
            found.append(Shared(path.name, line, "name"))
    return sorted(found, key=lambda one: (one.by, one.name))


def _alike(
    ours: Sequence[Path],
    theirs: Sequence[Path],
    model: Embedder,
    at_least: float,
    progress: Progress,
) -> list[Shared]:
    if not ours:
        return []
    with progress.step("comparing pictures", len(ours) + len(theirs), unit="photos") as step:
        here, there = (_embed(files, model, step) for files in (ours, theirs))
    found = []
    for start in range(0, len(here), _ROWS):
        cosines = here[start : start + _ROWS] @ there.T  # (n, n_theirs)
        best = cosines.argmax(axis=1)
        for place, column in enumerate(best.tolist()):
            cosine = float(cosines[place, column])
            if cosine >= at_least:
                name, other = ours[start + place].name, str(theirs[column])
                found.append(Shared(name, other, "looks", round(cosine, 4)))
    return found


def _embed(files: Sequence[Path], model: Embedder, step: Step) -> Embeddings:
    rows = []
    for start in range(0, len(files), _BATCH):
        some = files[start : start + _BATCH]
        pictures = [as_rgb(path, min_side=model.input_size) for path in some]
        rows.append(model.encode_images([for_model(one, model.input_size) for one in pictures]))
        step.advance(len(some))
    return np.concatenate(rows)
