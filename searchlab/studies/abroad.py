"""Home and abroad: how well photos are found that are unlike those that a model was taught on.

Home are photos of the two collections that `mini` was taught on, which it has not seen, with
captions in languages that it was taught captions in. Abroad are other photos, other languages, and
photographs of the bundled set alone. Fewer photos are
easier to search, so each judge of photos stands beside as many photos from home. The bundled
queries are looked at by groups besides: what they ask for, and whether the model was taught them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.datasets.dataset import contents
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance import bootstrap_intervals
from searchlab.models.shipped_calibration import calibrate
from searchlab.progress import Progress

METRICS: Final = ("success@10", "mrr@10", "ndcg@10")
_CUT_OUTS = "tuxpaint-stamps"


@dataclass(frozen=True)
class Ground:
    """What is searched on one ground.

    Attributes:
        name: The ground in a few words.
        home: Whether the model was taught on such photos and languages.
        dataset: Name of the dataset.
        n_photos: Photos that are drawn from it; all of them if 0.
        languages: Languages that are asked in; all of them if empty.
        photographs: Whether cut-outs on white are left out.
    """

    name: str
    home: bool
    dataset: str
    n_photos: int = 0
    languages: tuple[str, ...] = ()
    photographs: bool = False


GROUNDS: Final = (
    Ground("351 photos of Flickr8k", True, "flickr8k-captions", 351, ("en",)),
    Ground("351 photos of COCO", False, "coco-judge"),
    Ground("828 photos of Flickr8k", True, "flickr8k-captions", 828, ("en",)),
    Ground("828 photos of the web, captions by a model", True, "web-judge"),
    Ground("1,000 photos of Flickr8k, six languages", True, "flickr8k-captions", 0,
           ("en", "zh", "ar", "de", "fr", "cs")),
    Ground("the same, Portuguese", True, "flickr8k-abroad", 0, ("pt",)),
    Ground("the same, Hindi", True, "flickr8k-abroad", 0, ("hi",)),
    Ground("the same, Dutch", True, "flickr8k-abroad", 0, ("nl",)),
    Ground("the same, five more, 30 queries each", True, "flickr8k-abroad", 0,
           ("es", "id", "ja", "ru", "tr")),
    Ground("bundled photographs and cut-outs", False, "demo"),
    Ground("bundled photographs alone", False, "demo", 0, (), True),
    Ground("bundled photographs and cut-outs, languages of which no text was taught", False, "demo",
           0, ("ach", "an", "iu", "son")),
)  # fmt: skip


def only_photos(dataset: Dataset, name: str, photo_ids: Collection[str]) -> Dataset:
    """Make the dataset of some photos, with the queries whose relevant photos are all among them.

    Raises:
        InputError: No query is left.
    """
    chosen = set(photo_ids)
    qrels = {
        query_id: {photo: grade for photo, grade in grades.items() if photo in chosen}
        for query_id, grades in dataset.qrels.items()
        if all(photo in chosen for photo, grade in grades.items() if grade)
    }
    queries = tuple(query for query in dataset.queries if query.query_id in qrels)
    if not queries:
        msg = f"some query of {dataset.name!r} must be about these {len(chosen)} photos alone"
        raise InputError(msg)
    described = f"{dataset.revision}{sorted(chosen)}{contents(queries, qrels)}"
    return replace(
        dataset,
        name=name,
        revision=hashlib.sha256(described.encode()).hexdigest()[:12],
        queries=queries,
        qrels=qrels,
        records=tuple(
            record
            for photo_id, record in zip(dataset.ids_of_records, dataset.records, strict=True)
            if photo_id in chosen
        ),
        photos=None,
        part_of="",
        origins={},
        rewritten=True,  # no other library holds just these photos
    )


def make_ground(ground: Ground, load: Callable[[str], Dataset], *, most: int) -> Dataset:
    """Make the dataset of a ground.

    Args:
        ground: One of `GROUNDS`.
        load: Loads a dataset by its name.
        most: Most queries of a language; languages with fewer than 60 of the bundled queries are
            left out, as in every evaluation of them.
    """
    dataset = load(ground.dataset)
    ids = dataset.ids_of_records
    if ground.photographs:
        sources = (record["source"] for record in dataset.records)
        ids = tuple(i for i, source in zip(ids, sources, strict=True) if source != _CUT_OUTS)
    if ground.n_photos:
        ids = tuple(sorted(ids, key=lambda i: hashlib.sha256(i.encode()).digest()))
        ids = ids[: ground.n_photos]
    if len(ids) < len(dataset.ids_of_records):
        dataset = only_photos(dataset, f"{dataset.name}-{len(ids)}", ids)
    languages = ground.languages or tuple(
        lang
        for lang in dataset.languages
        if sum(query.lang == lang for query in dataset.queries) >= 60
    )
    return dataset.sample(languages, most, seed=0)


def measure_grounds(
    load: Callable[[str], Dataset],
    configs: Sequence[Config] = (),
    *,
    grounds: Sequence[Ground] = GROUNDS,
    most: int = 1000,
    cache: Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Measure configurations on each ground.

    Args:
        load: Loads a dataset by its name.
        configs: Configurations that rank by vectors alone; the default one if there are none.
        grounds: What to search.
        most: Most queries of a language.
        cache: Folder that keeps libraries.
        progress: Shows the configurations.
        seed: Seed of the intervals.

    Returns:
        A row for each ground and system, with the metrics and their 95 % intervals.
    """
    rows = []
    for ground in grounds:
        dataset = make_ground(
            ground, load, most=min(most, 60) if ground.dataset == "demo" else most
        )
        chosen = configs or [calibrate(Config())]
        report = Experiment(dataset, chosen, METRICS, cache=cache, seed=seed).run(progress)
        rows += [
            {
                "ground": ground.name,
                "where": "home" if ground.home else "abroad",
                "system": result.name,
                "data": ground.dataset,
                "revision": dataset.revision,
                "n_photos": len(dataset.photo_ids),
                "n_queries": len(dataset.queries),
                "n_languages": len(dataset.languages),
            }
            | {name: list(averages.macro) for name, averages in result.intervals.items()}
            for result in report.results
        ]
    return rows


