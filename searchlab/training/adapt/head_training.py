"""Training two residual heads on frozen rows: InfoNCE with hand-written gradients, in numpy.

All captions of a photo are its positives, and so is a caption that several photos share. A step
draws photos, some of them because they look like others in the batch, and a few captions of each,
every language as often as the others. The heads in use are a running average of those being
trained; those of the round whose average finds held-out photos best are kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.files import write_atomically
from searchlab.models.adapted import Head
from searchlab.models.protocol import Embeddings
from searchlab.training.adapt.pairs import CaptionPairs
from searchlab.training.adapt.ranking import queries_of

Arrays: TypeAlias = dict[str, NDArray[Any]]

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_LARGEST_SCALE = 100.0


@dataclass(frozen=True)
class TrainingSettings:
    """How heads are trained.

    Attributes:
        rounds: Parts of the training; after each one the held-out photos are searched.
        batch: Photos per step.
        captions: Captions of each photo per step.
        hard: Share of a batch, 0 to 0.5, drawn because the photos look like others in it.
        learning_rate: The highest rate; it rises to it at first, then falls along a cosine.
        average: Share of the running average that a step leaves as it is, 0 to 1.
        patience: Training stops after so many rounds without a better one.
        scale: Sharpness of the contrast at the start; it is learnt.
        seed: Seed of everything that is drawn at random.
    """

    rounds: int = 40
    batch: int = 512
    captions: int = 2
    hard: float = 0.25
    learning_rate: float = 2e-3
    average: float = 0.98
    patience: int = 10
    scale: float = 20.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the share of hard photos: each is drawn for one that is not.

        Raises:
            InputError: It is out of range.
        """
        if not 0 <= self.hard <= 0.5:
            msg = f"hard must lie between 0 and 0.5, got {self.hard}"
            raise InputError(msg)

    def steps(self, n_photos: int) -> int:
        """Return the steps in a round: enough for small sets, no more than large ones need."""
        n_steps = self.rounds * n_photos / min(self.batch, max(1, n_photos))
        return round(min(6_000, max(600, n_steps)) / self.rounds)

    def weight_decay(self, n_photos: int) -> float:
        """Return the weight decay: with fewer photos it is higher, and heads change rows less."""
        return min(30.0, 5_000 / max(1, n_photos))


