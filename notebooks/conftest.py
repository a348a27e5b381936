"""A notebook takes seconds, and all of them minutes: they are marked slow."""

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every cell of the notebooks here."""
    for item in items:
        if NOTEBOOKS in item.path.parents:
            item.add_marker(pytest.mark.slow)
