"""A worker whose address space runs out under load answers 503, and goes on when there is more."""

import io
import resource
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from PIL import Image

from tests.support.served import create_key, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits another process"),
]

CLIENTS = 32
# Bodies that wait fit in, what decodes them does not. The server below ends where it gets no memory
# at all, for which a worker that may use less than 1 GiB more refuses to start.
ROOM = 128 * 2**20
SHORT = ("MemoryError", "can't start new thread")


@pytest.fixture(scope="module")
def picture():
    buffer = io.BytesIO()
    Image.effect_noise((3_000, 3_000), 90).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture
def server(five_photos):
    with serving(five_photos, "--no-access-log", "--rate", "1000000", "--burst", "1000000") as it:
        yield it


def ask_at_once(server, key, picture, *, turns):
    """Search by texts and pictures from many clients; returns how many answers had each status."""

    def ask(number):
        headers = {"X-API-Key": key}
        # Certificates, which nothing here needs, would take each client a twentieth of a second.
        with httpx.Client(
            base_url=server.base_url, headers=headers, timeout=60, verify=False
        ) as client:
            path, statuses = "/api/v1/search/photos", []
            for turn in range(turns):
                if number % 2:
                    files = {"image": ("noise.jpg", picture, "image/jpeg")}
                    answer = client.post(path, files=files)
                else:
                    answer = client.get(path, params={"q": f"red {number} {turn}"})
                statuses.append(answer.status_code)
            return statuses

    with ThreadPoolExecutor(CLIENTS) as threads:
        return Counter(status for many in threads.map(ask, range(CLIENTS)) for status in many)


def test_where_address_space_runs_out_answers_are_503_and_all_is_well_with_more(
    server, five_photos, picture
):
    key, workers = create_key(five_photos, plan="scale"), server.workers
    (worker,) = workers
    pages = int(Path(f"/proc/{worker}/statm").read_text().split()[0])
    taken = pages * resource.getpagesize()
    before = resource.prlimit(worker, resource.RLIMIT_AS, (taken + ROOM, resource.RLIM_INFINITY))
    counts = ask_at_once(server, key, picture, turns=4)
    assert set(counts) == {200, 503}, counts
    assert any(reason in server.log for reason in SHORT)
    resource.prlimit(worker, resource.RLIMIT_AS, before)
    assert ask_at_once(server, key, picture, turns=2)[200] > CLIENTS
    assert server.workers == workers
