"""Tolerance curves: the shades within a tolerance, compared with CIEDE2000 and simpler metrics.

For a reference shade and a tolerance, `within_hex` keeps a set of shades. It is compared with the
set of as many shades that are nearest by CIEDE2000: the radius of that set is the meaning of the
tolerance there, and the overlap of both sets (Jaccard's) shows how well they agree. Also measured
is the share of pairs of shades that both metrics order in the same way by nearness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import COLOR_METRIC
from searchlab.errors import InputError
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.photos.colors import Shades, format_hex, shades_to_oklab, within_hex
from searchlab.studies.color.metrics import METRICS, ciede2000, euclid, shades_to_cielab

TOLERANCES = (5, 10, 15, 20, 30, 40, 60, 80, 120)
_FEWEST = 10  # least shades of a set for its overlap to be meaningful
_ORDERED_WITHIN = 60  # tolerance within which shades are near enough to compare their order
_ORDERED = 500  # most shades whose order is compared
REGIONS: dict[str, tuple[float, ...]] = {
    "lightness": (0, 25, 50, 75, 101),
    "chroma": (0, 15, 40, 70, 140),
    "hue": (0, 45, 90, 135, 180, 225, 270, 315, 360),
}
"""Bounds of the regions of CIELAB that are reported separately: L*, C*, and h in degrees."""


def cube(steps: int) -> Shades:
    """Return (steps^3,) shades spread evenly over the sRGB cube, including its corners."""
    if not 2 <= steps <= 256:
        msg = f"steps must be from 2 to 256, got {steps}"
        raise InputError(msg)
    levels = np.rint(np.linspace(0, 255, steps)).astype(np.uint32)
    red, green, blue = np.meshgrid(levels, levels, levels, indexing="ij")
    return (red << np.uint32(16) | green << np.uint32(8) | blue).ravel()


def mean_interval(values: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean of the values that are not NaN with its 95 % interval, to four digits."""
    known = values[~np.isnan(values)]
    interval = bootstrap_interval(known)
    return {part: round(value, 4) for part, value in interval._asdict().items()}


@dataclass(frozen=True, eq=False)
class ToleranceCurves:
    """Tolerances around many reference shades; NaN where too few shades are near.

    Attributes:
        references: (n,) uint32 shades.
        tolerances: (n_tolerances,) tolerances, ascending.
        share: (n, n_tolerances) share of the pool within the tolerance, 0 to 1.
        ciede2000: (n, n_tolerances) radius in CIEDE2000 that holds as many shades.
        surely: (n, n_tolerances) CIEDE2000 of the nearest shade outside the tolerance.
        at_most: (n, n_tolerances) CIEDE2000 of the farthest shade within the tolerance.
        overlap: Metric -> (n, n_tolerances) Jaccard's overlap with as many shades by CIEDE2000.
        order: Metric -> (n,) share of pairs that it orders as CIEDE2000 does, 0.5 by chance.
    """

    references: Shades
    tolerances: tuple[int, ...]
    share: NDArray[np.float64]
    ciede2000: NDArray[np.float64]
    surely: NDArray[np.float64]
    at_most: NDArray[np.float64]
    overlap: dict[str, NDArray[np.float64]]
    order: dict[str, NDArray[np.float64]]

    def column(self, tolerance: int) -> int:
        """Return the position of a tolerance in `tolerances`.

        Raises:
            InputError: The tolerance was not measured.
        """
        if tolerance not in self.tolerances:
            msg = f"tolerance must be one of {self.tolerances}, got {tolerance}"
            raise InputError(msg)
        return self.tolerances.index(tolerance)

    def rows(self) -> list[dict[str, Any]]:
        """Summarise each tolerance over all references; means with their 95 % intervals."""
        return [self._row(place) | {"tolerance": t} for place, t in enumerate(self.tolerances)]

    def region_rows(self, tolerance: int) -> list[dict[str, Any]]:
        """Summarise one tolerance by lightness, chroma and hue of the references."""
        place = self.column(tolerance)
        lab = shades_to_cielab(self.references)
        chroma = np.hypot(lab[:, 1], lab[:, 2])
        hue = np.degrees(np.arctan2(lab[:, 2], lab[:, 1])) % 360
        rows = []
        for region, values in (("lightness", lab[:, 0]), ("chroma", chroma), ("hue", hue)):
            for low, high in zip(REGIONS[region], REGIONS[region][1:], strict=False):
                here = (values >= low) & (values < high)
                if region == "hue":  # grays have no hue
                    here &= chroma >= REGIONS["chroma"][1]
                if not np.isnan(self.ciede2000[here, place]).all():
                    rows.append({"region": region, "from": low, "to": high})
                    rows[-1] |= self._row(place, here)
        return rows

    def order_rows(self) -> dict[str, dict[str, float]]:
        """Return for each metric the mean of `order` with its 95 % interval."""
        return {name: mean_interval(values) for name, values in self.order.items()}

    def gain_rows(self, tolerance: int) -> dict[str, dict[str, float]]:
        """Return how much higher overlap and order are with other metrics than with ours, paired.

        Returns:
            `overlap of METRIC` and `order of METRIC` -> mean difference with its 95 % interval.
        """
        place = self.column(tolerance)
        gains = {}
        for name in list(self.overlap)[1:]:
            more = self.overlap[name] - self.overlap[COLOR_METRIC]
            gains[f"overlap of {name}"] = mean_interval(more[:, place])
            gains[f"order of {name}"] = mean_interval(self.order[name] - self.order[COLOR_METRIC])
        return gains

    def worst(self, tolerance: int, n: int = 10) -> NDArray[np.int64]:
        """Return the positions of the references with the least overlap, worst first."""
        return np.argsort(self.overlap[COLOR_METRIC][:, self.column(tolerance)])[:n]

    def _row(self, place: int, here: Any = slice(None)) -> dict[str, Any]:
        radii = self.ciede2000[here, place]
        known = radii[~np.isnan(radii)]
        p5, p50, p95 = np.percentile(known, [5, 50, 95])
        return {
            "n_shades": len(known),
            "share": mean_interval(self.share[here, place]),
            "ciede2000": mean_interval(radii),
            "ciede2000_p5": round(float(p5), 4),
            "ciede2000_p50": round(float(p50), 4),
            "ciede2000_p95": round(float(p95), 4),
            "surely_p50": round(float(np.nanmedian(self.surely[here, place])), 4),
            "at_most_p50": round(float(np.nanmedian(self.at_most[here, place])), 4),
            "overlap": {
                name: mean_interval(values[here, place]) for name, values in self.overlap.items()
            },
        }


