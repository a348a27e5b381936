"""The plans, and what each allows, in one table."""

from __future__ import annotations

from dataclasses import dataclass

from searchlab.photos.photo import PHOTO_FIELDS


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an account may do.

    Attributes:
        name: Name, as for `searchlab keys create --plan`.
        requests_per_month: Searches in a calendar month (UTC).
        similar_paged: Whether there is more than one page of photos similar to an indexed one.
        fields: Photo fields that answers may hold.
        share: How much time for decoding uploads its accounts get, compared with others.
    """

    name: str
    requests_per_month: int
    similar_paged: bool = True
    fields: tuple[str, ...] = PHOTO_FIELDS
    share: float = 1.0


PLANS = {
    plan.name: plan
    for plan in (
        Plan(name="free", requests_per_month=5_000, similar_paged=False),
        Plan(name="starter", requests_per_month=20_000, share=2),
        Plan(name="growth", requests_per_month=100_000, share=4),
        Plan(name="scale", requests_per_month=1_000_000, share=8),
    )
}
