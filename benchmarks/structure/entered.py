"""Which files of searchlab a text query over HTTP enters, in whichever checkout is imported.

    PYTHONPATH=CHECKOUT python entered.py LIBRARY KEY

Prints their paths as JSON, by thread: every file with a function that is called between the request
and its answer. `apart` are the thread that commits the counts of all requests together, and the one
that writes the log; all others are `request`. Only public names are used, so that it runs in other
checkouts too.
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

APART = ("searchlab-meter", "searchlab-log")

_entered: set[tuple[str, str]] = set()
_counting = threading.Event()


def _note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and _counting.is_set():
        name = threading.current_thread().name
        _entered.add(("apart" if name in APART else "request", frame.f_code.co_filename))


def main() -> None:
    """Serve a library, warm it up, and send one query while every thread is profiled."""
    threading.setprofile(_note)  # before the app, because threads get it only when they start
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
    files: dict[str, list[str]] = {"request": [], "apart": []}
    for thread, name in sorted(_entered):
        if package in Path(name).parents:
            files[thread].append(str(Path(name).relative_to(package)))
    print(json.dumps(files))


if __name__ == "__main__":
    main()
