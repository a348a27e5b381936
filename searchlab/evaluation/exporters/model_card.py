"""Metrics of model cards: the `model-index` that the Hugging Face hub shows beside a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.files import write_atomically

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report
    from searchlab.evaluation.results import Result


def export_cards(report: Report, folder: Path) -> list[str]:
    """Write the head of a model card for each system, with a table of its intervals.

    Returns:
        A line for each file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for result in report.results:
        name = report.names[result.config_id]
        stem = re.sub(r"[^A-Za-z0-9._=-]+", "_", name).strip("_")
        path = folder / f"{stem}.md"
        write_atomically(path, f"---\n{_index(name, result)}---\n\n{_table(result)}".encode())
        written.append(str(path))
    return written


def _index(name: str, result: Result) -> str:
    # JSON's strings are strings of YAML too.
    lines = [
        "model-index:",
        f"- name: {json.dumps(name, ensure_ascii=False)}",
        "  results:",
        "  - task:",
        "      type: text-to-image-retrieval",
        "    dataset:",
        f"      name: {json.dumps(result.dataset)}",
        f"      type: {json.dumps(result.dataset)}",
        f"      revision: {json.dumps(result.dataset_revision)}",
        "    metrics:",
    ]
    for metric, intervals in result.intervals.items():
        lines += [
            f"    - type: {json.dumps(metric)}",
            f"      value: {intervals.macro.mean:.4f}",
        ]
    return "".join(f"{line}\n" for line in lines)


def _table(result: Result) -> str:
    n_langs = len(result.languages)
    mean = "mean" if n_langs == 1 else f"mean over {n_langs} languages, each counting the same"
    rows = [f"| {metric} | {one.macro} |" for metric, one in result.intervals.items()]
    return "\n".join(
        [
            f"| metric on {result.dataset}@{result.dataset_revision} | {mean} [95 %] |",
            "|:---|---:|",
            *rows,
            "",
            f"{result.n_queries:,} queries, {result.photos['n_photos']:,} photos; "
            f"code {result.code}.",
            "",
        ]
    )
