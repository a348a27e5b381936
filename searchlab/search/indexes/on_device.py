"""DeviceIndex: exact search of many queries at a time, multiplied on an accelerator by torch.

For evaluation, where a million queries are asked: truth for another index, a run over a large
dataset, a sweep of models. The device multiplies, and finds the candidates of each query; their
cosines are computed on the processor as everywhere else, so the answers are those of `ExactIndex`
to the last bit. A few queries are answered on the processor, as a server would.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError, MissingExtraError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import (
    ExactIndex,
    check_search,
    empty_neighbors,
    nearest_rows,
)
from searchlab.search.indexes.protocol import Allowed, Neighbors
from searchlab.search.indexes.scoring import MARGIN, best_first, cosines_of

if TYPE_CHECKING:
    import torch

_PRODUCTS = 2**28  # products that the device holds at a time, of 4 bytes
_SPARE = 64  # rows beyond the k best that the device also gives, for those that are nearly as good
_FEW = 16  # queries that are not worth the way to the device


class DeviceIndex(ExactIndex):
    """Nearest rows by scoring all of them on an accelerator.

    Args:
        vectors: (n_photos, dim) unit rows, copied to the device when it is first searched.
        device: A device of torch, such as `"cuda:1"`. If left out, the variable SEARCHLAB_DEVICE
            decides, and without it the first accelerator that there is is taken, or else the
            processor.

    Raises:
        InputError: There is no such device here.
        MissingExtraError: torch is not installed.
    """

    def __init__(self, vectors: Embeddings, device: str | None = None) -> None:
        self.check()
        super().__init__(vectors)
        from searchlab.models.devices import ENVIRONMENT, choose_device

        self.device = choose_device(device or os.environ.get(ENVIRONMENT) or "auto")
        self._rows: torch.Tensor | None = None

    @classmethod
    def check(cls) -> None:
        """Look for torch.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            import torch  # noqa: F401 - only whether it is there
        except ImportError as error:
            msg = (
                f"the index exact-on-device must have torch, got {error}; "
                "pip install 'searchlab[clip]', or take another index"
            )
            raise MissingExtraError(msg) from error

    @classmethod
    def build(
        cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> DeviceIndex:
        """Take the vectors; see `VectorIndex.build`."""
        return cls(vectors)

    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query, exactly; see `VectorIndex.search`.

        Raises:
            InputError: As there, or the vectors do not fit into the device's memory.
        """
        bits = check_search(self, queries, k, allowed, recall)
        n_found = min(k, len(self.vectors) if bits is None else bits.count)
        if len(queries) < _FEW or not n_found:
            return super().search(queries, k, allowed=bits)
        answers = empty_neighbors(len(queries), k, rows_read=len(self.vectors))
        for number, candidates in enumerate(self._candidates(queries, n_found, bits)):
            query = queries[number]
            if candidates is None:
                allowed_rows = None if bits is None else bits.rows()
                rows, scores = nearest_rows(self.vectors, query, n_found, rows=allowed_rows)
            else:
                scores = cosines_of(self.vectors, query, candidates)
                order = best_first(scores)[:n_found]
                rows, scores = candidates[order], scores[order]
            answers.rows[number, :n_found] = rows
            answers.scores[number, :n_found] = scores
        return answers

    def _candidates(
        self, queries: Embeddings, k: int, bits: Bitmap | None
    ) -> Iterator[NDArray[np.int64] | None]:
        """Yield for each query ascending rows that hold its k best; None where too many tie."""
        import torch

        with torch.inference_mode(), _whole_floats(), self._in_its_memory():
            if self._rows is None:
                self._rows = torch.from_numpy(np.array(self.vectors)).to(self.device)
            scored, allowed = self._rows, None
            if bits is not None:
                allowed = bits.rows()
                scored = scored[torch.from_numpy(allowed).to(self.device)]
            n_wanted = min(k + _SPARE, len(scored))
            is_whole = n_wanted == len(scored)
            at_once = max(1, _PRODUCTS // len(scored))

            def begin(start: int) -> tuple[Embeddings, torch.Tensor, torch.Tensor]:
                part = np.ascontiguousarray(queries[start : start + at_once], dtype=np.float32)
                best, rows = (torch.from_numpy(part).to(self.device) @ scored.T).topk(n_wanted)
                return part, best, rows

            def finish(
                part: Embeddings, best_there: torch.Tensor, rows_there: torch.Tensor
            ) -> Iterator[NDArray[np.int64] | None]:
                margins = MARGIN * np.maximum(1, np.linalg.norm(part, axis=1, keepdims=True))
                best, rows = best_there.cpu().numpy(), rows_there.cpu().numpy()
                is_near = best >= best[:, k - 1 : k] - margins
                for near, row in zip(
                    is_near, rows if allowed is None else allowed[rows], strict=True
                ):
                    yield np.sort(row[near]) if is_whole or not near[-1] else None

            # The device multiplies one batch while the candidates of the one before are scored.
            under_way = begin(0)
            for start in range(at_once, len(queries), at_once):
                following = begin(start)
                yield from finish(*under_way)
                under_way = following
            yield from finish(*under_way)

    @contextmanager
    def _in_its_memory(self) -> Iterator[None]:
        import torch

        try:
            yield
        except torch.OutOfMemoryError as error:
            size = f"{self.vectors.nbytes / 1e9:.1f} GB"
            msg = f"vectors must fit into the memory of {self.device}, got {size}; use `clustered`"
            raise InputError(msg) from error


@contextmanager
def _whole_floats() -> Iterator[None]:
    """Multiply in float32 inside, whatever was set: shortened products would lose candidates."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