class Trainer:
    """Heads in training; `state` and `restore` let another process continue.

    Attributes:
        round: Rounds done.
        score: Score of the best round on the held-out photos.
        best: Number of that round, 0 for the untrained heads.
    """

    def __init__(
        self, train: CaptionPairs, validation: CaptionPairs, settings: TrainingSettings
    ) -> None:
        self._train, self._settings = train, settings
        dim = train.photos.shape[1]
        self._weights: Arrays = {
            f"{side}_{part}": np.zeros((dim, dim) if part == "linear" else dim, dtype=np.float32)
            for side in ("image", "text")
            for part in ("linear", "bias")
        }
        self._weights["scale"] = np.full(1, np.log(settings.scale), dtype=np.float32)
        self._first = {name: np.zeros_like(array) for name, array in self._weights.items()}
        self._second = {name: np.zeros_like(array) for name, array in self._weights.items()}
        self._average = {name: array.copy() for name, array in self._weights.items()}
        self._best_weights = {name: array.copy() for name, array in self._weights.items()}
        self._photos, self._validation = validation.photos, queries_of(validation)
        self._sampler = _PairSampler(train)
        self.round, self.best = 0, 0
        self.score = self._judge(self._average)

    @property
    def fingerprint(self) -> str:
        """12 hex digits over data and settings; a state with another fingerprint is not used."""
        inputs = [self._train.fingerprint, self._validation.fingerprint, asdict(self._settings)]
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def done(self) -> bool:
        """Whether all rounds are done, or `patience` of them brought nothing better."""
        without_gain = self.round - self.best
        return self.round >= self._settings.rounds or without_gain >= self._settings.patience

    def train_round(self) -> None:
        """Train one round, and score the running average on the held-out photos."""
        settings, n_photos = self._settings, len(self._train)
        steps = settings.steps(n_photos)
        decay = settings.weight_decay(n_photos)
        # Seeded for each round, so that a round gives the same in a process that starts with it.
        rng = np.random.default_rng([settings.seed, self.round])
        for step in range(self.round * steps, (self.round + 1) * steps):
            share_done = step / (settings.rounds * steps)
            rate = settings.learning_rate * min(1, (step + 1) / 20)
            rate *= 0.5 + 0.5 * np.cos(np.pi * share_done)
            gradients = self._gradients(rng)
            self._update(gradients, step + 1, float(rate), decay)
        self.round += 1
        score = self._judge(self._average)
        if score > self.score:
            self.score, self.best = score, self.round
            self._best_weights = {name: array.copy() for name, array in self._average.items()}

    def heads(self) -> tuple[Head, Head, float]:
        """Return the best heads of photos and texts, and the share to which they are applied.

        With few photos the full heads may change rows too much, so the share, 0 to 1, that finds
        held-out photos best is chosen.
        """
        image, text = _heads(self._best_weights)
        scores = [self._score(image.scale(share), text.scale(share)) for share in _SHARES]
        share = _SHARES[int(np.argmax(scores))]
        return image.scale(share), text.scale(share), share

    def state(self) -> bytes:
        """Return all that is needed to continue, as the bytes of an npz file."""
        groups = {"w": self._weights, "m": self._first, "v": self._second}
        groups |= {"a": self._average, "k": self._best_weights}
        arrays = {
            f"{group}.{name}": array
            for group, weights in groups.items()
            for name, array in weights.items()
        }
        progress = np.array([self.round, self.best, self.score], dtype=np.float64)
        file = io.BytesIO()
        arrays |= {"fingerprint": np.array(self.fingerprint), "progress": progress}
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()

    def restore(self, path: Path) -> bool:
        """Continue from a saved state; returns False if there is none of this training."""
        try:
            with np.load(io.BytesIO(path.read_bytes())) as arrays:
                if str(arrays["fingerprint"]) != self.fingerprint:
                    return False
                groups: dict[str, Arrays] = {
                    group: {name: arrays[f"{group}.{name}"] for name in self._weights}
                    for group in "wmvak"
                }
                progress = arrays["progress"]
        except (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error):
            # The file is missing, cut short or no archive, so training starts again.
            return False
        self._weights, self._first, self._second = groups["w"], groups["m"], groups["v"]
        self._average, self._best_weights = groups["a"], groups["k"]
        self.round, self.best, self.score = int(progress[0]), int(progress[1]), float(progress[2])
        return True

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all."""
        write_atomically(path, self.state())

    def _judge(self, weights: Arrays) -> float:
        return self._score(*_heads(weights))

    def _score(self, image: Head, text: Head) -> float:
        return self._validation.likelihood(image(self._photos), text)

    def _gradients(self, rng: np.random.Generator) -> Arrays:
        settings, train = self._settings, self._train
        n_batch = min(settings.batch, len(train))
        image, text = _heads(self._weights)
        photos = self._sampler.draw_photos(rng, n_batch, settings.hard, image)
        captions, positive = self._sampler.draw_captions(rng, photos, settings.captions)
        photo_rows, photo_back = _forward(train.photos[photos], image)
        text_rows, text_back = _forward(train.texts[captions], text)
        scale = float(np.exp(self._weights["scale"][0]))
        _, d_logits, cosines = contrast(text_rows, photo_rows, positive, scale)
        d_image = photo_back(np.float32(scale) * d_logits.T @ text_rows)
        d_text = text_back(np.float32(scale) * d_logits @ photo_rows)
        return {
            "image_linear": d_image[0],
            "image_bias": d_image[1],
            "text_linear": d_text[0],
            "text_bias": d_text[1],
            "scale": np.array([(d_logits * cosines).sum() * scale], dtype=np.float32),
        }

    def _update(self, gradients: Arrays, step: int, rate: float, decay: float) -> None:
        """Take a step of AdamW (Loshchilov and Hutter, ICLR 2019), then update the average."""
        share = min(self._settings.average, (step + 1) / (step + 10))
        for name, weight in self._weights.items():
            first, second, gradient = self._first[name], self._second[name], gradients[name]
            first += np.float32(0.1) * (gradient - first)
            second += np.float32(0.001) * (gradient**2 - second)
            if name.endswith("linear"):
                weight *= np.float32(1 - rate * decay)
            direction = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            weight -= np.float32(rate) * direction.astype(np.float32)
            if name == "scale":
                np.minimum(weight, np.float32(np.log(_LARGEST_SCALE)), out=weight)
            average = self._average[name]
            average += np.float32(1 - share) * (weight - average)


def contrast(
    texts: Embeddings, photos: Embeddings, positive: NDArray[np.bool_], scale: float
) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
    """Compute InfoNCE in both directions with several positives.

    Args:
        texts: (n_texts, dim) unit rows.
        photos: (n_photos, dim) unit rows.
        positive: (n_texts, n_photos) bool, whether a text is of a photo; at least one in each row
            and column. The positives of a row, or of a column, count equally.
        scale: Sharpness: what cosines are multiplied with.

    Returns:
        The loss, its gradient by the scaled cosines, and the cosines, both (n_texts, n_photos).

    References:
        van den Oord, Li and Vinyals, Representation learning with contrastive predictive coding,
        2018. Khosla et al., Supervised contrastive learning, NeurIPS 2020.
    """
    cosines = texts @ photos.T
    logits = np.float32(scale) * cosines
    pairs = np.nonzero(positive)
    loss = 0.0
    gradient = np.zeros_like(logits)
    for axis in (1, 0):
        n_rows, rows = logits.shape[1 - axis], pairs[1 - axis]
        weights = 0.5 / n_rows / np.bincount(rows, minlength=n_rows)[rows]
        highest = logits.max(axis=axis, keepdims=True)
        shares = np.exp(logits - highest)
        sums = shares.sum(axis=axis, keepdims=True)
        whole = np.log(sums) + highest
        loss += float(weights @ (whole.ravel()[rows] - logits[pairs]))
        shares *= np.float32(0.5 / n_rows) / sums
        shares[pairs] -= weights.astype(np.float32)
        gradient += shares
    return loss, gradient, cosines


def _heads(weights: Arrays) -> tuple[Head, Head]:
    image, text = (
        Head(weights[f"{side}_linear"], weights[f"{side}_bias"]) for side in ("image", "text")
    )
    return image, text


def _forward(
    rows: Embeddings, head: Head
) -> tuple[Embeddings, Callable[[NDArray[np.floating]], tuple[NDArray[Any], NDArray[Any]]]]:
    """Map rows; also returns a function from their gradient to those of the head's two arrays."""
    mapped = rows + rows @ head.linear + head.bias
    lengths = np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-9)
    unit = mapped / lengths

    def backward(gradient: NDArray[np.floating]) -> tuple[NDArray[Any], NDArray[Any]]:
        along = (gradient * unit).sum(axis=1, keepdims=True)
        across = (gradient - unit * along) / lengths
        return rows.T @ across, across.sum(axis=0)

    return unit, backward


