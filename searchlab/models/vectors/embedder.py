"""Vectors that were computed elsewhere, as a model: `vectors:FOLDER`.

Photos and texts have the rows that the folder holds. Whatever it does not hold can be embedded only
where the model that made the rows is named: `vectors:FOLDER@SPEC`, or `model` in `vectors.json`.
That model is compared with the rows before it is believed.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import DataError, InputError, MismatchError, quote
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    Tower,
    is_reader,
    readable_texts,
    rgb_images,
    short_hash,
    towers_of,
    unit_rows,
)
from searchlab.models.registry import load_model
from searchlab.models.remembered import named_by
from searchlab.models.vectors.foreign import read_foreign
from searchlab.models.vectors.names import NamedPhoto, NameIndex
from searchlab.models.vectors.tables import VectorTable, nothing_there, read_tables

DESCRIPTION: Final = "vectors.json"
KNOWN: Final = {"format", "model", "model_id", "preprocessing", "normalised", "field"}
FORMAT: Final = 1
MAX_TEXT: Final = 10_000
_NEAR_ONE: Final = 0.01  # rows in float16 are that far from length 1
_AGREES: Final = 0.95
_BLOCK: Final = 65_536
_COMPARED_TEXTS: Final = 8
_TO_SCALE: Final = 'write `{"normalised": false}` in vectors.json'


class VectorsEmbedder(Embedder):
    """Rows from a folder, and the model that made them where it is named.

    Args:
        folder: What `read_tables` or `read_foreign` reads.
        base: The model that made the rows.

    Raises:
        NotFoundError: The folder holds no vectors.
        InputError: Rows or names are not usable; the message says which.
        MismatchError: The model is not the one that made the rows.

    Attributes:
        base: The model that made the rows; None where it is not named.
        folder: Where they lie.
        n_photos: Vectors of photos in it.
    """

    reads: Literal["image", "text"] = "image"
    shared = False  # its folder may be written again

    def __init__(self, folder: Path, base: Embedder | None = None) -> None:
        description = read_description(folder)
        if base is None and description.get("model"):
            with named_by(folder):
                base = load_model(str(description["model"]))
        photos, texts = _read(folder, description.get("field"))
        self.folder, self.base = folder, base
        self.name = f"vectors:{folder}" + ("" if base is None else f"@{base.name}")
        self.dim = next(table.rows.shape[1] for table in (photos, texts) if table is not None)
        self.input_size = 1 if base is None else base.input_size
        self._description = description
        scaled = description.get("normalised") is False
        digests = []
        self._rows: dict[str, NDArray[Any]] = {}
        for kind, table in (("photos", photos), ("texts", texts)):
            if table is not None:
                digests.append(check_rows(table, self.dim, scaled=scaled))
                self._rows[kind] = table.rows
        self.n_photos = 0 if photos is None else len(photos.names)
        self._photos = NameIndex([] if photos is None else photos.names)
        self._texts = {
            name if _is_hash(name) else plain(name): row
            for row, name in enumerate([] if texts is None else texts.names)
        }
        self.text_names: Sequence[str] = [] if texts is None else texts.names
        self._digest = short_hash("".join(digests))
        identity = f"{self._digest} {'' if base is None else base.model_id} {scaled}"
        self.model_id = f"vectors-{short_hash(identity)}"
        if base is not None:
            self._check_base(base)
            if is_reader(base):
                self.at_large, self.read_text = base.at_large, base.read_text
            if hasattr(base, "sights"):
                self.sights = base.sights

    @property
    def towers(self) -> frozenset[Tower]:
        """What it can embed beside the rows that it has: all that its model can, or nothing."""
        return frozenset() if self.base is None else towers_of(self.base)

    @property
    def calibrated_as(self) -> str:
        """`model_id` of the model whose relevance curve fits the rows."""
        return self.model_id if self.base is None else self.base.model_id

    def fingerprints(self) -> dict[str, str]:
        """Hash rows, and what is said of how they were made."""
        if self.base is not None:
            below = self.base.fingerprints()
            return below | {"weights": short_hash(self._digest + below["weights"])}
        said = json.dumps(self._description, sort_keys=True)
        return {name: short_hash(name + said) for name in ("preprocessing", "tokenizer")} | {
            "weights": self._digest
        }

    def rows_of(self, photos: Sequence[NamedPhoto]) -> dict[str, int]:
        """Find the rows of photos.

        Returns:
            SHA-256 of a photo's file -> its row; photos without a vector are left out.

        Raises:
            InputError: One id names two different photos.
        """
        rows: dict[str, int] = {}
        owners: dict[int, NamedPhoto] = {}
        for photo in photos:
            row = self._photos.row_of(photo)
            if row is None or photo.sha256 in rows:
                continue
            other = owners.setdefault(row, photo)
            if other.sha256 != photo.sha256:
                msg = (
                    f"an id of {self.folder} must name one photo, got one for {other.path} and "
                    f"{photo.path}; write ids with their folders"
                )
                raise InputError(msg)
            rows[photo.sha256] = row
        return rows

    def photo_rows(self, rows: Sequence[int]) -> Embeddings:
        """Return (n, dim) unit rows by their places."""
        return unit_rows(np.asarray(self._rows["photos"][list(rows)], dtype=np.float64))

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Return the rows of texts; (n_texts, dim). Those that have none are embedded.

        Raises:
            InputError: A text has no vector, and no model is named that could embed it.
            MismatchError: The model is not the one that made the rows.
        """
        readable = readable_texts(texts, max_length=MAX_TEXT)
        rows = np.zeros((len(readable), self.dim), dtype=np.float32)
        places = {i: row for i, text in enumerate(readable) if (row := self._text_row(text)) >= 0}
        if places:
            stored = self._rows["texts"][list(places.values())]
            rows[list(places)] = unit_rows(np.asarray(stored, dtype=np.float64))
        others = [i for i in range(len(readable)) if i not in places]
        if others:
            base = self._named_model(
                f"a vector for every text, got none for {quote(texts[others[0]])}"
                + (f" and {len(others) - 1:,} more" if len(others) > 1 else "")
            )
            rows[others] = base.encode_texts([texts[i] for i in others])
        return rows

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures by the model that made the rows; (n_images, dim).

        Raises:
            InputError: No model is named.
        """
        pictures = rgb_images(images)
        return self._named_model("the model that made them to embed a picture").encode_images(
            pictures
        )

    def compare(self, given: Embeddings, embedded: Embeddings) -> float:
        """Return the median cosine of rows and what the named model makes of the same inputs.

        Raises:
            MismatchError: It is not the model that made them.
        """
        cosines = np.sort(np.sum(given.astype(np.float64) * embedded, axis=1))
        median = float(np.median(cosines))
        if median < _AGREES:
            name = "" if self.base is None else self.base.name
            msg = (
                f"{name} must be the model that made the vectors of {self.folder}, got rows at "
                f"cosines of {cosines[0]:.2f} to {cosines[-1]:.2f} to them; name the right model "
                "and its weights, or leave it out to search by photo only"
            )
            raise MismatchError(msg)
        return median

    def _text_row(self, text: str) -> int:
        row = self._texts.get(plain(text), -1)
        if row < 0 and self._texts:
            row = self._texts.get(hashlib.sha256(text.encode()).hexdigest(), -1)  # as MTEB names it
        return row

    def _named_model(self, need: str) -> Embedder:
        if self.base is None:
            # Without the folder: a client of the server is told this, too.
            msg = (
                f"vectors that were computed elsewhere must have {need}; whoever indexes them can "
                "name the model that made the vectors, vectors:FOLDER@SPEC"
            )
            raise InputError(msg)
        return self.base

    def _check_base(self, base: Embedder) -> None:
        recorded = self._description.get("model_id")
        if base.dim != self.dim or (recorded and recorded != base.model_id):
            expected = recorded or f"a model of {self.dim} components"
            msg = (
                f"the vectors of {self.folder} must be those of {base.name}, got vectors of "
                f"{expected}, where it is {base.model_id} of {base.dim}"
            )
            raise MismatchError(msg)
        made = str(self._description.get("preprocessing", ""))
        now = base.fingerprints()["preprocessing"]
        if made and made != now:
            msg = (
                f"the vectors of {self.folder} must be made with the preprocessing of {base.name}, "
                f"{now}, got {made}; embed the photos again"
            )
            raise MismatchError(msg)
        compared = [name for name in self.text_names[: 10 * _COMPARED_TEXTS] if not _is_hash(name)][
            :_COMPARED_TEXTS
        ]
        if compared:
            self.compare(self.encode_texts(compared), base.encode_texts(compared))


def plain(text: str) -> str:
    """Return a text as it is compared: composed, and without blanks around it."""
    return unicodedata.normalize("NFC", text).strip()


def _is_hash(name: str) -> bool:
    return len(name) == 64 and not name.strip("0123456789abcdef")


def read_description(folder: Path) -> dict[str, Any]:
    """Read what `vectors.json` says of the vectors beside it; empty without.

    Raises:
        DataError: The file is no such description.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.get("format", FORMAT) != FORMAT:
            msg = f"something else than a description of format {FORMAT}"
            raise ValueError(msg)
        if unknown := sorted(values.keys() - KNOWN):
            msg = f"{', '.join(unknown)}; known are {', '.join(sorted(KNOWN))}"
            raise ValueError(msg)
    except (OSError, ValueError) as error:
        msg = f"{path} must be JSON that describes vectors, got {error}"
        raise DataError(msg) from error
    return values


