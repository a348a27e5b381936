"""Requests made up from the OpenAPI document, good and bad ones, and what is wrong with answers.

An answer is wrong if it is not one that the document allows, or if what fits the document is
refused for a reason that is not known.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema

from searchlab.api.wire.requests import ImageSearch

# What a made-up identifier names is not there, or there already.
_TAKEN = ["2xx", "304", "404", "409"]
# What fits the document and may be refused all the same, by rules that OpenAPI has no words for.
# Each 422 of these is held against _REASONS: a refusal for anything else is a failure.
_REFUSED = {
    # Rules between parameters, names that depend on the photos (422); a cursor must be one that was
    # given out (422), for a snapshot that is still kept (410).
    "searchPhotosByText": ["410", "422"],
    # The same, and either a picture or photo_id (422); the bytes must be a picture (415), and one
    # that can be decoded (422).
    "searchPhotosByImage": ["410", "415", "422"],
    "similarPhotos": ["410", "422"],
    # An Idempotency-Key that came with another body before.
    "createCollection": ["422"],
    "addCollectionPhoto": ["422"],
    # A range may begin beyond the end of the picture.
    "getPicture": ["416"],
}
_REASONS = (
    "color_name and color_hex cannot be combined, got ",
    "a search must have q or a filter, got neither",
    "a search must bring either the part image or photo_id, got ",
    "source must be one of ",
    "license_type must be one of ",
    "cursor must be the next_cursor of a page of this search, got another text",
    "Idempotency-Key must come with the same request again, got one that was used with another; ",
    "a picture must be complete and undamaged, got ",
    "image must hold a picture, got an empty part",
    *(f"{name} must be in the URL's query, got a part" for name in ImageSearch.__struct_fields__),
)


PHASES = ("examples", "coverage", "fuzzing", "stateful")


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        operations: Operations that were asked.
        wrong: What is wrong with an answer, each with the curl line that repeats it.
        n_cases: Requests that were sent.
        statuses: HTTP status -> how often it was the answer.
    """

    operations: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    n_cases: int = 0
    statuses: dict[int, int] = field(default_factory=dict)


def make_requests(
    base_url: str,
    key: str,
    *phases: str,
    examples: int,
    seed: int,
    until: float = float("inf"),
) -> Outcome:
    """Ask a server.

    Args:
        base_url: Its address.
        key: An API key.
        phases: Some of `PHASES`; `stateful` goes on from answers to what they name.
        examples: Made-up requests of each operation, or sequences of them.
        seed: Of all that is made up.
        until: When to stop, by `time.monotonic`.
    """
    config = _configure(phases, examples=examples, seed=seed)
    schema = schemathesis.openapi.from_url(f"{base_url}/openapi.json", config=config)
    schema.config.headers = {"x-api-key": key}
    outcome = Outcome()
    stream = from_schema(schema).execute()
    for event in stream:
        if isinstance(event, events.NonFatalError | events.FatalError):
            outcome.wrong.append(str(event))
        if isinstance(event, events.Interrupted):
            raise KeyboardInterrupt  # which schemathesis made an event of, and would go on
        if isinstance(event, events.ScenarioFinished):
            _note(event.recorder, outcome)
        if time.monotonic() > until:
            stream.stop()
            break
    return outcome


def _note(recorder: Any, outcome: Outcome) -> None:
    outcome.n_cases += len(recorder.interactions)
    outcome.operations |= {node.value.operation.label for node in recorder.cases.values()}
    outcome.wrong += _failures(recorder) + _refusals(recorder)
    for interaction in recorder.interactions.values():
        if interaction.response is not None:
            status = interaction.response.status_code
            outcome.statuses[status] = outcome.statuses.get(status, 0) + 1


def _configure(phases: tuple[str, ...], *, examples: int, seed: int) -> SchemathesisConfig:
    of_phases: dict[str, dict[str, Any]] = {name: {"enabled": name in phases} for name in PHASES}
    of_phases["coverage"]["unexpected-methods"] = ["PUT", "TRACE"]
    operations = [
        {
            "include-operation-id": operation,
            "checks": {"positive_data_acceptance": {"expected-statuses": [*_TAKEN, *statuses]}},
        }
        for operation, statuses in _REFUSED.items()
    ]
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "phases": of_phases,
            "operations": operations,
            "cache": {"enabled": False},
            "generation": {"max-examples": examples, "database": "none"},
        }
    )


def _failures(recorder: Any) -> list[str]:
    """List the checks that an answer failed."""
    return [
        f"{node.failure_info.failure}\n{node.failure_info.code_sample}"
        for case_id, nodes in recorder.checks.items()
        for node in nodes
        if node.status == Status.FAILURE
        and not (node.name == "ensure_resource_availability" and _is_replayed(recorder, case_id))
        and not (node.name == "negative_data_rejection" and _has_picture(recorder, case_id))
    ]


def _has_picture(recorder: Any, case_id: str) -> bool:
    """Tell whether a form was sent with its picture, though it was made up to have none.

    What schemathesis adds for a part of its own content type is there all the same, among parts of
    other names, which are passed over.
    """
    body = recorder.interactions[case_id].request.body or b""
    return b'; name="image"' in body


def _is_replayed(recorder: Any, case_id: str) -> bool:
    """Tell whether a case goes on from an answer that was given again.

    Such an answer names what was made when it was given first, and that may be deleted by now.
    """
    parent = recorder.interactions.get(recorder.cases[case_id].parent_id)
    return parent is not None and "idempotency-replayed" in parent.response.headers


def _refusals(recorder: Any) -> list[str]:
    """List what was good and refused for no reason that is known."""
    details = []
    for case_id, interaction in recorder.interactions.items():
        case, response = recorder.cases[case_id].value, interaction.response
        if response is None or response.status_code != 422 or not case.meta:
            continue
        if case.meta.generation.mode.is_positive:
            details += [
                f"{case.operation.label} {detail}"
                for detail in response.json()["detail"]
                if not detail["msg"].startswith(_REASONS)
            ]
    return details
