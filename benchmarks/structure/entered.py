"""Which files of searchlab a text query over HTTP enters, in whichever checkout is imported.

    PYTHONPATH=CHECKOUT python entered.py LIBRARY KEY

Prints their paths as JSON: every file with a function that is called, in any thread, between the
request and its answer. Only public names are used, so that it runs in other checkouts too.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

REST_S = 0.3  # counts are written once a second, by another thread and for all queries together

_entered: set[str] = set()
_counting = threading.Event()


def _note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and _counting.is_set():
        _entered.add(frame.f_code.co_filename)


def main() -> None:
    """Serve a library, warm it, and ask one query under a profile of every thread."""
    threading.setprofile(_note)  # before the app, for threads take it over when they start
    from litestar.testing import TestClient

    import searchlab
    from searchlab.api.app import create_app
    from searchlab.api.settings import Settings

    library, key = sys.argv[1:]
    headers = {"x-api-key": key}
    with TestClient(create_app(Settings(data=Path(library)))) as client:
        for query in ("a castle", "a dog"):
            client.get("/api/v1/search/photos", params={"q": query}, headers=headers)
        time.sleep(REST_S)
        _counting.set()
        answer = client.get("/api/v1/search/photos", params={"q": "a boat"}, headers=headers)
        _counting.clear()
    if answer.status_code != 200 or not answer.json()["data"]:
        sys.exit(f"the query must be answered with photos, got {answer.status_code}: {answer.text}")
    package = Path(searchlab.__file__).parent
    files = [Path(name) for name in _entered]
    print(json.dumps(sorted(str(f.relative_to(package)) for f in files if package in f.parents)))


if __name__ == "__main__":
    main()
