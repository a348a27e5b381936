"""The demo: bundled photos become a library, models are compared on it, the winner is promoted.

They are compared with texts withheld and with texts there, since a library may have either.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.cli.console import ConsoleProgress
from searchlab.config import USUAL_CHOICES, Config
from searchlab.errors import InputError, SearchlabError, shell_word
from searchlab.evaluation.datasets import Dataset, bundled_root, load_dataset
from searchlab.evaluation.datasets.dataset_library import made_by_one
from searchlab.evaluation.datasets.photo_cache import photo_cache
from searchlab.evaluation.experiments import BENCHMARK, Experiment
from searchlab.evaluation.provenance.registry import code_of
from searchlab.evaluation.results import system_name
from searchlab.evaluation.weighing import TEXTS_THERE, TEXTS_WITHHELD, Task, WeighedTasks
from searchlab.library.ingest import index_photos
from searchlab.library.known_photos import take_known
from searchlab.library.library import Library, create_library, open_library
from searchlab.library.roots import check_root
from searchlab.models import load_model
from searchlab.models.shipped_calibration import calibrate
from searchlab.progress import Progress
from searchlab.search.filters.photo_filter import facet_counts

if TYPE_CHECKING:
    from rich.console import Console

# A small depth and no exact steps: otherwise all 602 photos would be scored without the graph.
_GRAPH: dict[str, Any] = {"index": "hnsw", "step_rows": 0, "depth": 50}
_SYSTEMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("palette", {}),
    ("captions", {}),
    ("mini", {}),
    ("mini", _GRAPH),
    ("mini", USUAL_CHOICES),
    ("mini", {**_GRAPH, **USUAL_CHOICES}),
    ("hybrid:mini=0.7,captions=0.3", {}),
    ("hybrid:mini=0.85,palette=0.15", {}),
)
_QUERIES_PER_LANGUAGE = 60


def demo_configs() -> list[Config]:
    """Return the configurations that the demo compares, with calibration where one is shipped."""
    return [calibrate(Config(model=spec, **choices)) for spec, choices in _SYSTEMS]


def demo_queries(dataset: Dataset) -> Dataset:
    """Sample 60 queries of each language that has at least as many."""
    counts = Counter(query.lang for query in dataset.queries)
    languages = sorted(lang for lang, count in counts.items() if count >= _QUERIES_PER_LANGUAGE)
    return dataset.sample(languages, _QUERIES_PER_LANGUAGE, seed=0)


def build_demo_library(
    data: Path | str | None = None, *, progress: Progress | None = None
) -> Library:
    """Index the bundled photos into a folder; photos that are indexed already are kept.

    A new library takes over what the one in the user's cache has embedded.

    Args:
        data: The folder. If left out, one in the user's cache, which processes with the same code
            share: for what only searches.
        progress: Shows the indexing.

    Raises:
        InputError: The folder is a library of other photos, or the cache cannot be written.
    """
    if data is None:
        kept = _kept_library()
        with made_by_one(kept.parent):
            return build_demo_library(kept, progress=progress)
    library = create_library(data)
    if library.snapshot() is None:
        # What cannot be taken over, whatever is wrong with the cache, is embedded.
        with suppress(SearchlabError):
            take_known(library, open_library(_kept_library()))
    root = bundled_root().resolve() / "demo"  # as roots are, also where a link leads there
    snapshot = library.snapshot()
    roots = () if snapshot is None else snapshot.roots
    # Another installation has the same bundled photos in another folder.
    others = [known.folder for known in roots if known.folder != root / "images"]
    if snapshot is not None and others:
        bundled = load_dataset("demo").photo_ids
        if not bundled.issuperset(snapshot.table.texts("photo_id")):
            msg = f"the demo must have a library of its own, got {data}, which covers other photos"
            raise InputError(msg)
    index_photos(
        library,
        [check_root(root / "images", records=root / "photos.jsonl")],
        config=None if snapshot is not None else calibrate(Config()),
        forget=others,
        progress=progress,
    )
    return library


def _kept_library() -> Path:
    demo = load_dataset("demo")
    model_id = load_model(Config().model).model_id
    return photo_cache(demo, code=code_of(BENCHMARK), model_id=model_id) / "demo" / "library"


def run_demo(data: Path, *, force: bool, out: Console, log: Console) -> None:
    """Build the demo library in a folder, evaluate, promote and say what to try next.

    Args:
        data: Folder of the library; steps that are done there already are skipped.
        force: Whether to measure again what is recorded.
        out: Console for results.
        log: Console for progress.
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
        f"{len(sample.languages)} languages, with texts withheld and with texts there (the first "
        "time, metrics are compiled for some seconds)"
    )
    results = library.folder / "results"
    tasks = []
    for heading, weight, dataset in (
        ("Texts withheld, as if nothing were written about the photos", TEXTS_WITHHELD, sample),
        ("Texts there", TEXTS_THERE, demo_queries(load_dataset("demo-written"))),
    ):
        experiment = Experiment(dataset, demo_configs(), library=library, out=results)
        # Another version may bundle other photos; results measured on those are replaced.
        report = experiment.run(progress, force=force, replace_unlike=True)
        out.print(f"\n{heading}", markup=False, highlight=False)
        out.print(report)
        tasks.append(Task(report, weight))

    progress.say("3/3 Promoting the winner")
    weighed = WeighedTasks(tasks)
    out.print(f"\n{weighed.explain()}", markup=False, highlight=False)
    # Results of an older version cannot be compared, so they do not keep the old choice.
    weighed.promote(results / "chosen.json", force=force, replace_unlike=True)
    library.publish(Config.load(results / "chosen.json"), progress=progress)
    _say_what_is_next(out, data, library)


def _say_what_is_next(out: Console, data: Path, library: Library) -> None:
    photo, there = library.engine.table.photo(0), shell_word(data)
    lines = (
        f"Promoted {system_name(library.engine.config)}: {data / 'results' / 'chosen.json'}",
        "",
        "Try next:",
        f'  searchlab search --data {there} "a castle"',
        f'  searchlab search --data {there} "Vogel" --color-name blue --plan',
        f"  searchlab search --data {there} --photo-id {photo.photo_id}",
        f'  searchlab search --data {there} "a windmill" --open',
        f"  searchlab info --data {there}",
        "  searchlab index PHOTO_FOLDER",
    )
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
