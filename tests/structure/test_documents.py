"""What the documents say of the project's own files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for room in ("datasets", "notebooks", "results", "searchlab")
            for path in (ROOT / room).rglob("*.md")),
]  # fmt: skip
REGISTRY = re.compile(r"`([A-Z]+)` of `(\S+\.py)`")
LINK = re.compile(r"]\(([^)#\s]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_links_to_is_there(path):
    links = LINK.findall(path.read_text(encoding="utf-8"))
    missing = [link for link in links if ":" not in link and not (path.parent / link).exists()]
    assert missing == []


def test_the_readme_names_the_registries_where_they_are():
    registries = REGISTRY.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(registries) == 6
    for name, file in registries:
        assert re.search(rf"^{name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
