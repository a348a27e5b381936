"""MTEB's results: <model>/<revision>/<task>.json, a subset for each language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab import __version__
from searchlab.evaluation.exporters import plain_metric
from searchlab.files import write_atomically

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report


def export_mteb(report: Report, folder: Path) -> list[str]:
    """Write each system as a model of MTEB; `main_score` is the metric that ranks.

    Languages are the tags of the dataset, where MTEB itself writes `deu-Latn`.

    Returns:
        A line for each file.
    """
    written = []
    for result in report.results:
        model = re.sub(r"[^A-Za-z0-9._=-]+", "__", report.names[result.config_id]).strip("_")
        place = folder / model / result.config_id
        place.mkdir(parents=True, exist_ok=True)
        subsets = [
            {
                "hf_subset": lang,
                "languages": [lang],
                "main_score": result.intervals[result.headline].groups[lang].mean,
                **{plain_metric(m): i.groups[lang].mean for m, i in result.intervals.items()},
            }
            for lang in result.languages
        ]
        task = {
            "task_name": result.dataset,
            "dataset_revision": result.dataset_revision,
            "mteb_version": f"written by searchlab {__version__}",
            "scores": {"test": subsets},
            "evaluation_time": float(result.scores.ms.sum()) / 1000,
            "kg_co2_emissions": None,
        }
        meta = {"name": report.names[result.config_id], "revision": result.config_id}
        for path, values in (
            (place / f"{result.dataset}.json", task),
            (place / "model_meta.json", meta | {"config": result.config.to_dict()}),
        ):
            write_atomically(path, (json.dumps(values, indent=2) + "\n").encode())
            written.append(str(path))
    return written
