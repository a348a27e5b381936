"""Milliseconds of searching a library by words, in whichever checkout is imported.

    PYTHONPATH=CHECKOUT python searched.py LIBRARY N

Prints them as JSON, one for each of N different texts. Only public names are used, so that it runs
in other checkouts too.
"""

from __future__ import annotations

import json
import sys
import time

WORDS = ("castle", "boat", "red flower", "Vogel", "montagne", "dog on grass", "night sky", "chat")


def main() -> None:
    """Open a library, warm it, and time one search after another."""
    import searchlab

    folder, n = sys.argv[1:]
    library = searchlab.open_library(folder)
    texts = [f"{WORDS[i % len(WORDS)]} {i}" for i in range(int(n))]
    for word in WORDS:
        library.search(word)
    milliseconds = []
    for text in texts:
        started = time.perf_counter()
        library.search(text)
        milliseconds.append(1000 * (time.perf_counter() - started))
    print(json.dumps(milliseconds))


if __name__ == "__main__":
    main()
