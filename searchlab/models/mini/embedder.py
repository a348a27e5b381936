"""The default model: a small image tower and a static text tower in one space; it ships.

Photos go through an EfficientNet-lite2 and a head that places them among words; queries in some
sixty languages through `TextTower`. No download, no torch: onnxruntime for photos, numpy for
texts. `data/MODEL_CARD.md` says what it was made from and how good it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from searchlab.errors import DataError
from searchlab.models.canaries import Canary, canary_image, check_canaries
from searchlab.models.mini import framing
from searchlab.models.mini.artefacts import MINI_DATA, fingerprint, read_record
from searchlab.models.mini.labels import Labels, read_labels
from searchlab.models.mini.text import (
    TEXT_FILES,
    TEXT_WEIGHTS,
    TOKENIZER_FILES,
    TextTower,
    read_pieces,
)
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    PhotosAtLarge,
    TextReading,
    rgb_images,
    unit_rows,
)
from searchlab.photos.descriptions import Sight

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

IMAGE_FILE = "image.onnx"
AT_LARGE_FILE = "at_large.npz"

_MOST_READ = 1_000  # characters of a text, twice what a query may have
BATCH = 16  # Photos per run of the network: bounds memory at about 200 MB.


def model_id(folder: Path) -> str:
    """Return `mini-` and 12 hex digits of the SHA-256 over artefacts and preprocessing."""
    return f"mini-{fingerprint(folder, (*TEXT_FILES, IMAGE_FILE), framing.PREPROCESSING)}"


class MiniEmbedder(Embedder):
    """Joint image-text model `mini`; see `Embedder` for the contract.

    Each tower is read, and checked against its canaries, when it is first used: searching by text
    imports no onnxruntime, embedding photos reads no table. Instances may be shared between
    threads.

    Args:
        folder: Where the artefacts lie; the shipped ones if not given.
        threads: Threads of the image tower; 0 for one per core.
    """

    name = "mini"
    reads: Literal["image", "text"] = "image"
    input_size = max(min(size) for size in framing.SIZES)

    def __init__(self, folder: Path = MINI_DATA, *, threads: int = 0) -> None:
        self.folder = folder
        self.threads = threads
        self._record = read_record(folder)
        self.dim = int(self._record["dim"])
        self.model_id = model_id(folder)
        self.recorded_id = str(self._record["model_id"])
        self._lock = threading.Lock()
        self._texts: TextTower | None = None
        self._session: InferenceSession | None = None

    def fingerprints(self) -> dict[str, str]:
        """Hash both towers, the framing of photos, and the pieces that texts are cut into."""
        return {
            "weights": fingerprint(self.folder, (*TEXT_WEIGHTS, IMAGE_FILE), "weights"),
            "preprocessing": fingerprint(self.folder, (), framing.PREPROCESSING),
            "tokenizer": fingerprint(self.folder, TOKENIZER_FILES, "tokenizer"),
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries in any language; a text of which no piece is known gives a zero row.

        Args:
            texts: Queries of any length.

        Returns:
            (n_texts, dim) float32, unit rows. A row does not depend on the other texts.

        Raises:
            DataError: A file of the text tower is missing or damaged.
            MismatchError: The text tower no longer embeds its canaries as recorded.
        """
        return (self._texts or self._load_texts()).encode(texts)

    def read_text(self, text: str) -> TextReading:
        """Say which words of a query are known, and how well.

        Raises:
            DataError: A file of the text tower is missing or damaged.
            MismatchError: The text tower no longer embeds its canaries as recorded.
        """
        return self._read(text[:_MOST_READ])

    @cached_property
    def _read(self) -> Callable[[str], TextReading]:
        # Pages of one query read it again and again.
        return lru_cache(maxsize=4096)(
            partial(read_pieces, (self._texts or self._load_texts()).pieces())
        )

    @cached_property
    def at_large(self) -> PhotosAtLarge:
        """Mean and spread of photos at large.

        Raises:
            DataError: The file is missing or damaged.
        """
        return PhotosAtLarge.load(self.folder / AT_LARGE_FILE)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed pictures of any size.

        Args:
            images: RGB pictures, orientation applied.

        Returns:
            (n_images, dim) float32, unit rows.

        Raises:
            DataError: The image tower is missing or damaged.
            InputError: Something else than pictures with pixels.
            MismatchError: The image tower no longer embeds its canaries as recorded.
        """
        return embed(self._session or self._load_session(), rgb_images(images), self.dim)

    def sights(self, embeddings: Embeddings, k: int = 5) -> list[Sight]:
        """Name what stands in photos, from their rows alone.

        Args:
            embeddings: (n_photos, dim) rows of `encode_images`.
            k: Labels per photo.

        Returns:
            For each photo its k nearest labels, and the kinds that have a share of `LEAST_SHARE`.

        Raises:
            DataError: The labels are missing or damaged.
        """
        return self._labels.name(np.asarray(embeddings, dtype=np.float32), k)

    @cached_property
    def _labels(self) -> Labels:
        return read_labels(self.folder)

    def _canaries(self, tower: str) -> list[Canary]:
        return [
            Canary(entry["probe"], tuple(entry["expected"]))
            for entry in self._record["canaries"][tower]
        ]

    def _load_texts(self) -> TextTower:
        with self._lock:
            if self._texts is None:
                tower = TextTower(self.folder, dim=self.dim)
                canaries = self._canaries("text")
                rows = tower.encode([str(canary.probe) for canary in canaries])
                check_canaries("the text tower of mini", canaries, rows)
                self._texts = tower
            return self._texts

    def _load_session(self) -> InferenceSession:
        with self._lock:
            if self._session is None:
                session = open_session(self.folder / IMAGE_FILE, self.threads)
                canaries = self._canaries("image")
                images = [canary_image(int(canary.probe)) for canary in canaries]
                rows = embed(session, images, self.dim)
                check_canaries("the image tower of mini", canaries, rows, tolerance=0.05)
                self._session = session
            return self._session


def load_mini() -> MiniEmbedder:
    """Load the model that ships, whose files must be those that it was released with.

    Raises:
        DataError: They are other files, so the model would have another id.
    """
    model = MiniEmbedder()
    if model.model_id != model.recorded_id:
        msg = (
            f"the files in {model.folder} must be those of {model.recorded_id}, "
            f"got {model.model_id}; install searchlab again"
        )
        raise DataError(msg)
    return model


def open_session(path: Path, threads: int) -> InferenceSession:
    """Open an image tower that computes with so many threads, 0 for one per core.

    Raises:
        DataError: The file is missing or damaged.
    """
    import onnxruntime as ort

    options: Any = ort.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait by spinning take the processor from those that decode beside the model.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no base but Exception
        msg = f"{path} must be a readable ONNX network, got {error}; reinstall searchlab"
        raise DataError(msg) from error


def embed(session: InferenceSession, images: Sequence[Image.Image], dim: int) -> Embeddings:
    """Run pictures and their mirror images through an open tower; (n_images, dim) unit rows."""
    rows = np.zeros((len(images), dim), dtype=np.float32)
    for batch, pixels in framing.batches(images, BATCH):
        for view in framing.views(pixels):
            rows[batch] += session.run(["embedding"], {"pixels": view})[0]
    return unit_rows(rows)
