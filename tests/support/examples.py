"""How many examples a property is tried on: as many as it needs, and fewer in quick runs."""

from hypothesis import settings


def examples(count: int) -> int:
    """Return `count`, or what quick runs draw where that is less; see `conftest.py`."""
    return count if settings.default.max_examples >= 100 else min(count, 30)
