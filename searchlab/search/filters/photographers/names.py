"""Names: folded lines of text, two for each entry, in which any part of a name is found.

The lines stand end to end, those of the best entries first, so that a search for bytes meets the
best answers first and stops early. A mark stands before each word, so that words that begin with
the part can be searched for alone. A rare part would be searched for in all of the text; instead,
only the blocks that a filter lets through are searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from searchlab.search.filters.photographers.blocks import BlockFilter
from searchlab.search.words.terms import fold

_LINE, _MARK = b"\n", b"\x01"
_IS_WORD = np.array([byte >= 128 or chr(byte).isalnum() for byte in range(256)])


class Names:
    """Entries that are found by their two lines."""

    def __init__(self, batches: Iterable[list[str]]) -> None:
        """Fold the lines and store them.

        Args:
            batches: Lines of some entries at a time, two of each, in the order of the answers.
        """
        parts = [np.frombuffer(_LINE, dtype=np.uint8)]
        starts = [np.ones(1, dtype=np.int64)]
        end = 1
        for lines in batches:
            marked = _mark_words(np.frombuffer(_fold_lines(lines), dtype=np.uint8))
            parts.append(marked)
            starts.append(end + 1 + np.flatnonzero(marked == _LINE[0])[1::2])
            end += len(marked)
        self._starts = np.concatenate(starts)  # (n_entries + 1,) in the text
        text = np.concatenate(parts)
        self._filter = BlockFilter(text)
        self._text = text.tobytes()

    def find(self, part: str, limit: int) -> list[int]:
        """Find the entries that have a part in one of their lines.

        Args:
            part: Folded like the lines; one that folds to nothing is in every line.
            limit: Most to return, 1 or more.

        Returns:
            Entries with a line that is the part, then those with a word that begins with it, then
            the others; each in the order in which they were stored.
        """
        folded = fold(part).encode(errors="replace")
        begins = _mark_words(np.frombuffer(folded, dtype=np.uint8)).tobytes()
        patterns = [_LINE + begins + _LINE, begins, begins.removeprefix(_MARK)]
        entries: dict[int, None] = {}
        for pattern in dict.fromkeys(patterns if folded else [_LINE]):
            for entry in self._find_entries(pattern):
                entries[entry] = None
                if len(entries) == limit:
                    return list(entries)
        return list(entries)

    def _find_entries(self, pattern: bytes) -> Iterator[int]:
        for place, stop in self._filter.stretches(pattern):
            while True:
                place = self._text.find(pattern, place, stop + len(pattern) - 1)
                if place < 0:
                    break
                # A pattern that begins with the end of a line belongs to the line behind it.
                first = place + pattern.startswith(_LINE)
                entry = int(np.searchsorted(self._starts, first, side="right")) - 1
                if entry == len(self._starts) - 1:
                    break
                yield entry
                place = int(self._starts[entry + 1]) - 1


def _fold_lines(lines: list[str]) -> bytes:
    """Fold lines and end each, as `fold` does, but most of them in one go."""
    text = "\n".join([line.lower() if line.isascii() else fold(line) for line in lines])
    whole = f"\n{text}\n".encode()
    controls = np.frombuffer(whole, dtype=np.uint8) < ord(" ")
    plain = np.count_nonzero(controls) == len(lines) + 1
    if not plain or any(other in whole for other in (b"  ", b" \n", b"\n ", b"\x7f")):
        whole = "".join(["\n", *(f"{fold(line)}\n" for line in lines)]).encode()
    return whole[1:]


def _mark_words(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Put a mark before each word of UTF-8."""
    begins = _IS_WORD[text]
    begins[1:] &= ~begins[:-1]
    return np.insert(text, np.flatnonzero(begins), _MARK[0])
