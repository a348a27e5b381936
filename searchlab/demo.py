"""The demo: bundled photos become a library, models are compared on it, the winner is promoted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.calibration import default_calibration
from searchlab.config import Config
from searchlab.console import ConsoleProgress, print_report
from searchlab.datasets import bundled_root, load_dataset
from searchlab.experiments import Experiment
from searchlab.ingest import index_photos
from searchlab.library import Library, create_library
from searchlab.models import load_model
from searchlab.scan import check_root

if TYPE_CHECKING:
    from rich.console import Console

    from searchlab.reports import Report

# The graph is made to work for its living: 349 photos would all be scored exactly otherwise.
_GRAPH: dict[str, Any] = {"index": "hnsw", "exact_below": 0, "depth": 50}
_SYSTEMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("palette", {}),
    ("captions", {}),
    ("mini", {}),
    ("mini", _GRAPH),
    ("hybrid:mini=0.7,captions=0.3", {}),
    ("hybrid:mini=0.85,palette=0.15", {}),
)
_QUERIES_PER_LANGUAGE = 60


def demo_configs() -> list[Config]:
    """Return the configurations that the demo compares, calibrated where judgments exist."""
    configs = []
    for spec, choices in _SYSTEMS:
        model = load_model(spec)
        calibration = default_calibration(model.model_id)
        configs.append(Config(model=model.name, calibration=calibration, **choices))
    return configs


def run_demo(data: Path, *, force: bool, out: Console, log: Console) -> None:
    """Build the demo library in a folder, evaluate, promote and say what to try next.

    Args:
        data: Folder of the library; what is done there already is not done again.
        force: Evaluate again what is on record.
        out: Where results go.
        log: Where progress goes.
    """
    progress = ConsoleProgress(log)
    library = create_library(data)
    root = bundled_root() / "demo"
    dataset = load_dataset("demo")
    progress.say("1/3 Indexing the bundled photos")
    report = index_photos(
        library,
        [check_root(root / "images", records=root / "photos.jsonl")],
        config=None if library.snapshot() else demo_configs()[2],
        progress=progress,
    )
    print_report(report, out)

    sample = dataset.sample(dataset.languages, _QUERIES_PER_LANGUAGE, seed=0)
    progress.say(
        f"2/3 Comparing {len(_SYSTEMS)} configurations on {len(sample.queries):,} queries in "
        f"{len(sample.languages)} languages (the first time, metrics are compiled for some seconds)"
    )
    results = library.folder / "results"
    comparison = Experiment(library, sample, demo_configs(), out=results).run(progress, force=force)
    out.print(comparison.leaderboard())
    out.print(comparison.caption, markup=False, highlight=False)

    progress.say("3/3 Promoting the winner")
    _promote(library, comparison, results, progress, force=force)
    _say_what_is_next(out, data, library)


def _promote(
    library: Library, comparison: Report, results: Path, progress: ConsoleProgress, *, force: bool
) -> None:
    comparison.promote(results / "chosen.json", force=force)
    library.publish(Config.load(results / "chosen.json"), progress=progress)


def _say_what_is_next(out: Console, data: Path, library: Library) -> None:
    photo = library.engine.table.photo(0)
    lines = (
        f"Promoted {library.engine.config.model} × {library.engine.config.index}: "
        f"{data / 'results' / 'chosen.json'}",
        "",
        "Try next:",
        f'  searchlab search --data {data} "a dog"',
        f'  searchlab search --data {data} "ein Hund" --color-name brown --plan',
        f"  searchlab search --data {data} --photo-id {photo.photo_id}",
        "  searchlab index --data my-library PHOTO_FOLDER",
    )
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
