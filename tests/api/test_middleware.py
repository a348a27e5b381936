"""What holds for every request, whatever it asks: key first, headers, limits, clean failures."""

import asyncio
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from searchlab import errors
from searchlab.api.accounts import tables
from searchlab.api.accounts.accounts import PLAN_NAMES, revoke_key
from searchlab.api.accounts.plans import PLANS
from searchlab.api.http.context import RequestContext, attach
from searchlab.api.http.middleware import require_key
from searchlab.api.routes import search
from searchlab.api.settings import Settings
from searchlab.api.wire.errors import CODES, KINDS, HttpProblem, Invalid, problem_of
from tests.support.apis import api

SEARCH = "/api/v1/search/photos"


@pytest.fixture(scope="module")
def served(five_photos):
    with api(five_photos) as server:
        yield server


def errors_below(kind):
    return [kind, *(c for below in kind.__subclasses__() for c in errors_below(below))]


@pytest.mark.parametrize("kind", errors_below(errors.SearchlabError))
def test_every_exception_of_the_library_has_a_code(kind):
    assert any(above in CODES for above in kind.__mro__)
    code = next(CODES[above] for above in kind.__mro__ if above in CODES)
    assert code == "" or code in KINDS


def test_what_is_our_fault_is_not_told():
    problem = problem_of(errors.DataError("/secret/path is damaged"))
    assert problem.kind.status == 500
    assert "secret" not in problem.message


def test_a_failed_check_of_the_library_says_where():
    problem = problem_of(errors.InputError("after_date must be a day, got 'x'"))
    assert isinstance(problem, Invalid)
    assert problem.details[0].loc == ("query", "after_date")
    problem = problem_of(errors.InputError("text must be Unicode"))
    assert problem.details[0].loc == ("query", "q")
    problem = problem_of(errors.InputError("a query must have a text"))
    assert problem.details[0].loc == ("query",)


@pytest.mark.parametrize("key", [None, "", "nonsense", "sl_" + "x" * 43, "é", "a\tb", "x" * 9000])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", SEARCH),
        ("GET", f"{SEARCH}?per_page=nonsense"),
        ("POST", SEARCH),
        ("GET", "/api/v1/nothing"),
        ("PUT", SEARCH),
        ("GET", "/api/"),
        ("GET", "/api/v1/collections/1"),
        ("DELETE", "/api/v1/collections/x"),
    ],
)
def test_without_a_key_in_force_nothing_else_is_said(served, method, path, key):
    headers = {} if key is None else {"x-api-key": key.encode("latin-1")}
    answer = served.anonymous.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "UNAUTHORIZED"
    assert answer.json()["data"] is None
    assert answer.json()["success"] is False


def test_a_key_in_the_address_does_not_count(served):
    answer = served.anonymous.get(SEARCH, params={"q": "red", "x-api-key": served.key})
    assert answer.status_code == 401


def test_two_keys_at_once_do_not_count(served):
    answer = served.anonymous.get(
        SEARCH, params={"q": "red"}, headers=[("x-api-key", served.key), ("x-api-key", "other")]
    )
    assert answer.status_code == 401


def test_a_revoked_key_is_refused_at_once(served):
    client = served.make_client(account="leaving", name="old")
    assert client.get(SEARCH, params={"q": "red"}).status_code == 200
    revoke_key(served.database, client.headers["x-api-key"][:9])
    assert client.get(SEARCH, params={"q": "red"}).status_code == 401


