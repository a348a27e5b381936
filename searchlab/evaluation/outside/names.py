"""What other toolkits call the metrics: `nDCG@10`, `ndcg_cut_10` and `ndcg_at_10` are `ndcg@10`."""

from __future__ import annotations

import re
from typing import Final

_OURS: Final = {
    "ndcg": "ndcg",
    "ndcg_cut": "ndcg",
    "p": "precision",
    "precision": "precision",
    "r": "recall",
    "recall": "recall",
    "rr": "mrr",
    "mrr": "mrr",
    "recip_rank": "mrr",
    "ap": "map",
    "map": "map",
    "map_cut": "map",
    "success": "success",
    "hit_rate": "success",
    "hits": "success",
    "judged": "judged",
}
_WITH_CUTOFF: Final = re.compile(r"([A-Za-z_]+?)(?:@|_at_|_)(\d+)")


def metric_name(theirs: str) -> str:
    """Return our name of a metric; one that we do not know keeps its own.

    >>> [metric_name(name) for name in ("nDCG@10", "ndcg_cut_10", "P_5", "mrr_at_10", "infAP")]
    ['ndcg@10', 'ndcg@10', 'precision@5', 'mrr@10', 'infAP']
    """
    match = _WITH_CUTOFF.fullmatch(theirs.strip())
    ours = _OURS.get(match[1].lower()) if match else None
    return f"{ours}@{match[2]}" if match and ours else theirs.strip()
