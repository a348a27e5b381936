"""How much words should count beside what a photo shows: weights that rank judged photos best.

Queries and judgments come from captions that people wrote for training photos (five each). One
caption at most is there as a text, so that what is asked is not what is written:

- `caption`: another caption is the query, its photo the answer;
- `short`: two or three content words of another caption are the query; relevant is every photo of
  which two captions or more have all of them. The text is short too, as titles and tags are;
- `name`: the made-up name of the photographer is the query, and her photos are the answer.

Each is asked once with a text on every photo and once with one on half of them, and each again with
a typing error in the query.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Curve
from searchlab.config.word_weights import WordWeights
from searchlab.evaluation.datasets.written import misspell
from searchlab.search.words.index import WordIndex
from searchlab.search.words.languages import is_function_word, language_of
from searchlab.search.words.matches import Gains
from searchlab.search.words.terms import words_of

COVERAGE: Final = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
PRECISION: Final = (0.0, 1.0, 2.0, 3.0, 6.0)
SHARPNESS: Final = (1.0, 2.0, 3.0, 4.0)
"""Values that are tried, each with each."""

ENOUGH: Final = 0.02
"""The least weights are chosen whose mean ndcg@10 is no further below the best: larger ones rank
hardly better, and take what is written for certain."""

MISSPELT_SHARE: Final = 0.2
"""How much tasks with typing errors count, in all: they are rarer than queries without."""

_K = 10


@dataclass(frozen=True)
class JudgedText:
    """A query and the photos that it means.

    Attributes:
        task: What it looks for: `caption`, `short` or `name`, or one of these `misspelt`.
        text: The query.
        relevant: Rows of the photos.
    """

    task: str
    text: str
    relevant: frozenset[int]


def content_words(caption: str) -> list[str]:
    """Return the words of an English caption that say something."""
    words = words_of(caption)
    language = language_of(words)
    return [word for word in words if not is_function_word(word, language)]


def photographer_of(photo_id: str, names: Sequence[str]) -> str:
    """Draw one of 300 made-up photographers for a photo."""
    rng = random.Random(f"photographer {photo_id}")
    number = random.Random(rng.randrange(300))
    return f"{number.choice(names)} {number.choice(names)}"


def texts_and_queries(
    photo_ids: Sequence[str],
    captions: Mapping[str, Sequence[str]],
    names: Sequence[str],
    *,
    n_queries: int,
    seed: int = 0,
) -> tuple[list[dict[str, str]], list[dict[str, str]], list[JudgedText]]:
    """Draw what is written about each photo, and queries with their answers.

    Args:
        photo_ids: In the order of the rows.
        captions: photo_id -> five English captions.
        names: First and last names of photographers.
        n_queries: Of each task.
        seed: Seed of the draws.

    Returns:
        For each photo its texts with a long description, the same with a short title, and the
        queries.
    """
    rng = random.Random(seed)
    long, short = [], []
    bags: list[list[set[str]]] = []
    by_photographer: dict[str, set[int]] = defaultdict(set)
    for row, photo_id in enumerate(photo_ids):
        photographer = photographer_of(photo_id, names)
        by_photographer[photographer].add(row)
        by = {"photographer_full_name": photographer}
        words = content_words(captions[photo_id][1])
        long.append({"source_description": captions[photo_id][1], **by})
        short.append({"title": " ".join(words[: rng.randint(1, 3)]), **by})
        bags.append([set(content_words(caption)) for caption in captions[photo_id]])
    queries = []
    for row in rng.sample(range(len(photo_ids)), n_queries):
        text = captions[photo_ids[row]][0]
        queries.append(JudgedText("caption", text, frozenset([row])))
    while len(queries) < 2 * n_queries:
        words = content_words(captions[rng.choice(photo_ids)][0])
        if len(words) < 3:
            continue
        start = rng.randrange(len(words) - 1)
        asked = words[start : start + rng.randint(1, 3)]
        relevant = {
            row for row, some in enumerate(bags) if sum(bag >= set(asked) for bag in some) >= 2
        }
        if 1 <= len(relevant) <= 100:
            queries.append(JudgedText("short", " ".join(asked), frozenset(relevant)))
    for name in rng.sample(sorted(by_photographer), min(n_queries, len(by_photographer))):
        queries.append(JudgedText("name", name, frozenset(by_photographer[name])))
    wrong = [
        JudgedText(f"misspelt {query.task}", misspelt, query.relevant)
        for query in queries
        if (misspelt := misspell(query.text, seed=query.text)) is not None
    ]
    return long, short, [*queries, *wrong]


def grid() -> list[WordWeights]:
    """Return all weights that are tried."""
    return list(itertools.starmap(WordWeights, itertools.product(COVERAGE, PRECISION, SHARPNESS)))


def ndcg_by_weights(
    index: WordIndex,
    cosines: NDArray[np.float32],
    query: JudgedText,
    weights: Sequence[WordWeights],
    curve: Curve,
) -> NDArray[np.float64]:
    """Return ndcg@10 of one query under each choice of weights, and last without words.

    Args:
        index: What is written about the photos.
        cosines: (n_photos,) of the query and each photo.
        query: The query.
        weights: To try.
        curve: From cosines to log-odds, by whose slope weights become cosines.

    Returns:
        (n_weights + 1,) float64.
    """
    matches = index.match(query.text)
    good = np.zeros(len(cosines), dtype=bool)
    good[list(query.relevant)] = True
    discounts = 1 / np.log2(np.arange(2, _K + 2))
    ideal = discounts[: len(query.relevant)].sum()
    values = []
    for some in (*weights, None):
        scores = cosines.astype(np.float64)
        if some is not None:
            gains = Gains.of_words(matches, some, curve)
            scores[gains.rows] += gains.of(gains.rows)
        best = np.argpartition(-scores, _K)[:_K]
        best = best[np.lexsort((best, -scores[best]))]
        values.append(float((discounts * good[best]).sum() / ideal))
    return np.array(values)


def choose(
    figures: Mapping[str, NDArray[np.float64]], weights: Sequence[WordWeights]
) -> tuple[int, NDArray[np.float64]]:
    """Choose the smallest weights that are within `ENOUGH` of the best mean over the tasks.

    The photos are among those that `mini` was trained on and finds better than others, so that
    texts that say half of a query are worth more elsewhere than here.

    Args:
        figures: Task -> (n_queries, n_weights + 1) ndcg@10, as of `ndcg_by_weights`.
        weights: Those that were tried.

    Returns:
        Place of the chosen weights, and (n_weights + 1,) means over tasks, where those with
        typing errors have `MISSPELT_SHARE` of the weight.
    """
    wrong = [task.startswith("misspelt") for task in figures]
    shares = [
        MISSPELT_SHARE / sum(wrong) if w else (1 - MISSPELT_SHARE) / wrong.count(False)
        for w in wrong
    ]
    means = np.average([values.mean(axis=0) for values in figures.values()], axis=0, weights=shares)
    enough: list[int] = np.flatnonzero(means[:-1] >= means[:-1].max() - ENOUGH).tolist()
    chosen = min(
        enough, key=lambda i: (weights[i].coverage + weights[i].precision, weights[i].sharpness)
    )
    return chosen, means


def plain(figures: Mapping[str, NDArray[np.float64]], place: int) -> dict[str, Any]:
    """Return the mean of each task at one choice of weights, to four digits."""
    return {task: round(float(values[:, place].mean()), 4) for task, values in figures.items()}