@pytest.mark.parametrize("path", [SEARCH + "?q=red", "/api/v1/usage", "/api/v1/nothing"])
def test_every_answer_has_an_id_and_the_limits(served, path):
    answer = served.client.get(path)
    assert answer.json()["meta"]["request_id"] == answer.headers["x-request-id"]
    assert str(uuid.UUID(answer.headers["x-request-id"])) == answer.headers["x-request-id"]
    assert answer.json()["meta"]["took_ms"] > 0
    assert '"month";q=1000000' in answer.headers["ratelimit-policy"]
    assert '"month";r=' in answer.headers["ratelimit"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_search_says_what_answered_it_and_how_long_its_parts_took(served):
    answer = served.client.get(SEARCH, params={"q": "red", "orientation": "landscape"})
    assert answer.headers["x-searchlab-snapshot"].startswith("000001-")
    assert len(answer.headers["x-searchlab-config"]) == 12
    assert answer.headers["x-searchlab-plan"].startswith("exact; candidates=5; selectivity=1.0")
    parts = [part.split(";")[0].strip() for part in answer.headers["server-timing"].split(",")]
    assert parts == ["filter", "embed", "search", "serialise", "count", "total"]


def test_unknown_paths_and_methods_are_clean(served):
    answer = served.client.get("/api/v1/nothing")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
    answer = served.client.put("/api/v1/usage")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer.headers["allow"]
    for accepted, sent in (("text/html,*/*;q=0.8", "text/html"), ("*/*", "application/json")):
        answer = served.anonymous.get("/nothing", headers={"accept": accepted})
        assert answer.headers["content-type"].startswith(sent)


def test_headers_that_are_too_long_are_clean(served):
    answer = served.client.get("/api/v1/usage", headers={"x-long": "x" * 17_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (431, "HEADERS_TOO_LARGE")
    answer = served.client.get(SEARCH, params={"q": "x" * 33_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (414, "URI_TOO_LONG")


@pytest.mark.slow
def test_a_key_that_asks_too_fast_is_told_to_wait(five_photos):
    with api(five_photos, rate_per_second=0.1, rate_burst=3) as served:
        statuses = [served.client.get("/api/v1/usage").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        answer = served.client.get(SEARCH, params={"q": "red"})
        assert answer.json()["error"]["code"] == "RATE_LIMITED"
        assert 1 <= int(answer.headers["retry-after"]) <= 10
        assert '"burst";r=0' in answer.headers["ratelimit"]
        other = served.make_client(account="patient")
        assert other.get("/api/v1/usage").status_code == 200


def test_the_month_s_searches_are_counted_and_then_refused(five_photos, monkeypatch):
    few = PLANS["free"].__class__(name="free", requests_per_month=2, similar_paged=False)
    monkeypatch.setitem(PLANS, "free", few)
    with api(five_photos) as served:
        client = served.make_client(account="frugal", plan="free")
        assert client.get(SEARCH, params={"per_page": "x"}).status_code == 422
        assert (
            client.get(SEARCH, params={"q": "red"})
            .headers["ratelimit"]
            .split(",")[1]
            .startswith(' "month";r=1')
        )
        assert client.get(SEARCH, params={"q": "red"}).status_code == 200
        answer = client.get(SEARCH, params={"q": "red"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "QUOTA_EXCEEDED")
        assert int(answer.headers["retry-after"]) >= 1
        assert '"month";r=0' in answer.headers["ratelimit"]
        used = client.get("/api/v1/usage").json()["data"]["requests"]
        assert used == {"used": 2, "limit": 2, "remaining": 0}


def test_pages_of_other_origins_are_let_in_by_configuration(five_photos):
    asks = {"origin": "https://a.example", "access-control-request-method": "GET"}
    with api(five_photos, cors_origins=("https://a.example",)) as served:
        answer = served.anonymous.options(SEARCH, headers=asks)
        assert answer.status_code == 204
        allowed = answer.headers.get_list("access-control-allow-origin")
        assert allowed == ["https://a.example"]
        assert "x-api-key" in answer.headers["access-control-allow-headers"]
        answer = served.client.get("/api/v1/usage", headers={"origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        answer = served.client.get("/api/v1/usage", headers={"origin": "https://b.example"})
        assert "access-control-allow-origin" not in answer.headers
        answer = served.anonymous.get("/api/v1/usage", headers={"origin": "https://a.example"})
        assert answer.status_code == 401
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        puts = asks | {"access-control-request-method": "PUT"}
        answer = served.anonymous.options("/mcp/pictures/x", headers=puts)
        assert "PUT" in answer.headers["access-control-allow-methods"]


@pytest.mark.parametrize("allowed", [(), ("https://a.example",), ("*",)])
def test_what_is_well_known_is_for_pages_of_every_origin(five_photos, allowed):
    path = "/.well-known/oauth-protected-resource"
    asks = {"origin": "https://a.example", "access-control-request-method": "GET"}
    with api(five_photos, base_url="https://photos.test", cors_origins=allowed) as served:
        for end, status in (("/mcp", 200), ("/other", 404)):
            for sent in ({"origin": "https://a.example"}, {"origin": "https://b.example"}, {}):
                answer = served.anonymous.get(path + end, headers=sent)
                assert answer.status_code == status
                assert answer.headers.get_list("access-control-allow-origin") == ["*"]
        preflight = served.anonymous.options(path, headers=asks)
        assert preflight.status_code == 204
        assert preflight.headers.get_list("access-control-allow-origin") == ["*"]
        assert "GET" in preflight.headers["access-control-allow-methods"]


def test_no_origin_is_let_in_unless_told(served):
    asks = {"origin": "https://a.example", "access-control-request-method": "GET"}
    answer = served.anonymous.options(SEARCH, headers=asks)
    assert "access-control-allow-origin" not in answer.headers


def test_links_start_with_the_address_that_was_asked(served):
    answer = served.client.get(SEARCH, params={"q": "red"}, headers={"host": "a.example:81"})
    assert answer.json()["data"][0]["image_url"].startswith("http://a.example:81/media/")


def test_links_start_with_the_address_that_is_configured(five_photos):
    with api(five_photos, base_url="https://photos.example.org") as served:
        photo = served.client.get(SEARCH, params={"q": "red"}).json()["data"][0]
        assert photo["urls"]["thumb"].startswith("https://photos.example.org/media/")
        assert photo["image_url"].startswith("https://photos.example.org/media/")


def test_a_failure_of_ours_is_a_clean_500_without_its_reason(served, monkeypatch, capfd):
    services = served.app.services

    def fail(*_):
        msg = "secret detail"
        raise RuntimeError(msg)

    monkeypatch.setattr(services.live_library.current.photos, "_parts", fail)
    answer = served.client.get(SEARCH, params={"q": "red"})
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (SEARCH, "GET, HEAD, OPTIONS, POST"),
        ("/api/v1/collections/1", "DELETE, GET, HEAD, OPTIONS"),
        ("/api/v1/usage", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_name_every_method_of_a_path(served, path, allowed):
    answer = served.client.options(path)
    assert (answer.status_code, answer.headers["allow"]) == (204, allowed)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((SEARCH + "?q=red", 200), ("/api/v1/usage", 200), ("/", 200), ("/ready", 200)),
        *(("/health", 200), ("/api/v1/nothing", 404), (SEARCH + "?per_page=x", 422)),
    ],
)
def test_head_is_the_head_of_what_get_answers(served, path, status):
    whole, head = served.client.get(path), served.client.head(path)
    assert (whole.status_code, head.status_code, head.content) == (status, status, b"")
    changing = {"x-request-id", "server-timing", "date", "content-security-policy"}
    changing.add("content-length")  # of a number of requests, and of an id
    counted = {name for name in whole.headers if "ratelimit" in name or "quota" in name}
    told = [
        {name: value for name, value in answer.headers.items() if name not in changing | counted}
        for answer in (whole, head)
    ]
    assert told[0] == told[1]
    assert abs(int(head.headers["content-length"]) - len(whole.content)) < 5


def test_head_is_counted_and_logged_as_what_it_is(served):
    before = served.client.get("/api/v1/usage").json()
    served.client.head(SEARCH, params={"q": "red"})
    after = served.client.get("/api/v1/usage").json()
    assert after != before
    metrics = served.client.get("/metrics").text
    assert f'route="{SEARCH}"' in next(line for line in metrics.splitlines() if "HEAD" in line)
    key_less = served.anonymous.head("/api/v1/usage")
    assert (key_less.status_code, key_less.content) == (401, b"")
    # What cannot be asked by GET cannot be asked by HEAD.
    assert served.client.head("/sign-out").status_code == 405


def test_an_account_of_a_plan_that_is_none_is_told_so(served):
    client = served.make_client(account="enterprising")
    with served.database.writing() as connection:
        connection.execute(
            tables.accounts.update()
            .where(tables.accounts.c.name == "enterprising")
            .values(plan="enterprise")
        )
    client = served.make_client(account="enterprising", plan=None)
    answer = client.get("/api/v1/facets/colors")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert answer.headers["x-request-id"] == answer.json()["meta"]["request_id"]


def test_the_plans_are_those_that_keys_are_made_for():
    assert tuple(PLANS) == PLAN_NAMES


def test_a_key_that_is_asked_for_a_second_time_is_refused_the_same_way(served):
    scope = {"state": {}, "route_handler": search.search_by_text}
    request = SimpleNamespace(scope=scope, app=SimpleNamespace(state=SimpleNamespace()))
    request.app.state.services = served.app.services
    attach(request.scope, RequestContext())
    with pytest.raises(HttpProblem) as refused:
        asyncio.run(require_key(request))
    assert refused.value.headers == {"WWW-Authenticate": 'ApiKey header="x-api-key"'}


@pytest.mark.parametrize(
    ("origin", "normalized"),
    [
        ("https://a.example/", "https://a.example"),
        ("HTTPS://A.Example", "https://a.example"),
        ("https://a.example:443", "https://a.example"),
        ("http://a.example:8080/", "http://a.example:8080"),
        ("*", "*"),
    ],
)
def test_origins_are_kept_as_browsers_write_them(origin, normalized):
    assert Settings(data=Path(), cors_origins=(origin,)).cors_origins == (normalized,)


@pytest.mark.parametrize("origin", ["https://a.example/x", "a.example", "https://a.example:x"])
def test_an_origin_that_no_browser_would_send_is_refused(origin):
    with pytest.raises(errors.InputError, match="cors_origins must be"):
        Settings(data=Path(), cors_origins=(origin,))


def test_the_address_of_links_may_end_with_a_slash_and_have_a_path():
    assert Settings(data=Path(), base_url="http://h/").base_url == "http://h"
    settings = Settings(data=Path(), base_url="https://h.example:81/photos/")
    assert settings.base_url == "https://h.example:81/photos"
    with pytest.raises(errors.InputError, match="base_url must be like"):
        Settings(data=Path(), base_url="https://h/?q=1")


def test_a_plan_of_one_page_of_similar_photos_takes_any_size_of_it(served):
    client = served.make_client(account="small", plan="free")
    photo_id = client.get(SEARCH, params={"q": "red"}).json()["data"][0]["photo_id"]
    for params, n_photos in (({}, 4), ({"per_page": 100}, 4), ({"per_page": 2}, 2)):
        body = client.get(f"/api/v1/photos/{photo_id}/similar", params=params).json()
        assert len(body["data"]) == n_photos
        assert body["pagination"]["next_cursor"] is None


def test_what_serves_is_not_told_in_detail(served):
    assert served.anonymous.get("/docs/errors").headers["server"] == "searchlab"
