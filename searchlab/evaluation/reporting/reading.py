"""Reading: the main statements of a report as sentences, made from its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.reporting.frontier import frontier
from searchlab.evaluation.results import Result
from searchlab.evaluation.significance import Interval


def reading(comparison: Comparison) -> list[str]:
    """Say which configuration is chosen and why, what cannot be told apart, and where it is weak.

    Returns:
        Sentences, the most important first.
    """
    sentences = [_choice(comparison), _order(comparison)]
    if comparison.detectable is not None:
        sentences.append(_limits(comparison, comparison.detectable[1]))
    if len(comparison.chosen.languages) > 1:
        sentences.append(_languages(comparison))
    beaten = [point.name for point in frontier(comparison) if not point.is_efficient]
    if beaten:
        sentences.append(
            "Off the frontier, since another is nowhere worse and somewhere better: "
            f"{_and(beaten)}."
        )
    return sentences


def promotion(values: Mapping[str, Any]) -> list[str]:
    """Say which configuration is chosen, on which evidence, and what it replaced.

    Args:
        values: Contents of a chosen.json, as `searchlab.evaluation.promotion.promote` writes it.
    """
    evidence = values["evidence"]
    interval = Interval(*values["intervals"][evidence["headline"]])
    tied = [one["system"] for one in evidence["tied_with"]]
    sentences = [
        f"{values['system']}: {evidence['headline']} {interval} on {values['dataset']}, "
        f"{_count(evidence['n_queries'], 'query', 'queries')} in "
        f"{_count(len(evidence['languages']), 'language', 'languages')}.",
        f"Tied with it: {_and(tied) if tied else 'none'}.",
    ]
    if evidence.get("tasks"):
        listed = _and(
            [
                f"{task['weight']:.0%} {task['dataset']} {Interval(*task['interval'])}"
                for task in evidence["tasks"]
            ]
        )
        sentences.insert(1, f"It was chosen over several tasks, weighed: {listed}.")
    replaced = evidence["replaced"]
    if replaced is not None and replaced["system"] != values["system"]:
        forced = " Forced." if replaced["forced"] else ""
        sentences.append(f"It replaced {replaced['system']}: {replaced['reason']}.{forced}")
    return sentences


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _choice(comparison: Comparison) -> str:
    chosen, tied = comparison.chosen, comparison.groups[0]
    metrics = chosen.metrics
    ms = f"{metrics['text_ms'] + metrics['p50_ms']:.2f} ms for a new query, "
    cost = f"{ms if chosen.is_timed else ''}{metrics['size_mib']:.1f} MiB"
    quality = f"{chosen.headline} {chosen.intervals[chosen.headline].macro}"
    if len(tied) == 1:
        return f"Serve {chosen.name}: {quality}, shown to be better than all others; {cost}."
    others = _and([comparison.names[result.config_id] for result in tied if result is not chosen])
    return (
        f"Serve {chosen.name}: {quality}. It cannot be told apart from {others}, and is the "
        f"smallest of the fast ones among them ({cost})."
    )


def _order(comparison: Comparison) -> str:
    if len(comparison.results) == 1:
        return "There is one system, so there is nothing to compare it with."
    if len(comparison.groups) == 1:
        return f"None of the {len(comparison.results)} systems can be told apart from the leader."
    below = [
        _and([comparison.names[result.config_id] for result in group])
        for group in comparison.groups[1:]
    ]
    return (
        f"There are {len(comparison.groups)} groups, each shown to be worse than the leader of the "
        f"one before. Below the first: {'; then '.join(below)}."
    )


def _limits(comparison: Comparison, detectable: float) -> str:
    beginning = (
        f"What these queries cannot show: with {comparison.results[0].n_queries:,} of them about "
        f"{len(set(comparison.results[0].scores.cluster_ids)):,} photos, "
    )
    if math.isinf(detectable):
        return f"{beginning}no difference of any size; a tie here says nothing."
    return (
        f"{beginning}a true difference of {detectable:.3f} from the leader is found four times in "
        "five; smaller ones may be missed, so a tie is no proof of equality."
    )


def _languages(comparison: Comparison) -> str:
    chosen = comparison.chosen
    groups = chosen.intervals[chosen.headline].groups
    order = sorted(groups, key=lambda lang: (-groups[lang].mean, lang))
    best = f"{order[0]} ({groups[order[0]].mean:.3f})"
    worst = f"{order[-1]} ({groups[order[-1]].mean:.3f})"
    better = [
        lang
        for lang in chosen.languages
        if any(
            other.intervals[chosen.headline].groups[lang].low > groups[lang].high
            for other in comparison.results
        )
    ]
    comparison_text = (
        f"its interval lies below another system's in {len(better)} of {len(order)}: "
        f"{_and(better[:8])}{' and more' if len(better) > 8 else ''}"
        if better
        else f"no other system has an interval wholly above it in any of the {len(order)}"
    )
    return f"By language, {chosen.name} ranges from {best} to {worst}; {comparison_text}."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shown_systems(comparison: Comparison) -> list[Result]:
    """Return up to three systems whose rankings to show: the chosen, and the groups' leaders."""
    firsts = [group[0] for group in comparison.groups]
    return [comparison.chosen, *(result for result in firsts if result is not comparison.chosen)][
        :3
    ]
