"""How often programs name the colour that a person names first for a photo.

The judgments are those of `datasets/color-judgments`. A method is right when it names the first
colour, and passes when it names that or another that the judge would have taken. Beside searchlab's
method stand what it was before (votes with weights set by hand), the largest cluster, and the mean
of the picture. The votes' weights are learnt on the judgments' `tune` part alone.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import ENVIRONMENT, bundled_root, external_root
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.photos.colors import (
    FAMILY_NAMES,
    color_name,
    format_hex,
    linear_to_srgb,
    nearest_family,
    oklab_to_shades,
    srgb_to_linear,
)
from searchlab.photos.images.color_clusters import cluster, find_clusters, read_pixels
from searchlab.photos.images.decode import WORKING_SIDE, DecodedImage, open_rgb
from searchlab.photos.images.dominant_colors import (
    VOTE_WEIGHTS,
    describe_clusters,
    dominant_and_palette,
)

PARTS = ("report", "vivid", "tune")
LEAST_SHARE: Final = 0.1
"""Share of the picture from which on a colour of a palette is counted."""

Method = Callable[[Image.Image, Image.Image | None], str]
"""From a picture and its opacity to the name of a family."""


@dataclass(frozen=True)
class JudgedPhoto:
    """A photo whose colour was judged by eye.

    Attributes:
        collection: Where it is from.
        photo_id: Its id there.
        first: The family that stands for it.
        also: Other families that one could name as well.
        file: The picture.
    """

    collection: str
    photo_id: str
    first: str
    also: tuple[str, ...]
    file: Path

    def read(self) -> DecodedImage:
        """Decode it as indexing does."""
        return open_rgb(self.file, min_side=WORKING_SIDE)


def read_judged_photos(
    part: str, collections: Sequence[str] | None = None
) -> tuple[JudgedPhoto, ...]:
    """Read the judgments of a part.

    Args:
        part: One of `PARTS`.
        collections: Those wanted; all if left out.

    Raises:
        InputError: There is no such part.
        NotFoundError: The photos of a collection are not there.
    """
    if part not in PARTS:
        msg = f"part must be one of {', '.join(PARTS)}, got {part!r}"
        raise InputError(msg)
    rows = _read_table(bundled_root() / "color-judgments" / "judgments.tsv")
    rows = [row for row in rows if row["part"] == part]
    rows = [row for row in rows if collections is None or row["collection"] in collections]
    files = {name: _files_of(name) for name in sorted({row["collection"] for row in rows})}
    return tuple(
        JudgedPhoto(
            row["collection"],
            row["photo_id"],
            row["first"],
            tuple(filter(None, row["also"].split(","))),
            files[row["collection"]][row["photo_id"]],
        )
        for row in rows
    )


def _read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _files_of(collection: str) -> dict[str, Path]:
    if collection == "demo":
        folder = bundled_root() / "demo"
        lines = (folder / "photos.jsonl").read_text(encoding="utf-8").splitlines()
        return {r["source_photo_id"]: folder / r["file"] for r in map(json.loads, lines)}
    root = external_root()
    if root is None or not (root / collection / "photos.tsv").is_file():
        msg = (
            f"the photos of {collection!r} do not ship with searchlab; set {ENVIRONMENT} to a "
            f"folder that holds {collection}/, got {root}"
        )
        raise NotFoundError(msg)
    rows = _read_table(root / collection / "photos.tsv")
    return {row["photo_id"]: root / collection / row["file"] for row in rows}


def name_by_votes(image: Image.Image, alpha: Image.Image | None = None) -> str:
    """Name the dominant colour as searchlab does."""
    return color_name(dominant_and_palette(image, alpha)[0])


def name_by_set_votes(image: Image.Image, alpha: Image.Image | None = None) -> str:
    """Name it as searchlab did before: twelve clusters, and weights set by hand."""
    pixels = read_pixels(image, alpha)
    area = pixels.area * (1.0 - 0.25 * (pixels.down**2 + pixels.across**2))
    area /= area.sum()
    members = cluster(pixels.lab, area, most=12)
    shares = np.bincount(members, area)
    sums = np.stack([np.bincount(members, area * plane) for plane in pixels.lab.T])
    centres = (sums / shares).T.astype(np.float32)
    chroma, light = np.hypot(centres[:, 1], centres[:, 2]), centres[:, 0]
    # A grey counts a third of a strong colour, and what is nearly black half again.
    voice = 0.3 + 0.7 * np.clip(chroma / 0.12, 0, 1)
    voice *= 0.5 + 0.5 * np.clip((light - 0.15) / 0.2, 0, 1)
    families, votes = nearest_family(centres), shares * voice
    loudest = np.where(families == np.bincount(families, votes).argmax(), votes, -1.0).argmax()
    return color_name(format_hex(int(oklab_to_shades(centres[loudest : loudest + 1])[0])))


def name_by_area(image: Image.Image, alpha: Image.Image | None = None) -> str:
    """Name the largest cluster."""
    centre = find_clusters(image, alpha).centres[:1]
    return color_name(format_hex(int(oklab_to_shades(centre)[0])))


def name_by_mean(image: Image.Image, _alpha: Image.Image | None = None) -> str:
    """Name the mean of the light, as some photo libraries do."""
    light = srgb_to_linear(np.asarray(image)).reshape(-1, 3).mean(axis=0)
    red, green, blue = np.rint(255 * linear_to_srgb(light)).astype(int).tolist()
    return color_name(format_hex(red << 16 | green << 8 | blue))


METHODS: Final[dict[str, Method]] = {
    "votes, weights learnt": name_by_votes,
    "votes, weights set by hand": name_by_set_votes,
    "largest cluster": name_by_area,
    "mean": name_by_mean,
}
"""Name of a method -> what it names; the first is searchlab's, the second what it was before."""


