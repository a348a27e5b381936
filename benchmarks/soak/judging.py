"""Judges: they make a task, grade its photos one by one and in a grid, compare, and take away."""

from __future__ import annotations

import uuid

from benchmarks.soak.person import Person, fields_of, last_part
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.comparisons import create_comparison
from searchlab.library.library import Library

COMPARISON = "two-orders"
_QUERIES = "castle\na red flower"
_N_QUERIES = 2


def prepare_comparison(library: Library) -> None:
    """Put two rankings beside a library, for judges to compare."""
    photo_ids = sorted(library.engine.table.texts("photo_id"))[:12]
    queries = [LabelledQuery(f"q{n}", "en", "written", text=f"query {n}") for n in range(2)]
    first = {query.query_id: photo_ids for query in queries}
    second = {query.query_id: photo_ids[::-1] for query in queries}
    create_comparison(library.folder, COMPARISON, queries, {"one": first, "other": second})


async def judge(person: Person) -> None:
    """Make a task, grade, look at what came, and delete it."""
    await person.get("/judge")
    await person.get("/judge/new")
    task = {"title": f"soak {uuid.uuid4()}", "queries": _QUERIES, "depth": "5"}
    made = await person.post("/judge/new", task, searches=_N_QUERIES)
    if made is None:
        return
    place = f"/judge/{last_part(made)}"
    await person.get(place)
    for choice in ("2", "skip", "0"):
        page = await person.get(f"{place}/one")
        if page is not None:
            await person.post(f"{place}/one", fields_of(page.text) | {"choice": choice})
    page, graded = await person.get(f"{place}/grid"), None
    if page is not None:
        form = fields_of(page.text) | {"g3": "1", "g4": "3"}
        graded = await person.post(f"{place}/grid", form)
    await person.get(f"{place}/results")
    grades = await person.get(f"{place}/files/grades.tsv")
    if grades is not None and graded is not None and len(grades.text.splitlines()) < 2:
        person.world.ledger.report_broken("photos were graded, their file has no line")
    await person.get(f"{place}/delete")
    if await person.post(f"{place}/delete", {}) is not None:
        await person.get(place, allowed=(404,))


async def compare(person: Person) -> None:
    """Compare two rankings to the end."""
    place = f"/judge/{COMPARISON}"
    for choice in ("left", "tie"):
        page = await person.get(f"{place}/compare")
        if page is not None and "n" in (fields := fields_of(page.text)):
            await person.post(f"{place}/compare", fields | {"choice": choice})
    await person.get(f"{place}/outcome", allowed=(200, 409, 422))
