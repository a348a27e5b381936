"""A million real text vectors: captions spliced from halves of real ones, by the default model.

Every row is the vector of a text that nobody wrote, made of two halves that people or models did,
so rows lie where captions lie, in groups that share a half.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from searchlab.models import load_model
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress

CAPTIONS = ("flickr8k-train/captions.tsv", "web-photos/captions.tsv")
NAME = re.compile(r"spliced-([1-9][0-9]*)(k|M)")
_BATCH = 4_096
# Captions kept apart as queries, the same however many are asked.
_ASKED = 2_000


def read_captions(data: Path) -> list[str]:
    """Read the English captions below the folder of the datasets."""
    captions = []
    for name in CAPTIONS:
        with (data / name).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            captions += [row["text"] for row in rows if row["lang"] == "en"]
    return captions


def spliced_vectors(
    name: str, root: Path, *, seed: int, progress: Progress, cache: Path | None
) -> tuple[Embeddings, list[str]]:
    """Make the rows, or read them from the cache.

    Args:
        name: Matches `NAME`.
        root: Folder of the datasets.
        seed: Seed of what is spliced, and of which captions are kept apart.
        progress: Shows how many texts were embedded.
        cache: Folder that keeps the vectors.

    Returns:
        (n, dim) unit rows, and captions that no half was taken from.
    """
    captions = read_captions(root)
    rng = np.random.default_rng(seed)
    captions = [captions[number] for number in rng.permutation(len(captions)).tolist()]
    halves = [caption.split() for caption in captions[_ASKED:]]
    model = load_model("mini")
    digest = hashlib.sha256("\n".join(captions).encode()).hexdigest()[:12]
    path = None if cache is None else cache / f"{name}-{digest}-{model.model_id}.npy"
    if path is not None and path.exists():
        return np.load(path, mmap_mode="r"), captions[:_ASKED]
    n = int(name[len("spliced-") : -1]) * {"k": 1_000, "M": 1_000_000}[name[-1]]
    rows = np.empty((n, model.dim), dtype=np.float32)
    with progress.step("embedding spliced captions", n, unit="texts") as step:
        for start in range(0, n, _BATCH):
            size = min(_BATCH, n - start)
            rows[start : start + size] = model.encode_texts(list(_splice(halves, rng, size)))
            step.advance(size)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, rows)
        return np.load(path, mmap_mode="r"), captions[:_ASKED]
    return rows, captions[:_ASKED]


def _splice(halves: list[list[str]], rng: np.random.Generator, n: int) -> Iterator[str]:
    for one, other in rng.integers(len(halves), size=(n, 2)).tolist():
        first, second = halves[one], halves[other]
        yield " ".join(first[: len(first) // 2] + second[len(second) // 2 :])
