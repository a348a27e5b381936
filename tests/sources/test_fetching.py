"""Fetching records and pictures from a stand-in on this machine, in whatever way it behaves."""

import hashlib
import io
import json

import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab import cli, create_library, index_photos
from searchlab.config import Config
from searchlab.errors import InputError, QuotaError
from searchlab.library.roots import check_dump
from searchlab.sources import SOURCES
from searchlab.sources.fetch import client as client_module
from searchlab.sources.fetch.addresses import PinnedTransport
from searchlab.sources.fetch.client import PoliteClient, open_client
from searchlab.sources.fetch.downloads import Limits, RetryLaterError, download
from searchlab.sources.fetch.records_and_pictures import _RecordFile, fetch, fetch_pictures
from searchlab.sources.source import Source, pages
from tests.support.stand_in import StandIn
from tests.support.upstream import FLICKR, PEXELS, changed


def picture(color="#e50000", kind="JPEG"):
    out = io.BytesIO()
    Image.new("RGB", (40, 30), color).save(out, kind)
    return out.getvalue()


RED = picture()


@pytest.fixture
def server():
    with StandIn() as stand_in:
        yield stand_in


@pytest.fixture
def client():
    with open_client(PinnedTransport(allowed=["127.0.0.1"], max_seconds=1.0)) as opened:
        yield opened


# -- one picture ------------------------------------------------------------------------------


def test_a_picture_is_kept_by_its_content(server, client, tmp_path):
    server.says(RED)
    server.says(RED)
    digest = hashlib.sha256(RED).hexdigest()
    place = tmp_path / digest[:2] / f"{digest}.jpg"
    assert download(client, f"{server.url}/a", tmp_path) == place
    assert download(client, f"{server.url}/b", tmp_path) == place
    assert place.read_bytes() == RED
    (tmp_path / "any").touch()
    assert place.stat().st_mode == (tmp_path / "any").stat().st_mode  # a server may be another user
    (tmp_path / "any").unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [place]
    assert server.requests[0][1]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "TIFF"])
def test_the_suffix_tells_the_format_whatever_the_address_says(server, client, tmp_path, kind):
    server.says(picture(kind=kind))
    suffix = {"TIFF": "tif"}.get(kind, kind.lower())
    assert download(client, f"{server.url}/a.jpg", tmp_path).suffix == f".{suffix}"


def assert_refused(client, url, folder, match, **limits):
    with pytest.raises(InputError, match=match):
        download(client, url, folder, limits=Limits(**limits))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_picture_that_says_that_it_is_too_large_is_not_read(server, client, tmp_path):
    server.says(RED, Content_Length="1000000000")
    assert_refused(client, server.url, tmp_path, "at most 50,000 bytes", max_bytes=50_000)


def test_a_picture_that_does_not_end_is_cut_off(server, client, tmp_path):
    server.says(server.flood(RED))
    assert_refused(client, server.url, tmp_path, "at most 500,000 bytes", max_bytes=500_000)


def test_a_picture_that_drips_in_is_given_up(server, client, tmp_path):
    server.says(server.drip(RED))
    assert_refused(client, server.url, tmp_path, r"within 0\.3 s", max_seconds=0.3)


@pytest.mark.slow
def test_the_transport_itself_gives_up_a_request_that_drips(server, client, tmp_path):
    server.says(server.drip(RED, every=0.02))
    assert_refused(client, server.url, tmp_path, "downloaded: ReadTimeout", max_seconds=60)


def test_an_answer_that_breaks_off_leaves_nothing(server, client, tmp_path):
    server.says(RED, Content_Length=str(len(RED) + 10), Connection="close")
    assert_refused(client, server.url, tmp_path, "cannot be downloaded")


@pytest.mark.parametrize("body", [b"<html>not found</html>", b"", b"\x89PN", b"MZ\x90\0"])
def test_what_is_no_picture_is_refused(server, client, tmp_path, body):
    server.says(body)
    assert_refused(client, server.url, tmp_path, "must lead to a picture")


def test_what_is_compressed_on_the_way_is_refused(server, client, tmp_path):
    server.says(RED, Content_Encoding="gzip")
    assert_refused(client, server.url, tmp_path, "compressed on the way")


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_picture_that_is_not_there_is_told(server, client, tmp_path, status):
    server.says(b"", status=status)
    assert_refused(client, server.url, tmp_path, f"answered {status}")