def groups_of(dataset: Dataset, taught: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Sort the bundled queries by what they ask for, and by whether `mini` was taught their text.

    Args:
        dataset: The bundled photos.
        taught: query_id -> `"a name"` or `"a keyword"` of the training vocabulary.

    Returns:
        What is sorted by -> query_id -> group.
    """
    source_of = {
        photo_id: record["source"]
        for photo_id, record in zip(dataset.ids_of_records, dataset.records, strict=True)
    }

    def asks_for(query_id: str) -> str:
        relevant = {
            source_of[photo] == _CUT_OUTS for photo, n in dataset.qrels[query_id].items() if n
        }
        if len(relevant) != 1:
            return "both"
        return "cut-outs only" if True in relevant else "photographs only"

    ids = [query.query_id for query in dataset.queries]
    groups = {"all": dict.fromkeys(ids, "all"), "asks for": {i: asks_for(i) for i in ids}}
    if taught:
        groups["was taught"] = {i: taught.get(i, "others") for i in ids}
    return groups


def score_groups(
    results: Sequence[Result], groups: Mapping[str, Mapping[str, str]], *, seed: int = 0
) -> list[dict[str, Any]]:
    """Average the recorded scores of each group of queries.

    Returns:
        A row for each group: how many queries it has, which share of all successes is theirs, and
        for each system the means over its queries with 95 % intervals.
    """
    rows = []
    for by, group_of in groups.items():
        for group in sorted(set(group_of.values())):
            row: dict[str, Any] = {"by": by, "group": group}
            for result in results:
                scores = result.scores
                chosen = np.array([group_of.get(i) == group for i in scores.query_ids])
                if not chosen.any():
                    continue
                values = {name: scores.values[name][chosen] for name in ("ndcg@10", "success@5")}
                clusters = [c for c, take in zip(scores.cluster_ids, chosen, strict=True) if take]
                means = bootstrap_intervals(values, clusters=clusters, seed=seed)
                hits = scores.values["success@5"]
                row |= {
                    "n_queries": int(chosen.sum()),
                    f"share of hits {result.name}": float(hits[chosen].sum() / hits.sum()),
                }
                row |= {
                    f"{name} {result.name}": [round(part, 6) for part in averages.micro]
                    for name, averages in means.items()
                }
            if "n_queries" in row:
                rows.append(row)
    return rows
