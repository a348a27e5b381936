"""The meaning of a colour tolerance: in CIEDE2000, in the share of photos, and by region.

`benchmarks/color/bench_color_tolerance.py` records the results of `measure`;
`searchlab.studies.color.curves` computes the curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchlab.config import COLOR_METRIC
from searchlab.errors import InputError
from searchlab.evaluation.datasets import load_dataset
from searchlab.photos.colors import (
    DEFAULT_TOLERANCE,
    FAMILY_NAMES,
    Shades,
    format_hex,
    parse_hex,
    shades_to_oklab,
    within_hex,
    within_name,
)
from searchlab.photos.images.decode import WORKING_SIDE, analyse, open_rgb
from searchlab.studies.color.curves import TOLERANCES, cube, mean_interval, tolerance_curves
from searchlab.studies.color.metrics import ciede2000, shades_to_cielab
from searchlab.studies.color.names import read_survey

PHOTO_TOLERANCES = (0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 200, 255)


class Extremes(NamedTuple):
    """The greatest disagreement of a tolerance and CIEDE2000 around one shade.

    Attributes:
        kept: The shade within the tolerance that is farthest by CIEDE2000.
        kept_ciede2000: Its CIEDE2000 distance.
        left_out: The shade outside the tolerance that is nearest by CIEDE2000.
        left_out_ciede2000: Its CIEDE2000 distance.
    """

    kept: str
    kept_ciede2000: float
    left_out: str
    left_out_ciede2000: float


def extremes(reference: str, tolerance: int, *, pool: Shades) -> Extremes:
    """Find the shades on which a tolerance and CIEDE2000 disagree most.

    Raises:
        InputError: The tolerance keeps all of the pool, or nothing.
    """
    inside = within_hex(pool, reference, tolerance=tolerance)
    if inside.all() or not inside.any():
        msg = f"tolerance must keep some of the pool, got {tolerance} about {reference!r}"
        raise InputError(msg)
    centre = shades_to_cielab(np.array([parse_hex(reference)], dtype=np.uint32))
    judged = ciede2000(shades_to_cielab(pool), centre)
    far = int(np.where(inside, judged, -np.inf).argmax())
    near = int(np.where(inside, np.inf, judged).argmin())
    return Extremes(
        format_hex(int(pool[far])),
        float(judged[far]),
        format_hex(int(pool[near])),
        float(judged[near]),
    )


@cache
def read_bundled_shades(every: int = 1) -> Shades:
    """Return the dominant colours of bundled photos, (602,) uint32 of all, which takes 5 s.

    Args:
        every: 2 reads every other photo, and so on.
    """
    files = [Path(record["file"] or "") for record in load_dataset("demo").records[::every]]
    analyses = [analyse(open_rgb(file.read_bytes(), min_side=WORKING_SIDE)) for file in files]
    return np.array([parse_hex(seen.color_hex) for seen in analyses], dtype=np.uint32)


def measure_kept(
    shades: Shades, references: Shades, *, tolerances: Sequence[int] = PHOTO_TOLERANCES
) -> dict[str, Any]:
    """Measure the share of photos that colour filters keep.

    Args:
        shades: (n_photos,) uint32 dominant colours.
        references: (n,) uint32 shades to filter by, beside the families' names.
        tolerances: Tolerances, ascending.

    Returns:
        `rows`: for each tolerance the share kept by shades and by names, with percentiles;
        `n_lost`: number of photos that a larger tolerance dropped, which must be 0.
    """
    lab = shades_to_oklab(shades)
    about = {"hex": [format_hex(int(shade)) for shade in references], "name": [*FAMILY_NAMES]}
    within = {"hex": within_hex, "name": within_name}
    rows: list[dict[str, Any]] = [{"tolerance": tolerance} for tolerance in tolerances]
    n_lost = 0
    for kind, conditions in about.items():
        shares = np.zeros((len(conditions), len(tolerances)))
        for place, value in enumerate(conditions):
            before = np.zeros(len(shades), dtype=np.bool_)
            for column, tolerance in enumerate(tolerances):
                inside = within[kind](shades, value, tolerance=tolerance, lab=lab)
                n_lost += int(np.count_nonzero(before & ~inside))
                shares[place, column] = inside.mean()
                before = inside
        for row, values in zip(rows, shares.T, strict=True):
            percentiles = np.percentile(values, [5, 50, 95]).round(6).tolist()
            row |= dict(zip((f"{kind}_p5", f"{kind}_p50", f"{kind}_p95"), percentiles, strict=True))
            row[kind] = mean_interval(values)
    return {"rows": rows, "n_lost": n_lost}


def measure(
    source: str,
    *,
    stride: int = 1,
    pool_steps: int = 33,
    tolerances: Sequence[int] = TOLERANCES,
    at: int = DEFAULT_TOLERANCE,
) -> dict[str, Any]:
    """Measure the curves of a set of reference shades.

    Args:
        source: Reference shades: those of the survey `xkcd`, or a `cube` of 9 steps a channel.
        stride: Step through the reference shades; 1 takes all.
        pool_steps: Steps per channel of the pool of shades.
        tolerances: Tolerances, ascending and above 0.
        at: The tolerance that regions and worst cases are reported for, one of `tolerances`.

    Returns:
        `parameters`, `metrics`, and tables: `rows` by tolerance, `regions`, `order`, `gains`,
        `worst`.
    """
    names, shades = _references(source)
    names, shades = names[::stride], shades[::stride]
    curves = tolerance_curves(shades, pool=cube(pool_steps), tolerances=tolerances)
    rows, order = curves.rows(), curves.order_rows()
    row = rows[curves.column(at)]
    overlap = {name: interval["mean"] for name, interval in row["overlap"].items()}
    place = curves.column(at)
    return {
        "parameters": {
            "source": source,
            "stride": stride,
            "pool_steps": pool_steps,
            "tolerances": list(tolerances),
            "at": at,
        },
        "metrics": {
            "n_shades": len(shades),
            f"ciede2000@{at}": row["ciede2000"]["mean"],
            f"ciede2000_p5@{at}": row["ciede2000_p5"],
            f"ciede2000_p50@{at}": row["ciede2000_p50"],
            f"ciede2000_p95@{at}": row["ciede2000_p95"],
            **{f"overlap@{at} {name}": share for name, share in overlap.items()},
            **{f"order {name}": interval["mean"] for name, interval in order.items()},
        },
        "rows": rows,
        "regions": curves.region_rows(at),
        "order": order,
        "gains": curves.gain_rows(at),
        "worst": [
            {
                "name": names[i],
                "shade": format_hex(int(shades[i])),
                "overlap": round(float(curves.overlap[COLOR_METRIC][i, place]), 4),
                "ciede2000": round(float(curves.ciede2000[i, place]), 4),
                "at_most": round(float(curves.at_most[i, place]), 4),
            }
            for i in curves.worst(at)
        ],
    }


def measure_photos(*, stride: int = 1, every: int = 1) -> dict[str, Any]:
    """Measure the share of the bundled photos within each tolerance.

    Args:
        stride: Step through the shades of the colour survey; 1 takes all.
        every: Step through the photos.

    Returns:
        `parameters`, `metrics`, and `rows` by tolerance.
    """
    shades = read_bundled_shades(every)
    shares = measure_kept(shades, read_survey("xkcd")[1][::stride])
    metrics = {"n_photos": len(shades), "n_lost": shares["n_lost"]}
    for row in shares["rows"]:
        metrics[f"kept about a shade@{row['tolerance']}"] = row["hex"]["mean"]
        metrics[f"kept about a name@{row['tolerance']}"] = row["name"]["mean"]
    return {
        "parameters": {"source": "photos", "stride": stride}
        | ({"every": every} if every > 1 else {}),
        "metrics": metrics,
        "rows": shares["rows"],
    }


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the figures of a record again, with the recorded parameters."""
    parameters = dict(measurement["parameters"])
    if parameters["source"] == "photos":
        return measure_photos(stride=parameters["stride"], every=parameters.get("every", 1))
    return measure(**parameters)


def _references(source: str) -> tuple[Sequence[str], Shades]:
    if source == "cube":
        shades = cube(9)
        return [format_hex(int(shade)) for shade in shades], shades
    return read_survey(source)
