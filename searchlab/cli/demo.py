"""The demo: bundled photos become a library, models are compared on it, the winner is promoted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.cli.console import ConsoleProgress
from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset, bundled_root, load_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, create_library
from searchlab.library.roots import check_root
from searchlab.models.shipped_calibration import calibrate
from searchlab.progress import Progress
from searchlab.search.filters.photo_filter import facet_counts

if TYPE_CHECKING:
    from rich.console import Console

# The graph is made to work for its living: 349 photos would all be scored exactly otherwise.
_GRAPH: dict[str, Any] = {"index": "hnsw", "step_rows": 0, "depth": 50}
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
    return [calibrate(Config(model=spec, **choices)) for spec, choices in _SYSTEMS]


def demo_queries(dataset: Dataset) -> Dataset:
    """Keep the languages with enough queries to be judged by, and as many queries of each."""
    counts = Counter(query.lang for query in dataset.queries)
    languages = sorted(lang for lang, count in counts.items() if count >= _QUERIES_PER_LANGUAGE)
    return dataset.sample(languages, _QUERIES_PER_LANGUAGE, seed=0)


def build_demo_library(data: Path | str, *, progress: Progress | None = None) -> Library:
    """Index the bundled photos into a folder; what is there already is not done again."""
    library = create_library(data)
    root = bundled_root() / "demo"
    known = library.snapshot()
    # Another installation keeps the bundled photos elsewhere; they are the same photos.
    others = [one.folder for one in (known.roots if known else ()) if one.folder != root / "images"]
    if known is not None and others:
        bundled = load_dataset("demo").photo_ids
        if not bundled.issuperset(known.table.texts("photo_id")):
            msg = f"the demo must have a library of its own, got {data}, which covers other photos"
            raise InputError(msg)
    index_photos(
        library,
        [check_root(root / "images", records=root / "photos.jsonl")],
        config=None if known is not None else calibrate(Config()),
        forget=others,
        progress=progress,
    )
    return library


def run_demo(data: Path, *, force: bool, out: Console, log: Console) -> None:
    """Build the demo library in a folder, evaluate, promote and say what to try next.

    Args:
        data: Folder of the library; what is done there already is not done again.
        force: Evaluate again what is on record.
        out: Where results go.
        log: Where progress goes.
    """
    progress = ConsoleProgress(log)
    progress.say("1/3 Indexing the bundled photos")
    library = build_demo_library(data, progress=progress)
    n_photos = len(library.engine.table)
    n_sources = len(facet_counts(library.engine.table, "source"))
    out.print(f"{n_photos} photos of {n_sources} sources in {data}", markup=False)

    sample = demo_queries(load_dataset("demo"))
    progress.say(
        f"2/3 Comparing {len(_SYSTEMS)} configurations on {len(sample.queries):,} queries in "
        f"{len(sample.languages)} languages (the first time, metrics are compiled for some seconds)"
    )
    results = library.folder / "results"
    experiment = Experiment(sample, demo_configs(), library=library, out=results)
    # Another version bundles other data; what was measured on the old is of no more use.
    comparison = experiment.run(progress, force=force, replace_unlike=True)
    out.print(comparison)

    progress.say("3/3 Promoting the winner")
    # What an older version measured cannot be compared, and is no reason to stay with it.
    comparison.promote(results / "chosen.json", force=force, replace_unlike=True)
    library.publish(Config.load(results / "chosen.json"), progress=progress)
    _say_what_is_next(out, data, library)


def _say_what_is_next(out: Console, data: Path, library: Library) -> None:
    photo = library.engine.table.photo(0)
    lines = (
        f"Promoted {library.engine.config.model} × {library.engine.config.index}: "
        f"{data / 'results' / 'chosen.json'}",
        "",
        "Try next:",
        f'  searchlab search --data {data} "a castle"',
        f'  searchlab search --data {data} "Vogel" --color-name blue --plan',
        f"  searchlab search --data {data} --photo-id {photo.photo_id}",
        "  searchlab index PHOTO_FOLDER",
    )
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
