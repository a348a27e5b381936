"""The README's section "Serve": each of its lines against a server, with what it promises."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from searchlab.cli import searchlab
from searchlab.photos.photo import photo_id_of
from tests.support.independent_client import check_page, check_photo, check_success
from tests.support.served import serving

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2]
BUNDLED = HERE / "datasets" / "demo"
README = (HERE / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("\n## Serve\n")[2].partition("\n## ")[0]
ADDRESS = "http://127.0.0.1:8000"
PHOTOS_OF_A_SOURCE = 3  # so that a library is there within seconds
TEAL_LANDSCAPE = "gcompris-animals-dolphin"


def block(marker):
    """Return the one block of code below a marker."""
    (code,) = re.findall(rf"{marker}\n+```\w+\n(.*?)```", SECTION, re.DOTALL)
    return code


INSTALL, *COMMANDS = re.search(r"```sh\n(.*?)```", SECTION, re.DOTALL)[1].splitlines()
CREATE = re.match(r"KEY=\$\((.*)\)", COMMANDS[0])[1]
SERVE = COMMANDS[1]
CURL = block("<!-- example: curl -->").splitlines()
CLIENT = block("<!-- example: client -->")
(PHOTO_ID,) = re.findall(r"/photos/([0-9a-f-]{36})/similar", SECTION)


def some_photos(folder):
    """Copy a few bundled photos of every source, and those that the README asks for."""
    records_of = defaultdict(list)
    for line in (BUNDLED / "photos.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        name = record["source_photo_id"]
        is_named = name == TEAL_LANDSCAPE or photo_id_of(record["source"], name) == PHOTO_ID
        if is_named or len(records_of[record["source"]]) < PHOTOS_OF_A_SOURCE:
            records_of[record["source"]].append(record | {"file": Path(record["file"]).name})
            shutil.copy(BUNDLED / record["file"], folder)
    lines = [json.dumps(record) for records in records_of.values() for record in records]
    (folder / "photos.jsonl").write_text("\n".join(lines), encoding="utf-8")


def command(words, **env):
    done = CliRunner().invoke(searchlab, words, env=env, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a library, a picture called my-photo.jpg, and a server with a key."""
    folder = tmp_path_factory.mktemp("readme")
    photos, data = folder / "photos", folder / "library"
    photos.mkdir()
    some_photos(photos)
    command(["index", "--data", str(data), "--model", "mini", str(photos)])
    shutil.copy(photos / "sklearn-china.jpg", folder / "my-photo.jpg")
    create, serve = (shlex.split(line, comments=True) for line in (CREATE, SERVE))
    key = command(create[1:], SEARCHLAB_DATA=str(data))
    options = serve[serve.index("--workers") :]
    with serving(data, *options) as server:
        yield folder, server.base_url, key.strip()


def test_the_commands_of_the_section_are_those_that_were_run():
    create, serve = (shlex.split(line, comments=True) for line in (CREATE, SERVE))
    assert INSTALL == 'pip install ".[serve]"'
    assert len(COMMANDS) == 2
    assert create[:3] == ["searchlab", "keys", "create"]
    assert serve[:4] == ["searchlab", "serve", "--port", ADDRESS.rpartition(":")[2]]
    assert len(CURL) == 6


def by_curl(line, folder, key):
    """Have a shell run a line."""
    words = shlex.split(line)
    assert words[0] == "curl"
    done = subprocess.run(
        ["sh", "-c", f"{line} --silent --show-error"],
        cwd=folder,
        env=os.environ | {"KEY": key, "no_proxy": "*"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # What `check_page` wants to know besides the body, curl shows to nobody.
    return httpx.Response(200, headers={"content-type": "application/json"}, content=done.stdout)


def by_httpx(line, folder, key):
    """Send what a line of curl would."""
    words = iter(shlex.split(line.replace("$KEY", key))[1:])
    headers, files, url = {}, None, None
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-F":
            name, _, file = next(words).partition("=@")
            files = {name: (folder / file).read_bytes()}
        else:
            url = word
    return httpx.request("POST" if files else "GET", url, headers=headers, files=files, timeout=30)


@pytest.fixture(params=["curl", "httpx"])
def ask(request, place):
    if request.param == "curl" and shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    send = {"curl": by_curl, "httpx": by_httpx}[request.param]
    folder, base_url, key = place

    def asking(part):
        (line,) = [each for each in CURL if part in each]
        return send(line.replace(ADDRESS, base_url), folder, key)

    return asking


def test_a_search_by_words(ask):
    page = check_page(ask("q=a+castle"))
    assert len(page["data"]) == 3
    for photo in page["data"]:
        check_photo(photo)
    scores = [photo["relevance_score"] for photo in page["data"]]
    assert scores == sorted(scores, reverse=True)
    assert page["pagination"]["has_more"] is True


def test_a_search_by_filters_alone_with_three_fields(ask):
    page = check_page(ask("color_name=teal"))
    assert page["data"]
    assert {tuple(photo) for photo in page["data"]} == {("photo_id", "urls", "attribution")}


def test_a_search_by_a_picture_of_ones_own(ask):
    page = check_page(ask("image=@my-photo.jpg"))
    assert len(page["data"]) == 20
    assert "sklearn-china" in [photo["source_photo_id"] for photo in page["data"][:3]]


def test_photos_similar_to_one(ask):
    page = check_page(ask("/similar"))
    assert len(page["data"]) == 20
    assert PHOTO_ID not in [photo["photo_id"] for photo in page["data"]]


def test_the_colours(ask):
    colors = check_success(ask("/facets/colors"))["data"]
    assert {"name": "black", "hex": "000000"} in colors


def test_the_usage(ask):
    ask("q=a+castle")
    requests = check_success(ask("/usage"))["data"]["requests"]
    assert requests["limit"] == 5_000
    assert requests["used"] >= 1
    assert requests["used"] + requests["remaining"] == 5_000


def test_pictures_are_where_their_urls_say(ask):
    photo = check_page(ask("q=a+castle"))["data"][0]
    thumb = httpx.get(photo["urls"]["thumb"])
    assert thumb.status_code == 200
    assert thumb.headers["content-type"].startswith("image/")
    assert "immutable" in thumb.headers["cache-control"]


def test_the_client_in_python(place):
    _, base_url, key = place
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(CLIENT.replace(ADDRESS, base_url), "README.md", "exec"), {"KEY": key})
    lines = printed.getvalue().splitlines()
    assert 5 < len(lines) <= 40
    scores = [float(line.split()[0]) for line in lines]
    assert scores == sorted(scores, reverse=True)
    assert all(line.split()[1].startswith(f"{base_url}/media/") for line in lines)
    assert all("Photo by" in line or "(" in line for line in lines)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/docs", "text/html"), ("/docs/errors", "text/html"), ("/openapi.json", "application/json"),
     ("/health", "application/json"), ("/metrics", "text/plain")],
)  # fmt: skip
def test_pages_that_the_section_names_are_there_without_a_key(place, path, kind):
    assert f"`{path}`" in SECTION
    answer = httpx.get(f"{place[1]}{path}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == kind


def test_plans_are_those_of_the_code():
    from searchlab.api.accounts.plans import PLANS

    plans = SECTION.partition("Plans: ")[2]
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", plans)]
    assert numbers == [plan.requests_per_month for plan in PLANS.values()]
    assert re.findall(r"free|starter|growth|scale", plans) == list(PLANS)
