"""Builds of `mini` side by side, on every judge: what each finds, and what the last gains.

    python -m benchmarks.mini.compare_builds FOLDER [FOLDER ...]
    python -m benchmarks.mini.compare_builds --judges sentences-judge stamps -- FOLDER FOLDER

Prints, for each judge and language, the success of each build in percent with its 95 % interval,
and what the last build has more than the first, drawn by the same queries; writes no record. A
gain whose interval does not hold zero is marked. The folder `shipped` stands for the model that
ships. The environment variable `SEARCHLAB_DATASETS` names the folder of the judges, which no
training may see; all of them take a minute of one core for each build.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.mini.bench_reading import FOLDER, FORTY, Pairs, rank_counterparts, read_pairs
from benchmarks.mini.tasks import (
    LOADERS,
    RESAMPLES,
    Rows,
    Task,
    folder_of,
    open_rgb,
    rank_answers,
    with_interval,
)
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import external_root
from searchlab.models.mini.artefacts import RECORD_FILE
from searchlab.models.mini.embedder import MINI_DATA, MiniEmbedder

CUTOFFS = (1, 5, 10)
BATCH = 64  # Pictures that are open at a time.
JUDGES = (*LOADERS, FOLDER)


class Ranks(NamedTuple):
    """What one build finds of one judge in one language.

    Attributes:
        ranks: (n_queries,) rank of each query's best answer, from 0.
        groups: (n_queries,) what each query is about; equal numbers are one piece of evidence, in
            whatever languages.
    """

    ranks: NDArray[np.int64]
    groups: NDArray[np.int64]


def rank_photos(task: Task, model: MiniEmbedder) -> dict[str, Ranks]:
    """Rank the photo of every caption among all photos of a judge, by language."""
    parts = [
        model.encode_images(open_rgb(task.photos[start : start + BATCH]))
        for start in range(0, len(task.photos), BATCH)
    ]
    texts = model.encode_texts([query.text for query in task.queries])
    ranks = rank_answers(texts, np.concatenate(parts), task.queries)
    languages = np.array([query.language for query in task.queries])
    first = np.array([query.answers[0] for query in task.queries])
    return {
        name: Ranks(ranks[languages == name], first[languages == name])
        for name in np.unique(languages).tolist()
    }


def rank_sentences(pairs: Pairs, encode: Callable[[list[str]], Rows]) -> dict[str, Ranks]:
    """Rank the English counterpart of every sentence among those of its language."""
    numbers: dict[str, int] = {}
    found = {}
    for language, both in sorted(pairs.items()):
        sentences, english = (list(texts) for texts in zip(*both, strict=True))
        groups = np.array([numbers.setdefault(text, len(numbers)) for text in english])
        found[language] = Ranks(
            rank_counterparts(encode(sentences), encode(english), english), groups
        )
    return found


def compare(
    builds: Sequence[Mapping[str, Ranks]], k: int, languages: Sequence[str]
) -> list[dict[str, float | list[float]]]:
    """Measure success@k of each build, and what the last has more than the first.

    Args:
        builds: The ranks of each build on the same queries.
        k: Photos or sentences that are looked at.
        languages: The languages, each of which counts the same.

    Returns:
        `mean` and `interval` in percent for each build; of more than one also of the gain.
    """
    groups = [builds[0][name].groups for name in languages]
    hits = [[(found[name].ranks < k).astype(float) for name in languages] for found in builds]
    gain = [last - first for first, last in zip(hits[0], hits[-1], strict=True)]
    return [average(one, groups) for one in (*hits, *([gain] if len(builds) > 1 else []))]


def average(
    values: Sequence[NDArray[np.float64]], groups: Sequence[NDArray[np.int64]]
) -> dict[str, float | list[float]]:
    """Average languages, each counting the same, with a 95 % bootstrap interval over groups.

    A group has queries in several languages, which are drawn together.

    Args:
        values: For each language the value of each query.
        groups: For each language the group of each query.

    Returns:
        `mean` and `interval` in percent.
    """
    if len(values) == 1:
        return with_interval(values[0], np.unique(groups[0], return_inverse=True)[1])
    every, of_all = np.unique(np.concatenate(groups), return_inverse=True)
    shares = np.full(len(every), 1 / len(every))
    drawn = np.random.default_rng(0).multinomial(len(every), shares, size=RESAMPLES)
    means = np.zeros(RESAMPLES)
    start = 0
    for own in values:
        weights = drawn[:, of_all[start : start + len(own)]]
        means += weights @ own / np.maximum(weights.sum(axis=1), 1)
        start += len(own)
    low, high = np.percentile(100 * means / len(values), [2.5, 97.5])
    return {
        "mean": round(100 * float(np.mean([own.mean() for own in values])), 2),
        "interval": [round(float(low), 2), round(float(high), 2)],
    }


def lines_of(judge: str, builds: Sequence[Mapping[str, Ranks]]) -> list[str]:
    """Write a judge's table: a line for each language and the means, at each cutoff."""
    languages = list(builds[0])
    rows = {name: [name] for name in languages} | {"mean": languages}
    if judge == FOLDER:
        rows["mean of forty"] = [name for name in FORTY if name in languages]
    lines = [f"{judge}: success@k in percent" + ", then the gain" * (len(builds) > 1)]
    for name, chosen in rows.items():
        for k in CUTOFFS:
            figures = compare(builds, k, chosen)
            cells = "   ".join(map(show, figures))
            low, high = figures[-1]["interval"]
            is_sure = len(builds) > 1 and not low <= 0 <= high
            count = sum(len(builds[0][one].ranks) for one in chosen)
            lines.append(f"  {name:<16}{count:>7,}  @{k:<3} {cells}{' *' * is_sure}")
    return lines


def show(figure: Mapping[str, float | list[float]]) -> str:
    """Write a mean and its interval in columns of one width."""
    low, high = figure["interval"]
    return f"{figure['mean']:7.2f} [{low:7.2f}, {high:7.2f}]"


def rank_judge(judge: str, model: MiniEmbedder) -> dict[str, Ranks]:
    """Rank the answers to all queries of one of `JUDGES`.

    Raises:
        NotFoundError: SEARCHLAB_DATASETS does not hold it.
    """
    root = external_root()
    if root is None or not (root / folder_of(judge)).is_dir():
        msg = f"SEARCHLAB_DATASETS must name a folder that holds {judge}, got {root}"
        raise NotFoundError(msg)
    if judge == FOLDER:
        return rank_sentences(read_pairs(root), model.encode_texts)
    return rank_photos(LOADERS[judge](root), model)


def main() -> None:
    """Print the judges' tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("builds", nargs="+", help="folders of builds, or `shipped`")
    parser.add_argument("--judges", nargs="+", choices=JUDGES, default=JUDGES, help="only some")
    parser.add_argument("--threads", type=int, default=1, help="threads that compute")
    options = parser.parse_args()
    folders = [MINI_DATA if name == "shipped" else Path(name) for name in options.builds]
    for folder in folders:
        if not (folder / RECORD_FILE).is_file():
            sys.exit(f"a build must be a folder with {RECORD_FILE}, got {folder}")
    models = [MiniEmbedder(folder, threads=options.threads) for folder in folders]
    sys.stdout.write("".join(f"{model.model_id}  {model.folder}\n" for model in models))
    for judge in options.judges:
        try:
            builds = [rank_judge(judge, model) for model in models]
        except NotFoundError as error:
            sys.exit(str(error))
        sys.stdout.write("\n".join(["", *lines_of(judge, builds), ""]))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
