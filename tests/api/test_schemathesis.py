"""Requests made up from the OpenAPI document, good and bad ones: no answer may say otherwise.

A longer run of the same: `SEARCHLAB_FUZZ=300 pytest tests/api/test_schemathesis.py`, with another
seed by `SEARCHLAB_FUZZ_SEED=2`. A failure comes with the curl line that repeats it, once a key
stands where it says `[Filtered]`.
"""

import os
from types import SimpleNamespace

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema

from tests.support.spec_server import corpus

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SEARCHLAB_FUZZ", "3"))
SEED = int(os.environ.get("SEARCHLAB_FUZZ_SEED", "1"))
PHASES = ("examples", "coverage", "fuzzing", "stateful")

# What a made-up identifier names is not there, or there already.
TAKEN = ["2xx", "304", "404", "409"]
# What fits the document and may be refused all the same, by rules that OpenAPI has no words for.
# Each 422 of these is held against REASONS: a refusal for anything else is a failure.
REFUSED = {
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
REASONS = (
    "color_name and color_hex cannot be combined, got ",
    "a query must have a text, an image, a photo_id or a filter, got none of them",
    "a search must bring either the part image or photo_id, got ",
    "source must be one of ",
    "license_type must be one of ",
    "cursor must be the next_cursor of a page of this search, got another text",
    "Idempotency-Key must come with the same request again, got one that was used with another; ",
    "a picture must be complete and undamaged, got ",
)


def configuration(*phases):
    """Configure a run of some phases over all operations."""
    of_phases = {name: {"enabled": name in phases} for name in PHASES}
    of_phases["coverage"]["unexpected-methods"] = ["PUT", "TRACE"]
    operations = [
        {
            "include-operation-id": operation,
            "checks": {"positive_data_acceptance": {"expected-statuses": [*TAKEN, *statuses]}},
        }
        for operation, statuses in REFUSED.items()
    ]
    return SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "phases": of_phases,
            "operations": operations,
            "cache": {"enabled": False},
            "generation": {"max-examples": EXAMPLES, "database": "none"},
        }
    )


def run(known, *phases):
    """Ask the server, and return what was asked and all that is wrong with its answers."""
    key = known.keys["other"]
    schema = schemathesis.openapi.from_url(
        f"{known.base_url}/openapi.json", config=configuration(*phases)
    )
    schema.config.headers = {"x-api-key": key}
    operations, wrong, n_cases = set(), [], 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            wrong.append(str(event))
        if isinstance(event, events.ScenarioFinished):
            n_cases += len(event.recorder.interactions)
            operations |= {node.value.operation.label for node in event.recorder.cases.values()}
            wrong += failures(event.recorder)
            wrong += refusals(event.recorder)
    return SimpleNamespace(operations=operations, wrong=wrong, n_cases=n_cases)


def failures(recorder):
    return [
        f"{node.failure_info.failure}\n{node.failure_info.code_sample}"
        for case_id, nodes in recorder.checks.items()
        for node in nodes
        if node.status == Status.FAILURE
        and not (node.name == "ensure_resource_availability" and is_replayed(recorder, case_id))
    ]


def is_replayed(recorder, case_id):
    """Tell whether a case goes on from an answer that was given again.

    Such an answer names what was made when it was given first, and that may be deleted by now.
    """
    parent = recorder.interactions.get(recorder.cases[case_id].parent_id)
    return parent is not None and "idempotency-replayed" in parent.response.headers


def refusals(recorder):
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
                if not detail["msg"].startswith(REASONS)
            ]
    return details


@pytest.fixture(scope="module")
def known():
    return corpus()


def test_answers_are_those_of_the_document(known):
    done = run(known, "examples", "coverage", "fuzzing")
    assert "\n\n".join(done.wrong) == ""
    assert len(done.operations) == 23


def test_answers_of_requests_that_follow_each_other_are_too(known):
    done = run(known, "stateful")
    assert "\n\n".join(done.wrong) == ""
