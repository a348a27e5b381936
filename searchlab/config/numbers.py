"""Numbers of a configuration: finite, and floats, so that equal ones have equal JSON."""

from __future__ import annotations

import math

from searchlab.errors import InputError, quote


def finite_number(name: str, value: float, *, positive: bool = False) -> float:
    """Return a number as a float.

    Raises:
        InputError: It is no number, not finite, or not above 0 where it must be.
    """
    # A float also where an int was given, so that equal configurations have equal JSON.
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and (number > 0 or not positive):
            return number
    above = " above 0" if positive else ""
    msg = f"{name} must be a finite number{above}, got {quote(value)}"
    raise InputError(msg)
