"""Teachers' figures of an earlier record, where the same texts and photos are measured again.

They depend on the packages, the texts and the photos alone, and take hours to measure on a
processor; `mini` is measured beside them each time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from searchlab.errors import SearchlabError
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where teachers' figures come from."""
    parser.add_argument("--teacher", type=Path, help="folder with the teacher's packages")
    parser.add_argument(
        "--keep-teachers",
        action="store_true",
        help="keep the teachers' figures of the record that is replaced",
    )


def read_kept(options: argparse.Namespace, benchmark: str, name: str) -> dict[str, Any]:
    """Read the record that is replaced, whose teachers' figures are kept.

    Exits with a message where there is none, or it is damaged.
    """
    if options.teacher:
        sys.exit("--teacher measures teachers again, --keep-teachers does not: give one of the two")
    try:
        return read_measurement(measurement_path(options.out, benchmark, options.dataset, name))
    except SearchlabError as error:
        sys.exit(f"--keep-teachers must find a record whose figures can be kept, got: {error}")


def describe(kept: dict[str, Any]) -> dict[str, str]:
    """Say in a record's parameters of which earlier one the figures are."""
    first = kept["parameters"].get("teachers")
    return first or {name: kept["manifest"][name] for name in ("date", "commit")}
