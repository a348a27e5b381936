"""Some of the bundled photos, for a library that is made in seconds."""

from __future__ import annotations

from pathlib import Path

from searchlab.evaluation.datasets import bundled_root


def some_photos(folder: Path, n: int | None) -> Path:
    """Make a folder of links to the first `n` bundled photos; without a number return their own."""
    bundled = bundled_root() / "demo" / "images"
    if n is None:
        return bundled
    folder.mkdir()
    for picture in sorted(bundled.glob("*.jpg"))[:n]:
        (folder / picture.name).symlink_to(picture)
    return folder
