"""Draw what searches of the bundled photos look like: the picture at the top of the README.

    python -m benchmarks.structure.draw_grid [QUERY ...]

Indexes the bundled photos into a temporary folder, searches, and lets Chromium take a picture of
the cards. Writes results/readme/grid.png, which the README shows. Needs `chromium`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

from searchlab import Query, build_demo_library

PICTURE = Path(__file__).resolve().parents[2] / "results" / "readme" / "grid.png"
QUERIES = ("zamek", "Vogel", "рыба")  # castle, bird and fish
WIDTH, HEIGHT = 1034, 2400  # what is left over is cut off
COLORS = 256
MARGIN = 12


def main() -> None:
    """Search, draw and say how large the picture is."""
    with tempfile.TemporaryDirectory() as scratch:
        library = build_demo_library(Path(scratch) / "library")
        pages = [library.search(Query(text=text, limit=5)) for text in sys.argv[1:] or QUERIES]
        sheets = "\n".join(page.to_html() for page in pages)
        document = Path(scratch) / "grid.html"
        document.write_text(
            f'<!doctype html><meta charset="utf-8"><body style="margin:{MARGIN}px">{sheets}',
            encoding="utf-8",
        )
        shot = Path(scratch) / "grid.png"
        take_picture(document, shot)
        image = Image.open(shot).convert("RGB")
    ground = Image.new("RGB", image.size, "white")
    box = ImageChops.difference(image, ground).getbbox() or (0, 0, *image.size)
    image = image.crop((0, 0, image.width, box[3] + MARGIN))
    image.quantize(COLORS, kmeans=2).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {image.width} x {image.height}, {PICTURE.stat().st_size:,} bytes")


def take_picture(document: Path, shot: Path) -> None:
    """Let Chromium draw an HTML file into a PNG."""
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}", document.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
