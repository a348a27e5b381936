"""What holds for every page: its policy, its failures, who may send forms, and its files."""

import re

import pytest

from searchlab.api.web.failures import is_page
from searchlab.api.web.templates import TEMPLATES
from tests.support.apis import api
from tests.support.pages import tiny_library


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_library(tmp_path_factory.mktemp("frame"))


@pytest.fixture(scope="module")
def served(folder):
    with api(folder) as server:
        yield server


def test_a_page_runs_nothing_but_the_scripts_of_its_own_server(served):
    answer = served.anonymous.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policies = answer.headers.get_list("content-security-policy")
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policies[0]
    assert "frame-ancestors 'none'" in policies[0]
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "geolocation=()" in answer.headers["permissions-policy"]
    assert re.findall(r"<script>|<style|\sstyle=|\son\w+=\"|javascript:", answer.text) == []


def test_whoever_is_not_signed_in_reads_how_to_get_in(served):
    page = served.anonymous.get("/").text
    # This server is not where the command would look for one.
    assert "searchlab accounts link --account NAME --base-url http://photos.test<" in page
    assert "searchlab open" in page


def test_files_keep_for_ever_under_an_address_of_their_version(served):
    page = served.anonymous.get("/").text
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(addresses) >= 3
    for address in addresses:
        answer = served.anonymous.get(address)
        assert answer.status_code == 200
        assert "max-age=31536000" in answer.headers["cache-control"]
        assert "immutable" in answer.headers["cache-control"]
        tag = {"if-none-match": answer.headers["etag"]}
        again = served.anonymous.get(address, headers=tag)
        assert (again.status_code, again.content) == (304, b"")
        assert served.anonymous.get(f"{address}x", headers=tag).status_code == 404


@pytest.mark.parametrize("path", ["/nothing", "/photos/x/y/z", "/static/0/base.css"])
def test_a_person_gets_a_page_where_there_is_none(served, path):
    answer = served.anonymous.get(path, headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert len(answer.headers.get_list("content-security-policy")) == 1
    assert "There is no such page" in answer.text
    assert answer.headers["x-request-id"] in answer.text


def test_a_program_gets_json_where_there_is_neither_a_page_nor_an_operation(served):
    answer = served.anonymous.get("/API/v1/usage", headers={"accept": "*/*"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/media/x", "/openapi.json/x"])
def test_a_program_gets_json_whatever_it_accepts(served, path):
    answer = served.client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "NOT_FOUND"


def test_a_method_that_a_page_lacks_is_said_on_a_page(served):
    answer = served.anonymous.put("/", headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, "GET" in answer.headers["allow"]) == (405, True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_a_request_that_is_refused_before_the_routes_gets_a_page_too(served):
    answer = served.anonymous.get("/?q=" + "x" * 40_000)
    assert answer.status_code == 414
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert len(answer.headers.get_list("content-security-policy")) == 1


def test_other_origins_may_read_the_api_and_never_a_page(folder):
    with api(folder, cors_origins=("*",)) as server:
        headers = {"origin": "https://elsewhere.example"}
        page = server.anonymous.get("/", headers=headers)
        assert "access-control-allow-origin" not in page.headers
        answer = server.client.get("/api/v1/usage", headers=headers)
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.slow
def test_an_account_has_one_rate_for_its_pages(folder):
    with api(folder, visitors="guests", rate_per_second=0.01, rate_burst=2) as server:
        answers = [server.anonymous.get("/") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert 0 < int(answers[2].headers["retry-after"]) <= 100
        assert "<time datetime=" in answers[2].text


@pytest.mark.parametrize(
    ("path", "is_for_people"),
    [("/", True), ("/photos/api", True), ("/api/v1", False), ("//api/v1", False), ("/mcp", False)],
)
def test_the_path_decides_who_is_spoken_to(path, is_for_people):
    assert is_page(path) is is_for_people


@pytest.mark.parametrize(
    ("name", "turns"),
    [("next", True), ("back", True), ("out", True), ("close", False), ("download", False)],
)
def test_arrows_turn_where_the_text_runs_from_right_to_left(name, turns):
    template = TEMPLATES.from_string('{% import "parts.html" as ui %}{{ ui.icon(name) }}')
    assert ('class="icon turns"' in template.render(name=name)) is turns
