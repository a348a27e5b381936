"""Samples: randomly drawn queries, and the first results of the best systems for them."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from searchlab.evaluation.reporting.markup import note
from searchlab.evaluation.reporting.pictures import Pictures

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import Dataset
    from searchlab.evaluation.results import Result

_ENGLISH = 2  # as the page is in English, its readers can judge these


def draw(result: Result, n_queries: int) -> list[int]:
    """Draw queries by the hash of their id: two English ones, then one of each other language.

    Args:
        result: Result on the queries.
        n_queries: Most queries to draw.

    Returns:
        Their places in `result.scores`.
    """
    scores = result.scores
    order = sorted(
        range(len(scores.query_ids)),
        key=lambda place: hashlib.sha256(scores.query_ids[place].encode()).digest(),
    )
    english = [place for place in order if scores.langs[place] == "en"][:_ENGLISH]
    others = [place for place in order if place not in english]
    first_of: dict[str, int] = {}
    for place in others:
        first_of.setdefault(scores.langs[place], place)
    if english:
        first_of.pop("en", None)
    preferred = [*english, *first_of.values()]
    return (preferred + [place for place in others if place not in preferred])[:n_queries]


def samples_html(
    systems: Sequence[tuple[Result, Mapping[str, Sequence[str]]]],
    names: Mapping[str, str],
    *,
    dataset: Dataset | None,
    pictures: Pictures,
    n_queries: int = 6,
    n_shown: int = 8,
) -> str:
    """Render randomly drawn queries with the first results of some systems.

    Args:
        systems: Results with their rankings; those without rankings are left out.
        names: Config_id -> name of the system.
        dataset: Dataset with words and grades, if it can be loaded.
        pictures: Source of pictures.
        n_queries: Most queries to draw.
        n_shown: Most results of each system.
    """
    shown = [(result, run) for result, run in systems if run]
    if not shown:
        return note("No samples: there are no rankings (.run.gz) beside the results.")
    parts = []
    if dataset is None:
        parts.append(note("The dataset cannot be read here: queries are named by their ids."))
    if not pictures.at_hand:
        parts.append(note("There are no pictures: name a library with --data."))
    words = {} if dataset is None else {q.query_id: q.text or "" for q in dataset.queries}
    first = shown[0][0]
    for place in draw(first, n_queries):
        query_id, lang = first.scores.query_ids[place], first.scores.langs[place]
        grades = dict(dataset.qrels.get(query_id, {})) if dataset is not None else {}
        text = html.escape(words.get(query_id) or query_id)
        parts.append(
            f'<div class="case"><h4><span lang="{html.escape(lang)}">{text}</span> '
            f"<small>{html.escape(lang)}</small></h4>"
        )
        first_with: dict[tuple[str, ...], str] = {}
        for result, run in shown:
            score = result.scores.values[result.headline][place]
            name = names[result.config_id]
            ranked = tuple(run.get(query_id, ())[:n_shown])
            like = first_with.setdefault(ranked, name)
            heading = f"{name}: {result.headline} {score:.3f}"
            if like == name:
                strip = pictures.strip(list(ranked), grades)
                parts.append(f"<small>{html.escape(heading)}</small>{strip}")
            else:
                same = f"{heading}, the same photos as {like}"
                parts.append(f"<p><small>{html.escape(same)}</small></p>")
        best_judged = first.scores.cluster_ids[place]
        parts.append(
            pictures.missed(best_judged, {i for ranked in first_with for i in ranked}, grades)
        )
        parts.append("</div>")
    return "".join(parts)