def measure(
    photos: Sequence[JudgedPhoto], *, samples: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Measure every method, as it is recorded.

    Args:
        photos: Judged photos, at least one.
        samples: Resamples behind the intervals.
        seed: Of the resampling.

    Returns:
        `metrics`; `methods`, the share right and passing with intervals, `over the rest`, what
        searchlab's method has over each other one, paired; `collections`, the same shares by
        collection; and `photos`, what each method named.
    """
    ours, *others = METHODS
    named: dict[str, list[str]] = {name: [] for name in METHODS}
    is_in_palette = []
    for photo in photos:
        decoded = photo.read()
        for name, method in METHODS.items():
            named[name].append(method(decoded.image, decoded.alpha))
        palette = dominant_and_palette(decoded.image, decoded.alpha)[1]
        families = {color_name(shade) for shade, share in palette if share >= LEAST_SHARE}
        is_in_palette.append(photo.first in families)
    hits = {name: _hits(photos, names) for name, names in named.items()}
    table: dict[str, Any] = {
        name: {kind: _interval(values, samples, seed) for kind, values in of_method.items()}
        for name, of_method in hits.items()
    }
    gains = {
        name: {
            kind: _interval(hits[ours][kind] - hits[name][kind], samples, seed)
            for kind in ("right", "passing")
        }
        for name in others
    }
    where = np.array([photo.collection for photo in photos])
    return {
        "parameters": {"samples": samples, "seed": seed, "least_share": LEAST_SHARE},
        "metrics": {
            "n_photos": len(photos),
            **{
                f"{kind} {name}": table[name][kind]["mean"] for name in table for kind in hits[name]
            },
            "first is in the palette": round(float(np.mean(is_in_palette)), 4),
        },
        "methods": table,
        "over the rest": gains,
        "collections": {
            str(collection): {"n_photos": int((where == collection).sum())}
            | {
                name: {
                    kind: round(float(values[where == collection].mean()), 4)
                    for kind, values in of_method.items()
                }
                for name, of_method in hits.items()
            }
            for collection in np.unique(where)
        },
        "photos": [
            [photo.collection, photo.photo_id, photo.first, *(named[name][i] for name in METHODS)]
            for i, photo in enumerate(photos)
        ],
    }


def _hits(photos: Sequence[JudgedPhoto], names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    pairs = list(zip(photos, names, strict=True))
    return {
        "right": np.array([name == photo.first for photo, name in pairs], dtype=np.float64),
        "passing": np.array(
            [name in (photo.first, *photo.also) for photo, name in pairs], dtype=np.float64
        ),
    }


def _interval(values: NDArray[np.float64], samples: int, seed: int) -> dict[str, float]:
    interval = bootstrap_interval(values, samples=samples, seed=seed)
    return {part: round(value, 4) for part, value in interval._asdict().items()}


# -- learning the weights


_FIRST: Final = 0.6  # What the first colour counts in the likelihood, beside the others that pass.
_SLIP: Final = 0.04  # Judges slip, so that no single photo can pull the weights anywhere.
_PRIOR: Final = 1.0  # How strongly weights are held to a vote by area alone.

Described = tuple[NDArray[np.float64], NDArray[np.uint8], list[int]]


def learn_weights(photos: Sequence[JudgedPhoto]) -> dict[str, float]:
    """Learn `VOTE_WEIGHTS` from judged photos, by maximum likelihood with a prior.

    The chance that a family is named is taken as its votes to some power, over the sum of all.

    Args:
        photos: Of the `tune` part.
    """
    from scipy.optimize import minimize

    described = [_describe(photo) for photo in photos]
    start = np.zeros(1 + len(VOTE_WEIGHTS))
    start[1] = 1.0
    best = minimize(_loss, start, args=(described, start), method="L-BFGS-B").x
    return dict(zip(VOTE_WEIGHTS, np.round(best[1:], 2).tolist(), strict=True))


def _describe(photo: JudgedPhoto) -> Described:
    decoded = photo.read()
    clusters = find_clusters(decoded.image, decoded.alpha)
    passing = [FAMILY_NAMES.index(name) for name in (photo.first, *photo.also)]
    return describe_clusters(clusters), nearest_family(clusters.centres), passing


def _loss(
    weights: NDArray[np.float64], photos: Sequence[Described], start: NDArray[np.float64]
) -> float:
    total = _PRIOR * float(np.sum((weights - start) ** 2))
    for columns, families, passing in photos:
        scores = columns @ weights[1:]
        votes = np.bincount(families, np.exp(scores - scores.max()), minlength=len(FAMILY_NAMES))
        chances = votes ** np.exp(weights[0])
        chances = (1 - _SLIP) * chances / chances.sum() + _SLIP / len(FAMILY_NAMES)
        total -= _FIRST * float(np.log(chances[passing[0]]))
        total -= (1 - _FIRST) * float(np.log(chances[passing].sum()))
    return total


def cross_validate(photos: Sequence[JudgedPhoto], *, folds: int = 5) -> dict[str, float]:
    """Say how often weights learnt on the other folds are right and passing on a fold."""
    hits = []
    for fold in range(folds):
        weights = learn_weights([photo for i, photo in enumerate(photos) if i % folds != fold])
        column = np.array(list(weights.values()))
        for photo in photos[fold::folds]:
            columns, families, passing = _describe(photo)
            winner = int(np.bincount(families, np.exp(columns @ column)).argmax())
            hits.append((winner == passing[0], winner in passing))
    right, passed = np.mean(hits, axis=0).tolist()
    return {"right": round(right, 4), "passing": round(passed, 4)}
