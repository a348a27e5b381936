"""Stages of training that are kept, so that an interrupted build goes on behind the last of them.

Threads add up in another order in every run, so a stage that is computed again differs in its last
digits. Stages are therefore named by what goes into the whole training, not by the stage before.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from searchlab.files import write_atomically
from searchlab.training.mini.photo_tower import Readings

Kept = TypeVar("Kept")


class Learner(Protocol):
    """Something whose weights can be kept: a module, or the table of pieces."""

    def state_dict(self) -> dict[str, Any]:
        """Return the weights by name."""

    def load_state_dict(self, state: Any) -> Any:
        """Take weights by name."""


def digest_of(views: Sequence[Readings], *inputs: object) -> str:
    """Hash readings, other inputs by what `repr` says of them, and code; 12 hex digits."""
    digest = hashlib.sha256(torch.__version__.encode())
    for one in inputs:
        digest.update(repr(one).encode())
    for view in views:
        digest.update(repr(view.ids).encode())
        digest.update(view.features.tobytes())
        digest.update(view.logits.tobytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def restore_or_make(path: Path, make: Callable[[], Kept]) -> Kept:
    """Return what a file keeps; if there is none, make it and keep it.

    Args:
        path: The file; its folder is made if absent.
        make: Makes tensors, in lists and dictionaries.
    """
    if path.exists():
        kept: Kept = torch.load(path)
        return kept
    made = make()
    file = io.BytesIO()
    torch.save(made, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, file.getvalue())
    return made


def restore_or_train(path: Path, learners: Sequence[Learner], train: Callable[[], None]) -> None:
    """Give learners the weights that a file keeps; if there is none, train and keep them."""

    def train_all() -> list[dict[str, Any]]:
        train()
        return [learner.state_dict() for learner in learners]

    for learner, state in zip(learners, restore_or_make(path, train_all), strict=True):
        learner.load_state_dict(state)
