"""How often searchlab's colour families agree with what people call a shade.

    python benchmarks/bench_color_names.py
    python benchmarks/bench_color_names.py --smoke --out "$(mktemp -d)"

Writes results/color_names/<dataset>/<config_id>.json for the datasets xkcd and css4, and skips what
is there (--force measures again).

A name says a family when its last word is the family's word and no other family's word occurs in
it: "dark forest green" is green, "blue green" is left out, as is whatever has a noun of its own
("sage"). Since most prototypes come from the survey, a shade is never judged by itself: its own
prototype is taken away first (leave one out). The CSS names that became prototypes are left out
altogether. Intervals are 95 % percentile bootstraps over names.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy as np

from searchlab.color_families import PROTOTYPES
from searchlab.colors import FAMILY_NAMES, distance, parse_hex, shades_to_oklab

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"xkcd": "xkcd_949.tsv", "css4": "css4_148.tsv"}


def families_said(name: str, dataset: str) -> set[str]:
    """Families whose word is in a name, if one of them ends it."""
    words = {family: family for family in FAMILY_NAMES} | {"grey": "gray"}
    parts = name.replace("/", " ").split()
    if dataset == "css4":  # Names in one word: "darkslateblue".
        if not name.endswith(tuple(words)):
            return set()
        return {family for word, family in words.items() if word in name}
    if parts[-1] not in words:
        return set()
    return {words[part] for part in parts if part in words}


def judged(dataset: str) -> tuple[list[tuple[str, int, str]], int, int]:
    """(name, shade, family said), and how many names say two families or none."""
    prototypes = {shade for shades in PROTOTYPES.values() for shade in shades}
    path = ROOT / "datasets" / "colour-names" / SOURCES[dataset]
    rows, two, none = [], 0, 0
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        name, shade = line.split("\t")
        said = families_said(name, dataset)
        if dataset == "css4" and shade in prototypes:
            continue
        if len(said) == 1:
            rows.append((name, parse_hex(shade), said.pop()))
        elif said:
            two += 1
        else:
            none += 1
    return rows, two, none


def found_families(shades: np.ndarray) -> list[str]:
    """Family of each shade by the nearest prototype other than the shade itself."""
    entries = [(parse_hex(h), name) for name in FAMILY_NAMES for h in PROTOTYPES[name]]
    places = shades_to_oklab(np.array([shade for shade, _ in entries], dtype=np.uint32))
    found = []
    for shade, place in zip(shades, shades_to_oklab(shades), strict=True):
        away = distance(places, place)
        away[[entry == shade for entry, _ in entries]] = np.inf
        found.append(entries[int(away.argmin())][1])
    return found


def interval(hits: np.ndarray, resamples: int) -> list[float]:
    """95 % percentile bootstrap of a mean."""
    rng = np.random.default_rng(0)
    means = rng.choice(hits, size=(resamples, len(hits))).mean(axis=1)
    return [round(float(q), 4) for q in np.quantile(means, [0.025, 0.975])]


def measure(dataset: str, *, resamples: int) -> dict[str, object]:
    """All figures of one dataset."""
    rows, two, none = judged(dataset)
    found = found_families(np.array([shade for _, shade, _ in rows], dtype=np.uint32))
    hits = np.array([said == got for (_, _, said), got in zip(rows, found, strict=True)])
    pairs = [(said, got) for (_, _, said), got in zip(rows, found, strict=True)]
    confusions = collections.Counter(pair for pair in pairs if pair[0] != pair[1])
    per_family = {
        family: {"n_names": sum(s == family for s, _ in pairs), "agreement": share}
        for family in FAMILY_NAMES
        if (share := _share([s == g for s, g in pairs if s == family])) is not None
    }
    return {
        "n_names": len(rows),
        "n_left_out_two_families": two,
        "n_left_out_no_family_word": none,
        "agreement": round(float(hits.mean()), 4),
        "agreement_ci95": interval(hits, resamples),
        "per_family": per_family,
        "confusions": [[said, got, n] for (said, got), n in confusions.most_common()],
    }


def _share(hits: list[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def main() -> None:
    """Measure, print a line and write a file for each dataset."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=SOURCES, action="append", help="default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="default: results")
    parser.add_argument("--force", action="store_true", help="measure again what is there")
    parser.add_argument("--smoke", action="store_true", help="few resamples")
    args = parser.parse_args()

    table = json.dumps(PROTOTYPES, sort_keys=True).encode()
    config = {
        "metric": "oklab",
        "families": list(FAMILY_NAMES),
        "n_prototypes": sum(map(len, PROTOTYPES.values())),
        "prototypes_sha256": hashlib.sha256(table).hexdigest(),
    }
    config_id = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    for dataset in args.dataset or SOURCES:
        path = args.out / "color_names" / dataset / f"{config_id}.json"
        if path.exists() and not args.force:
            print(f"{dataset}: {path} is there; --force measures again", file=sys.stderr)
            continue
        metrics = measure(dataset, resamples=100 if args.smoke else 10_000)
        source = ROOT / "datasets" / "colour-names" / SOURCES[dataset]
        result = {
            "schema": 1,
            "benchmark": "color_names",
            "dataset": dataset,
            "dataset_revision": hashlib.sha256(source.read_bytes()).hexdigest()[:12],
            "config_id": config_id,
            "config": config,
            "metrics": metrics,
            "environment": {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "machine": platform.machine(),
                "python": platform.python_version(),
                "packages": {"numpy": np.__version__},
            },
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        low, high = metrics["agreement_ci95"]
        print(
            f"{dataset}: agreement {metrics['agreement']:.3f} ({low:.3f} to {high:.3f}), "
            f"{metrics['n_names']} names; {path}"
        )


if __name__ == "__main__":
    main()