def test_redirects_are_followed_as_far_as_the_limit(server, client, tmp_path):
    server.says(b"", status=302, Location="/next")
    server.says(b"", status=307, Location=f"{server.url}/last")
    server.says(RED)
    assert download(client, f"{server.url}/x", tmp_path).is_file()
    for _ in range(4):
        server.says(b"", status=302, Location="/again")
    with pytest.raises(InputError, match="at most 3 redirects"):
        download(client, server.url, tmp_path, limits=Limits(max_redirects=3))


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/secret",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/x",
        "file:///etc/passwd",
        "gopher://127.0.0.1/x",
        "javascript:alert(1)",
        "",
        "http://[",
    ],
)
def test_a_redirect_into_a_private_network_or_out_of_the_web_is_refused(
    server, client, tmp_path, target
):
    server.says(b"", status=302, Location=target)
    if not target:
        server.says(b"", status=404)
    assert_refused(client, f"{server.url}/x", tmp_path, ".")
    assert len(server.requests) <= 2


def test_a_name_that_becomes_private_at_the_second_look_is_refused(server, tmp_path):
    looks = iter([["127.0.0.1"], ["10.0.0.5"]])
    transport = PinnedTransport(allowed=["127.0.0.1"], resolve=lambda *_: next(looks))
    server.says(b"", status=302, Location="http://rebinds.example/x")
    with open_client(transport) as client:
        port = server.url.rpartition(":")[2]
        assert_refused(client, f"http://rebinds.example:{port}/x", tmp_path, r"10\.0\.0\.5")


def test_a_server_that_wants_fewer_requests_is_told_apart(server, client, tmp_path):
    server.says(b"", status=429, Retry_After="5")
    with pytest.raises(RetryLaterError) as caught:
        download(client, server.url, tmp_path)
    assert caught.value.response.headers["retry-after"] == "5"


# -- a query ----------------------------------------------------------------------------------


@pytest.fixture
def boats(server, monkeypatch):
    """A library of Pexels' records on the stand-in, two pages with two photos each."""

    def search(query):
        return pages(
            f"{server.url}/search", {"query": query}, lambda answer, n: bool(answer.get("more"))
        )

    source = Source(
        name="pexels",
        title="Pexels",
        home=server.url,
        record=SOURCES["pexels"].record,
        records_at=("photos",),
        record_fields=(),
        search=search,
        pause_s=0.0,
    )
    monkeypatch.setitem(SOURCES, "pexels", source)

    def photo(number):
        server.says(picture(f"#0000{number:02x}"), path=f"/{number}.jpg")
        return changed(PEXELS, id=number, src={"large": f"{server.url}/{number}.jpg"})

    server.says({"photos": [photo(1), photo(2)], "more": True})
    server.says({"photos": [photo(3), {"id": 4}]})
    return source


@pytest.fixture
def make_api(client, tmp_path):
    def make(source, **changes):
        return PoliteClient(source, client, tmp_path / "out/responses", **changes)

    return make


def test_a_query_brings_records_and_pictures_and_reports_what_is_no_record(
    boats, make_api, client, tmp_path
):
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    assert (report.records, report.new, report.fetched, report.there) == (3, 3, 3, 0)
    assert [(one.where, one.reason) for one in report.problems] == [
        ("pexels, page 2, record 2", "a record of pexels must link to its picture, got no link")
    ]
    lines = [json.loads(line) for line in report.dump.read_text().splitlines()]
    assert [line["id"] for line in lines] == [1, 2, 3]


def test_pages_bound_what_is_asked_for(boats, make_api, client, tmp_path, server):
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=1)
    assert report.records == 2
    assert len([path for path, _ in server.requests if path.startswith("/search")]) == 1


def test_fetching_again_asks_nothing_again(boats, make_api, client, tmp_path, server):
    fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    n_requests = len(server.requests)
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    assert (report.new, report.fetched, report.there) == (0, 0, 3)
    assert len(server.requests) == n_requests


def test_a_record_that_is_again_what_it_once_was_is_the_last_one_of_its_photo(tmp_path):
    path, source = tmp_path / "pexels.jsonl", SOURCES["pexels"]
    a = json.loads(json.dumps(PEXELS))
    b = a | {"photographer": "Somebody else"}
    for _ in range(2):  # and again where the file is read anew
        lines = _RecordFile(path, source)
        assert [lines.add(entry) for entry in (a, b, b, a)][1:] == [True, False, True]
        assert not lines.add(a)
    assert json.loads(path.read_text().splitlines()[-1]) == a
    assert [lines.add("no record") for _ in range(2)] == [True, False]


