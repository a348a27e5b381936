"""Samples: queries drawn by chance, and what the best systems show for them."""

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

_ENGLISH = 2  # of the queries drawn, so that a page in English has some that its reader can judge


def draw(result: Result, n_queries: int) -> list[int]:
    """Draw queries by the hash of their id: two English ones, then a language each.

    Args:
        result: Whose queries.
        n_queries: How many, at most.

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
    seen: dict[str, int] = {}
    for place in others:
        seen.setdefault(scores.langs[place], place)
    seen.pop("en", None) if english else None
    drawn = [*english, *seen.values()]
    return (drawn + [place for place in others if place not in drawn])[:n_queries]


def samples_html(
    systems: Sequence[tuple[Result, Mapping[str, Sequence[str]]]],
    names: Mapping[str, str],
    *,
    dataset: Dataset | None,
    pictures: Pictures,
    n_queries: int = 6,
    n_shown: int = 8,
) -> str:
    """Render drawn queries with the first results of some systems.

    Args:
        systems: Results with their runs; those without a run are passed over.
        names: Config_id -> name of the system.
        dataset: Brings words and grades.
        pictures: Where pictures come from.
        n_queries: Queries drawn.
        n_shown: Results of each system.
    """
    shown = [(result, run) for result, run in systems if run]
    if not shown:
        return note("Rankings are not at hand (no .run.gz beside the results): no samples.")
    parts = []
    if dataset is None:
        parts.append(note("The dataset cannot be read here: queries are named by their ids."))
    if not pictures.at_hand:
        parts.append(note("Pictures are not at hand: name a library with --data."))
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
            said = f"{name}: {result.headline} {score:.3f}"
            if like == name:
                strip = pictures.strip(list(ranked), grades)
                parts.append(f"<small>{html.escape(said)}</small>{strip}")
            else:
                same = f"{said}, the same photos as {like}"
                parts.append(f"<p><small>{html.escape(same)}</small></p>")
        best_judged = first.scores.cluster_ids[place]
        parts.append(
            pictures.missed(best_judged, {i for ranked in first_with for i in ranked}, grades)
        )
        parts.append("</div>")
    return "".join(parts)