class _PairSampler:
    """Draws the photos and captions of a step."""

    def __init__(self, pairs: CaptionPairs) -> None:
        self._photos = pairs.photos
        order = np.argsort(pairs.owners, kind="stable")
        owners, langs = pairs.owners[order], pairs.langs[order]
        # Each photo's weights sum to 1, so the running sum reaches photo p at p.
        _, kind, count = np.unique(
            np.stack([owners.astype(np.str_), langs]),
            axis=1,
            return_inverse=True,
            return_counts=True,
        )
        share = 1 / count[kind.ravel()]
        total = np.bincount(owners, weights=share, minlength=len(pairs))
        self._sums = np.cumsum(share / total[owners])
        self._order, self._owners = order, pairs.owners
        self._text_ids = pairs.text_ids
        shared = np.bincount(pairs.text_ids) > 1 if len(pairs.text_ids) else np.zeros(0, dtype=bool)
        self._carriers: dict[int, NDArray[np.int64]] = {}
        for number in np.flatnonzero(shared).tolist():
            self._carriers[number] = np.unique(pairs.owners[pairs.text_ids == number])

    def draw_photos(
        self, rng: np.random.Generator, n_photos: int, hard: float, image: Head
    ) -> NDArray[np.int64]:
        """Draw different photos, a share of them because they look like others drawn."""
        n_hard = int(n_photos * hard) if n_photos < len(self._photos) else 0
        pool = rng.permutation(len(self._photos))[: 8 * n_photos]
        first, rest = pool[: n_photos - n_hard], pool[n_photos - n_hard :]
        if not n_hard:
            return first
        rows, others = image(self._photos[first[:n_hard]]), image(self._photos[rest])
        nearest = np.argmax(rows @ others.T, axis=1)
        return np.unique(np.concatenate([first, rest[nearest]]))

    def draw_captions(
        self, rng: np.random.Generator, photos: NDArray[np.int64], n_captions: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw captions of each photo; also (n_texts, n_photos) bool, which is of which."""
        owners = np.repeat(photos, n_captions)
        places = np.searchsorted(self._sums, owners + rng.random(len(owners)), side="right")
        # Rounded sums must not lead to a caption of the photo before or after.
        captions = self._order[np.clip(places, *self._bounds(owners))]
        column = np.full(len(self._photos), -1)
        column[photos] = np.arange(len(photos))
        positive = self._owners[captions][:, None] == photos
        for row, number in enumerate(self._text_ids[captions].tolist()):
            if number in self._carriers:
                columns = column[self._carriers[number]]
                positive[row, columns[columns >= 0]] = True
        return captions, positive

    def _bounds(self, photos: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        owners = self._owners[self._order]
        first = np.searchsorted(owners, photos, side="left")
        return first, np.searchsorted(owners, photos, side="right") - 1
