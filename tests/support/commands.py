"""What came of a command line."""

from typing import NamedTuple


class Done(NamedTuple):
    """What came of a command line."""

    code: int
    out: str
    err: str
