"""`fields`: which fields of a photo an answer holds."""

from __future__ import annotations

from searchlab.api.accounts.plans import Plan
from searchlab.api.wire.errors import Problem


def select_fields(given: str | None, plan: Plan) -> tuple[str, ...]:
    """Read the parameter `fields`.

    Args:
        given: Comma-separated names; None for every field the plan allows.
        plan: Of the caller.

    Returns:
        The names in the specification's order, each once.

    Raises:
        Problem: A name that is no Photo field, or not one of the plan; lists those that are.
    """
    if given is None:
        return plan.fields
    names = [name.strip() for name in given.split(",")]
    unknown = sorted(set(names) - set(plan.fields))
    if unknown:
        accepted = ", ".join(plan.fields)
        came = ", ".join(repr(name) for name in unknown[:5])[:200]
        msg = f"fields must be names among {accepted}, got {came}"
        raise Problem(msg, "INVALID_FIELDS", details={"accepted": list(plan.fields)})
    return tuple(name for name in plan.fields if name in set(names))
