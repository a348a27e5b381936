"""How often colour families and metrics agree with the names that people give to shades.

A name says a family if its last word is the family's word and no other family's word occurs in it:
"dark forest green" is green; "blue green" is left out, as are names without a family's word
("sage"). Since most prototypes come from the survey, a shade is never judged by itself: its own
prototype is removed first (leave one out). The CSS names that became prototypes are left out.
People's names also judge metrics, without any formula: of the shades nearest to a shade, how many
do people give the same family?
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import COLOR_METRIC
from searchlab.errors import InputError
from searchlab.evaluation.datasets import bundled_root
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.photos.colors import FAMILY_NAMES, Shades, distance, parse_hex, shades_to_oklab
from searchlab.photos.colors.families import PROTOTYPES
from searchlab.studies.color.metrics import METRICS, ciede2000, euclid, shades_to_cielab

WITHIN = (5, 10, 15, 20, 30, 40, 60)
SURVEYS = {"xkcd": "xkcd_949.tsv", "css4": "css4_148.tsv"}


@dataclass(frozen=True, eq=False)
class JudgedShades:
    """Shades that people put into a family by naming them.

    Attributes:
        names: (n,) names that people gave.
        shades: (n,) uint32 shades.
        families: (n,) family that each name says.
        n_two: Number of names left out because they say two families.
        n_none: Number of names left out because they say no family.
    """

    names: tuple[str, ...]
    shades: Shades
    families: tuple[str, ...]
    n_two: int
    n_none: int


def read_survey(survey: str) -> tuple[tuple[str, ...], Shades]:
    """Read names and (n,) uint32 shades of `xkcd` (949) or `css4` (148).

    Raises:
        InputError: There is no such survey.
    """
    if survey not in SURVEYS:
        msg = f"survey must be one of {', '.join(SURVEYS)}, got {survey!r}"
        raise InputError(msg)
    path = bundled_root() / "colour-names" / SURVEYS[survey]
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    names, shades = zip(*(line.split("\t") for line in lines), strict=True)
    return names, np.array([parse_hex(shade) for shade in shades], dtype=np.uint32)


def find_family_words(name: str, survey: str) -> set[str]:
    """Return the families whose word is in a name, if one of them ends it.

    >>> find_family_words("dark forest green", "xkcd"), find_family_words("sage", "xkcd")
    ({'green'}, set())
    """
    words = {family: family for family in FAMILY_NAMES} | {"grey": "gray"}
    parts = name.replace("/", " ").split()
    if survey == "css4":  # names without spaces, such as "darkslateblue"
        if not name.endswith(tuple(words)):
            return set()
        return {family for word, family in words.items() if word in name}
    if parts[-1] not in words:
        return set()
    return {words[part] for part in parts if part in words}


def read_judged_shades(survey: str) -> JudgedShades:
    """Keep the shades of a survey whose names say exactly one family."""
    prototypes = {parse_hex(shade) for shades in PROTOTYPES.values() for shade in shades}
    chosen, n_two, n_none = [], 0, 0
    for name, shade in zip(*read_survey(survey), strict=True):
        families_said = find_family_words(name, survey)
        if survey == "css4" and int(shade) in prototypes:
            continue
        n_two += len(families_said) > 1
        n_none += not families_said
        if len(families_said) == 1:
            chosen.append((name, shade, families_said.pop()))
    names, shades, families = zip(*chosen, strict=True)
    return JudgedShades(names, np.array(shades, dtype=np.uint32), families, n_two, n_none)


def name_families(shades: Shades) -> list[str]:
    """Name the family of each shade by the nearest prototype other than the shade itself."""
    entries = [(parse_hex(h), name) for name in FAMILY_NAMES for h in PROTOTYPES[name]]
    prototypes = np.array([shade for shade, _ in entries], dtype=np.uint32)
    places = shades_to_oklab(prototypes)
    families = []
    for shade, place in zip(shades, shades_to_oklab(shades), strict=True):
        away = np.where(prototypes == shade, np.inf, distance(places, place))
        families.append(entries[int(away.argmin())][1])
    return families


def measure_neighbours(judged: JudgedShades, *, k: int = 10) -> dict[str, NDArray[np.float64]]:
    """Measure the share of the nearest shades that people give the same family.

    Args:
        judged: The shades; the neighbours of each are among the others.
        k: Number of neighbours.

    Returns:
        Metric, including `ciede2000` -> (n,) shares, 0 to 1.

    Raises:
        InputError: There are not more than k shades.
    """
    n = len(judged.shades)
    if not 1 <= k < n:
        msg = f"k must be from 1 to the {n - 1} other shades, got {k}"
        raise InputError(msg)
    families = np.array(judged.families)
    lab = shades_to_cielab(judged.shades)
    alike = {"ciede2000": np.zeros(n)} | {name: np.zeros(n) for name in METRICS}
    places = {name: coordinates(judged.shades) for name, coordinates in METRICS.items()}
    for row in range(n):
        for name, shares in alike.items():
            away = (
                ciede2000(lab, lab[row])
                if name == "ciede2000"
                else euclid(places[name], places[name][row])
            )
            away[row] = np.inf
            nearest = np.argsort(away, kind="stable")[:k]
            shares[row] = np.mean(families[nearest] == families[row])
    return alike


def measure_within_tolerance(
    judged: JudgedShades, *, tolerances: Sequence[int] = WITHIN
) -> dict[int, NDArray[np.float64]]:
    """Measure the share of the shades within a tolerance that people give the same family.

    Returns:
        Tolerance -> (n,) shares, 0 to 1; NaN if no other shade is within the tolerance.
    """
    lab = shades_to_oklab(judged.shades)
    families = np.array(judged.families)
    shares_of = {tolerance: np.full(len(lab), np.nan) for tolerance in tolerances}
    for row, place in enumerate(lab):
        away = distance(lab, place)
        away[row] = np.inf
        for tolerance, shares in shares_of.items():
            near = away <= tolerance
            if near.any():
                shares[row] = np.mean(families[near] == families[row])
    return shares_of


def measure(survey: str, *, samples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Measure one survey as it is recorded.

    Args:
        survey: `xkcd` or `css4`.
        samples: Number of resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        `parameters`, `metrics`, and tables: `agreement` with its interval, `per_family`,
        `confusions`, `alike` (the shares of `measure_neighbours` for each metric and, paired, how
        much higher they are than with ours) and `within` (the same by tolerance).
    """
    judged = read_judged_shades(survey)
    families = name_families(judged.shades)
    pairs = list(zip(judged.families, families, strict=True))
    hits = np.array([said == got for said, got in pairs], dtype=np.float64)
    alike = measure_neighbours(judged)
    more = {f"{name} over ours": shares - alike[COLOR_METRIC] for name, shares in alike.items()}
    more.pop(f"{COLOR_METRIC} over ours")
    columns = {"agreement": hits} | alike | more
    intervals = {
        name: _interval(values, samples=samples, seed=seed) for name, values in columns.items()
    }
    confusions = collections.Counter(pair for pair in pairs if pair[0] != pair[1])
    per_family = {}
    for family in FAMILY_NAMES:
        mine = [said == got for said, got in pairs if said == family]
        if mine:
            share = round(sum(mine) / len(mine), 4)
            per_family[family] = {"n_names": len(mine), "agreement": share}
    agreement = intervals.pop("agreement")
    within = [
        {"tolerance": tolerance, "n_shades": int(np.count_nonzero(~np.isnan(shares)))}
        | {"alike": _interval(shares[~np.isnan(shares)], samples=samples, seed=seed)}
        for tolerance, shares in measure_within_tolerance(judged).items()
        if not np.isnan(shares).all()
    ]
    return {
        "parameters": {"survey": survey, "samples": samples, "seed": seed},
        "metrics": {
            "n_names": len(judged.names),
            "n_left_out_two_families": judged.n_two,
            "n_left_out_no_family_word": judged.n_none,
            "agreement": agreement["mean"],
            **{f"alike@10 {name}": intervals[name]["mean"] for name in alike},
        },
        "agreement": agreement,
        "alike": intervals,
        "within": within,
        "per_family": per_family,
        "confusions": [[said, got, n] for (said, got), n in confusions.most_common()],
    }


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the figures of a record again, with the recorded parameters."""
    parameters = measurement["parameters"]
    return measure(parameters["survey"], samples=parameters["samples"], seed=parameters["seed"])


def _interval(values: NDArray[np.float64], *, samples: int, seed: int) -> dict[str, float]:
    interval = bootstrap_interval(values, samples=samples, seed=seed)
    return {part: round(value, 4) for part, value in interval._asdict().items()}
