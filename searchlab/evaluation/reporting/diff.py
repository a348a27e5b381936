"""Diff: compares two results query by query, and shows them as lines, a data frame or a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from searchlab.errors import InputError, MismatchError, refuse_names
from searchlab.evaluation.datasets import Dataset
from searchlab.evaluation.reporting.diff_page import diff_html
from searchlab.evaluation.reporting.paired import SAME, Change, PairedResults, Tally
from searchlab.evaluation.reporting.pictures import Pictures
from searchlab.evaluation.results import Result, incompatibility
from searchlab.evaluation.significance import Interval, bootstrap_intervals, holm, paired_test
from searchlab.evaluation.significance.power import power_of
from searchlab.files import require_pandas

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 8


class Diff(PairedResults):
    """The second of two results compared with the first; printing shows the verdict and losses."""

    def text(self, *, most: int = _SHOWN) -> str:
        """Return the verdict, the counts, the power and the worst losses as lines of text.

        Args:
            most: Most losses to list.
        """
        whole = self.whole
        lines = [
            self.setting,
            f"{self.verdict}, p = {whole.p_value:.4f}",
            f"of {whole.n_queries:,} queries {whole.wins:,} won, {whole.ties:,} tied, "
            f"{whole.losses:,} lost",
        ]
        if self.power is not None:
            lines += self.power.explain(about="photos").splitlines()[1:]
        differing = [lang for lang, tally in self.languages.items() if tally.p_value < 0.05]
        if len(self.languages) > 1:
            listed = ", ".join(f"{i} {self.languages[i].difference.mean:+.3f}" for i in differing)
            lines.append(f"languages that differ: {listed or 'none'} (of {len(self.languages)})")
        for change in self.regressions[:most]:
            lines.append(
                f"{change.before:.3f} -> {change.after:.3f}  {change.lang}  "
                f"{change.text or change.query_id}"
            )
        return "\n".join(lines)

    def frame(self) -> pd.DataFrame:
        """Return a row for every query, the worst loss first."""
        require_pandas()
        import pandas as pd

        rows = [
            {
                "query_id": change.query_id,
                "lang": change.lang,
                "text": change.text,
                "before": change.before,
                "after": change.after,
                "difference": change.difference,
            }
            for change in self.changes
        ]
        return pd.DataFrame(rows).set_index("query_id")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: counts, differences, and every query that changed."""
        return {
            "a": {"config_id": self.a.config_id, "system": self.a.name},
            "b": {"config_id": self.b.config_id, "system": self.b.name},
            "dataset": self.a.dataset,
            "metric": self.metric,
            "whole": _plain(self.whole),
            "languages": {lang: _plain(tally) for lang, tally in self.languages.items()},
            "power": None if self.power is None else self.power.to_dict(),
            "changes": [
                [change.query_id, change.before, change.after]
                for change in self.changes
                if abs(change.difference) > SAME
            ],
        }

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Diff({self.verdict!r})"

    def _repr_html_(self) -> str:
        return diff_html(self)


def compare(
    a: Result,
    b: Result,
    run_a: Mapping[str, Sequence[str]] | None = None,
    run_b: Mapping[str, Sequence[str]] | None = None,
    *,
    metric: str | None = None,
    dataset: Dataset | None = None,
    pictures: Pictures | None = None,
    seed: int = 0,
) -> Diff:
    """Compare two results of the same queries, query by query.

    Args:
        a: The first result, such as that of the current configuration.
        b: The second result, such as that of its possible successor.
        run_a: Ranking of the first, query_id -> photo_ids; see `read_run_beside`.
        run_b: Ranking of the second.
        metric: Metric to compare; the headline metric if left out.
        dataset: Dataset with the words of the queries and the grades.
        pictures: Source of pictures for the page.
        seed: Seed of intervals and tests.

    Raises:
        MismatchError: The results cannot be compared; the message says what differs.
        InputError: They have no such metric.
    """
    refuse_names("load_result(path)", a=a, b=b)
    for name, result in (("a", a), ("b", b)):
        if not isinstance(result, Result):
            got = type(result).__name__
            msg = f"{name} must be a result, such as report.results[0], got an object of {got}"
            raise InputError(msg)
    metric = common_metric(a, b, metric)
    scores = a.scores
    first, second = a.scores.values[metric], b.scores.values[metric]
    differences = second - first
    intervals = bootstrap_intervals(
        {metric: differences}, groups=scores.langs, clusters=scores.cluster_ids, seed=seed
    )[metric]
    p_value = paired_test(
        second, first, groups=scores.langs, clusters=scores.cluster_ids, seed=seed
    )
    signs = np.where(np.abs(differences) <= SAME, 0, np.sign(differences)).astype(int)
    langs, clusters = np.array(scores.langs), np.array(scores.cluster_ids)
    tests = [
        paired_test(
            second[langs == lang], first[langs == lang], clusters=clusters[langs == lang], seed=seed
        )
        for lang in intervals.groups
    ]
    words = {} if dataset is None else {q.query_id: q.text or "" for q in dataset.queries}
    changes = [
        Change(query_id, lang, photo, words.get(query_id, ""), float(before), float(after))
        for query_id, lang, photo, before, after in zip(
            scores.query_ids, scores.langs, scores.cluster_ids, first, second, strict=True
        )
    ]
    power = None
    if np.abs(differences).max() > 0 and len(set(scores.cluster_ids)) > 1:
        power = power_of(second, first, groups=scores.langs, clusters=scores.cluster_ids)
    return Diff(
        a=a,
        b=b,
        metric=metric,
        whole=_tally(signs, intervals.macro, p_value),
        languages={
            lang: _tally(signs[langs == lang], interval, adjusted)
            for (lang, interval), adjusted in zip(
                intervals.groups.items(), holm(tests), strict=True
            )
        },
        changes=tuple(sorted(changes, key=lambda c: (round(c.difference, 9), c.query_id))),
        power=power,
        runs=(run_a or {}, run_b or {}),
        qrels={} if dataset is None else dataset.qrels,
        pictures=pictures,
    )


def common_metric(a: Result, b: Result, metric: str | None) -> str:
    """Return the metric to compare two results by: the given one, or the headline metric.

    Raises:
        MismatchError: The results cannot be compared; the message says what differs.
        InputError: They have no such metric.
    """
    reason = incompatibility(a, b, timings=False)
    if reason is not None:
        msg = f"two results must be of the same data and code, got {reason}; evaluate them together"
        raise MismatchError(msg)
    metric = metric or a.headline
    if metric not in a.scores.values:
        msg = f"metric must be one of {', '.join(a.scores.values)}, got {metric!r}"
        raise InputError(msg)
    return metric


def _tally(
    signs: np.ndarray[Any, np.dtype[np.int_]], difference: Interval, p_value: float
) -> Tally:
    counts = Counter(signs.tolist())
    return Tally(counts[1], counts[0], counts[-1], difference, p_value)


def _plain(tally: Tally) -> dict[str, Any]:
    return {
        "wins": tally.wins,
        "ties": tally.ties,
        "losses": tally.losses,
        "difference": [round(value, 6) for value in tally.difference],
        "p_value": tally.p_value,
    }