def _read(folder: Path, field: str | None) -> tuple[VectorTable | None, VectorTable | None]:
    if not folder.is_dir():
        raise nothing_there(folder)
    photos, texts = read_foreign(folder, field) or read_tables(folder)
    if photos is None and texts is None:
        raise nothing_there(folder)
    dims = {table.rows.shape[1] for table in (photos, texts) if table is not None}
    if len(dims) > 1:
        listed = " and ".join(
            str(table.rows.shape[1]) for table in (photos, texts) if table is not None
        )
        msg = f"vectors of photos and texts in {folder} must have one dimension, got {listed}"
        raise InputError(msg)
    return photos, texts


def check_rows(table: VectorTable, dim: int, *, scaled: bool, to_scale: str = _TO_SCALE) -> str:
    """Check names and rows; returns the SHA-256 over both.

    Args:
        table: Names and rows.
        dim: Components that they have.
        scaled: Whether they are scaled when they are read, so that they may have any length.
        to_scale: What to do where they should be.

    Raises:
        InputError: A name is there twice, or a row is not usable.
    """
    first: dict[str, int] = {}
    for row, name in enumerate(table.names):
        if first.setdefault(name, row) != row:
            msg = f"ids of vectors in {table.file} must be different, got {quote(name)} twice"
            raise InputError(msg)
    digest = hashlib.sha256(f"{dim}\n".encode())
    digest.update("\n".join(table.names).encode("utf-8", "surrogatepass"))
    for start in range(0, len(table.names), _BLOCK):
        block = np.ascontiguousarray(table.rows[start : start + _BLOCK])
        digest.update(block.tobytes())
        lengths = np.linalg.norm(block.astype(np.float64), axis=1)
        _refuse(table, start, ~np.isfinite(lengths), "finite numbers, got NaN or infinity")
        _refuse(table, start, lengths == 0, "a direction, got all zeros")
        if not scaled:
            off = np.abs(lengths - 1) > _NEAR_ONE
            got = f"length 1, got {lengths[off.argmax()]:.4g}" if off.any() else ""
            _refuse(table, start, off, got, f"; if they are meant to be scaled, {to_scale}")
    return digest.hexdigest()


def _refuse(
    table: VectorTable, start: int, wrong: NDArray[np.bool_], must: str, remedy: str = ""
) -> None:
    if wrong.any():
        row = start + int(wrong.argmax())
        which = f"the vector of {quote(table.names[row])} in {table.file}, row {row:,},"
        msg = f"{which} must have {must} ({int(wrong.sum()):,} of {len(wrong):,} rows{remedy})"
        raise InputError(msg)


def load_vectors(source: str) -> VectorsEmbedder:
    """Load vectors that were computed elsewhere: `FOLDER`, or `FOLDER@SPEC` with their model.

    Raises:
        InputError: No folder is named; and what `VectorsEmbedder` raises.
    """
    if not source:
        msg = "vectors must be named by their folder, got 'vectors:'"
        raise InputError(msg)
    place = Path(source).expanduser()
    cut = source.find("@")
    while not place.is_dir() and cut >= 0:
        before = Path(source[:cut]).expanduser()
        if before.is_dir():
            return VectorsEmbedder(before.resolve(), load_model(source[cut + 1 :]))
        cut = source.find("@", cut + 1)
    return VectorsEmbedder(place.resolve())
