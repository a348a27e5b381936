"""Requests made up from the OpenAPI document, good and bad ones: no answer may say otherwise.

A longer run of the same: `SEARCHLAB_FUZZ=300 pytest tests/api/test_schemathesis.py`, with another
seed by `SEARCHLAB_FUZZ_SEED=2`, or `python -m benchmarks.soak.soak_schemathesis`. A failure comes
with the curl line that repeats it, once a key stands where it says `[Filtered]`.
"""

import os

import pytest

from benchmarks.soak.made_requests import make_requests
from tests.support.spec_server import corpus

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SEARCHLAB_FUZZ", "3"))
SEED = int(os.environ.get("SEARCHLAB_FUZZ_SEED", "1"))


@pytest.fixture(scope="module")
def known():
    return corpus()


def run(known, *phases):
    key = known.keys["other"]
    return make_requests(known.base_url, key, *phases, examples=EXAMPLES, seed=SEED)


def test_answers_are_those_of_the_document(known):
    done = run(known, "examples", "coverage", "fuzzing")
    assert "\n\n".join(done.wrong) == ""
    assert len(done.operations) == 24


def test_answers_of_requests_that_follow_each_other_are_too(known):
    done = run(known, "stateful")
    assert "\n\n".join(done.wrong) == ""
