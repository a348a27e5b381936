"""The sentence encoders from which the text tower learns; their vectors are kept on disk."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.files import write_atomically
from searchlab.progress import Progress
from searchlab.training.mini.encoders import Encoder, PackedWeights, read_e5, read_minilm
from searchlab.training.mini.materials import ENGLISH_TEACHER, ENGLISH_TOKENIZER, TEACHER, locate

Vectors = NDArray[np.float32]

CHUNK = 8192  # Texts per file of the cache.
PREFIX = "query: "  # What e5 was trained to read before a query.


class Teacher:
    """multilingual-e5-small and, for English, all-MiniLM-L6-v2 beside it.

    A text costs a few milliseconds, so every vector is stored; a later run with the same cache is
    quick.

    Args:
        packages: Where the teachers' wheels are unpacked.
        cache: Folder of stored vectors.
        progress: Shows how many texts were embedded.
    """

    def __init__(self, packages: Path, cache: Path, progress: Progress | None = None) -> None:
        progress = progress or Progress()
        self._e5 = locate(TEACHER, packages)
        minilm = locate(ENGLISH_TEACHER, packages).parent
        locate(ENGLISH_TOKENIZER, packages)
        self._multilingual = _CachedEncoder(cache / "e5", lambda: read_e5(self._e5), progress)
        self._english = _CachedEncoder(cache / "minilm", lambda: read_minilm(minilm), progress)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed texts in any language by e5; (n_texts, 384) unit rows."""
        return self._multilingual([PREFIX + text for text in texts])

    def encode_english(self, texts: Sequence[str]) -> Vectors:
        """Embed English texts by both; (n_texts, 768), two halves of unit length each."""
        return np.hstack([self.encode(texts), self._english(texts)])

    def pieces(self) -> Iterator[tuple[str, float]]:
        """Yield e5's own pieces of words with their log probabilities, without special ones."""
        return PackedWeights(self._e5).pieces()


class _CachedEncoder:
    """An encoder whose vectors are kept in files of `CHUNK` texts."""

    def __init__(self, cache: Path, read: Callable[[], Encoder], progress: Progress) -> None:
        self._cache = cache
        self._read = read
        self._progress = progress
        self._encoder: Encoder | None = None
        self._rows: dict[str, NDArray[np.float16]] = {}
        cache.mkdir(parents=True, exist_ok=True)
        for path in sorted(cache.glob("*.npy")):
            texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            self._rows.update(zip(texts, np.load(path), strict=True))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        missing = sorted({text for text in texts if text not in self._rows}, key=len)
        if missing:
            reading = f"{self._cache.name} reads"
            with self._progress.step(reading, len(missing), unit="texts") as step:
                for start in range(0, len(missing), CHUNK):
                    self._store(missing[start : start + CHUNK], step.advance)
        return np.stack([self._rows[text] for text in texts]).astype(np.float32)

    def _store(self, texts: list[str], advance: Callable[[int], None]) -> None:
        self._encoder = self._encoder or self._read()
        rows = self._encoder.encode(texts, advance).astype(np.float16)
        name = self._cache / f"{len(list(self._cache.glob('*.npy'))):04d}"
        stored, file = json.dumps(texts, ensure_ascii=False), io.BytesIO()
        np.save(file, rows)
        write_atomically(name.with_suffix(".json"), stored.encode())
        write_atomically(name.with_suffix(".npy"), file.getvalue())
        self._rows.update(zip(texts, rows, strict=True))