def tolerance_curves(
    references: Shades, *, pool: Shades, tolerances: Sequence[int] = TOLERANCES
) -> ToleranceCurves:
    """Measure tolerances around reference shades; takes about 40 ms a shade with a pool of 36,000.

    Args:
        references: (n,) uint32 shades that a user might search for.
        pool: (n_pool,) uint32 shades to test.
        tolerances: Tolerances, ascending and above 0.

    Raises:
        InputError: There are no references or no pool, or tolerances do not ascend from above 0.
    """
    steps = tuple(tolerances)
    ascend = bool(steps) and steps[0] > 0 and list(steps) == sorted(set(steps))
    if not len(references) or not len(pool) or not ascend:
        msg = (
            "references and pool must not be empty and tolerances ascend from above 0, got "
            f"{len(references)}, {len(pool)} and {steps}"
        )
        raise InputError(msg)
    shape = (len(references), len(steps))
    share, radius, surely, at_most = (np.full(shape, np.nan) for _ in range(4))
    overlap = {name: np.full(shape, np.nan) for name in METRICS}
    order = {name: np.full(len(references), np.nan) for name in METRICS}
    oklab = shades_to_oklab(pool)
    for row, (reference, judged, distances) in enumerate(_distances(references, pool)):
        nearest = np.argsort(judged, kind="stable")
        rank = np.empty(len(pool), dtype=np.int64)
        rank[nearest] = np.arange(len(pool))
        for place, tolerance in enumerate(steps):
            inside = within_hex(pool, format_hex(reference), tolerance=tolerance, lab=oklab)
            n_kept = int(np.count_nonzero(inside))
            share[row, place] = n_kept / len(pool)
            if not _FEWEST <= n_kept < len(pool):
                continue
            radius[row, place] = judged[nearest[n_kept - 1]]
            surely[row, place] = judged[~inside].min()
            at_most[row, place] = judged[inside].max()
            for name, away in distances.items():
                mine = inside if name == COLOR_METRIC else np.argpartition(away, n_kept)[:n_kept]
                n_both = int(np.count_nonzero(rank[mine] < n_kept))
                overlap[name][row, place] = n_both / (2 * n_kept - n_both)
        for name, agreement in _orders(judged, rank, distances).items():
            order[name][row] = agreement
    return ToleranceCurves(
        references, steps, share, radius, surely, at_most, overlap=overlap, order=order
    )


def _distances(
    references: Shades, pool: Shades
) -> Iterator[tuple[int, NDArray[np.float64], dict[str, NDArray[np.float64]]]]:
    """Yield each reference with its distances to the pool, by CIEDE2000 and by each metric."""
    points = {name: coordinates(pool) for name, coordinates in METRICS.items()}
    centres = {name: coordinates(references) for name, coordinates in METRICS.items()}
    for row, reference in enumerate(references.tolist()):
        judged = ciede2000(points["cielab"], centres["cielab"][row])
        distances = {name: euclid(points[name], centres[name][row]) for name in METRICS}
        yield reference, judged, distances


def _orders(
    judged: NDArray[np.float64],
    rank: NDArray[np.int64],
    distances: Mapping[str, NDArray[np.float64]],
) -> dict[str, float]:
    """Return the share of pairs near a reference that each metric orders as CIEDE2000 does."""
    from scipy.stats import kendalltau

    ours = distances[COLOR_METRIC] <= _ORDERED_WITHIN
    # Also as many by CIEDE2000, so that neither metric alone decides which shades are near.
    near = np.flatnonzero(ours | (rank < np.count_nonzero(ours)))
    some = near[:: max(1, -(-len(near) // _ORDERED))]
    if len(some) < _FEWEST:
        return {}
    return {
        name: float(kendalltau(away[some], judged[some]).statistic + 1) / 2
        for name, away in distances.items()
    }
