"""A Chromium of this machine, for pages that are measured, drawn or tested in a real browser."""

from __future__ import annotations

import os
import shutil
from typing import Any

# The shell first: the whole browser draws its own windows too, and takes twice the processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Return the path of the browser that `SEARCHLAB_CHROMIUM` names, or else of one in PATH."""
    named = os.environ.get("SEARCHLAB_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def launch(playwright: Any) -> Any:
    """Start it.

    Raises:
        SystemExit: This machine has none.
    """
    chromium = find_chromium()
    if chromium is None:
        msg = f"a browser must be installed, one of {', '.join(NAMES)}, got none"
        raise SystemExit(msg)
    arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
    return playwright.chromium.launch(executable_path=chromium, args=arguments)