def test_an_interrupted_walk_goes_on_where_it_stopped(boats, make_api, client, tmp_path, server):
    server.script.insert(1, (429, {"Retry-After": "7200"}, b""))
    with pytest.raises(QuotaError):
        fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    path = tmp_path / "out/pexels.jsonl"
    path.write_bytes(path.read_bytes()[:-20])  # as if killed while it wrote
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    assert (report.records, report.fetched, report.there) == (3, 1, 2)
    paths = [path for path, _ in server.requests]
    assert len(paths) == len(set(paths)) + 1  # the page that was refused


def test_a_picture_that_cannot_be_had_is_reported_and_stops_nothing(
    boats, make_api, client, tmp_path, server
):
    server.says(b"", status=404, path="/2.jpg")
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    assert (report.records, report.fetched) == (3, 2)
    assert "answered 404" in report.problems[0].reason


def test_pictures_that_may_not_be_shown_are_not_fetched(make_api, client, tmp_path, server):
    dump = tmp_path / "flickr.jsonl"
    server.says(RED, path="/ok.jpg")
    lines = [
        changed(FLICKR, url_m=f"{server.url}/ok.jpg"),
        changed(FLICKR, id="2", license="0", url_m=f"{server.url}/no.jpg"),
    ]
    dump.write_text("\n".join(map(json.dumps, lines)))
    api = make_api(SOURCES["flickr"])
    report = fetch_pictures(api, client, dump, tmp_path)
    assert (report.records, report.fetched) == (2, 1)
    assert "all-rights-reserved" in report.problems[0].reason
    assert [path for path, _ in server.requests] == ["/ok.jpg"]


@pytest.mark.slow
def test_what_was_fetched_is_indexed_without_a_network(boats, make_api, client, tmp_path, server):
    report = fetch(make_api(boats), client, "boats", tmp_path / "out", pages=5)
    n_requests = len(server.requests)
    library = create_library(tmp_path / "library")
    roots = [check_dump(report.dump, source="pexels")]
    indexed = index_photos(library, roots, config=Config(model="palette"))
    assert (indexed.n_photos, indexed.problems) == (3, [])
    assert len(server.requests) == n_requests
    table = library.engine.table
    assert {table.photo(row).urls["regular"] for row in range(3)} == {
        f"{server.url}/{number}.jpg" for number in (1, 2, 3)
    }


@pytest.mark.parametrize(
    ("changes", "match"),
    [({"pages": 0}, "pages"), ({"size": "huge"}, "size"), ({"query": "  "}, "query")],
)
def test_arguments_are_checked(boats, make_api, client, tmp_path, changes, match):
    query = changes.pop("query", "boats")
    with pytest.raises(InputError, match=f"{match} must"):
        fetch(make_api(boats), client, query, tmp_path / "out", **changes)


# -- the command ------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch):
    transport = PinnedTransport(allowed=["127.0.0.1"])
    monkeypatch.setattr(client_module, "PinnedTransport", lambda: transport)

    def call(*arguments):
        return CliRunner().invoke(cli.searchlab, [str(one) for one in arguments])

    return call


def test_the_command_fetches_and_says_what_to_do_next(boats, run, tmp_path):
    done = run("fetch", "pexels", "--query", "boats", "--pages", 2, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "3 records, 3 new; pictures: 3 fetched, 0 there already, 1 left out" in done.stdout
    assert f"searchlab index --source pexels {tmp_path / 'out/pexels.jsonl'}" in done.stdout


def test_the_command_brings_the_pictures_of_a_dump(boats, run, tmp_path, server):
    dump = tmp_path / "mine.jsonl"
    dump.write_text(json.dumps(changed(PEXELS, src={"large": f"{server.url}/1.jpg"})))
    done = run("fetch", "pexels", "--dump", dump)
    assert "1 record, 0 new; pictures: 1 fetched" in done.stdout
    assert (tmp_path / "pictures.jsonl").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere", "--query", "x"],
        ["pexels"],
        ["pexels", "--query", "x", "--dump", "y.jsonl"],
        ["pexels", "--query", "x", "--allow", "everything"],
        ["unsplash", "--query", "x"],
    ],
)
def test_the_command_refuses_what_it_cannot_do(run, arguments, tmp_path, monkeypatch):
    monkeypatch.delenv("UNSPLASH_ACCESS_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert isinstance(run("fetch", *arguments).exception, InputError)
