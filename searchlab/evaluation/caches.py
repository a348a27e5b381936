"""The folder of what was computed and is kept for later; all of it can be deleted at any time.

SEARCHLAB_CACHE names it; else it is `searchlab` in the user's folder of caches.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "SEARCHLAB_CACHE"


def cache_folder() -> Path:
    """Return the user's folder of caches for searchlab; it may not be there yet."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "searchlab"
