"""Which files of searchlab a text query over HTTP enters, and which functions in each.

    PYTHONPATH=CHECKOUT python entered.py LIBRARY KEY

Prints JSON, by thread: the path of every file with a function that is called between the request
and its answer, and the names of these functions. `apart` are the thread that commits the counts of
all requests together, and the one that writes the log; all others are `request`. It measures
whichever checkout is imported: only public names are used.
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

_entered: set[tuple[str, str, str]] = set()
_counting = threading.Event()


def _note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and _counting.is_set():
        name = threading.current_thread().name
        code = frame.f_code
        thread = "apart" if name in APART else "request"
        _entered.add((thread, code.co_filename, code.co_qualname.partition(".<locals>")[0]))


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
    files: dict[str, dict[str, list[str]]] = {"request": {}, "apart": {}}
    for thread, name, function in sorted(_entered):
        if package in Path(name).parents:
            files[thread].setdefault(str(Path(name).relative_to(package)), []).append(function)
    print(json.dumps(files))


if __name__ == "__main__":
    main()
