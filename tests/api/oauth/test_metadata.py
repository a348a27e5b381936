"""What clients read first, and under which name and from where they ask."""

import pytest
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from tests.support.apis import api
from tests.support.oauth_clients import REDIRECT, Pretender
from tests.support.oauth_server import BASE, RESOURCE, grant_of


@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/"])
def test_the_tool_server_says_who_issues_tokens_for_it(server, path):
    answer = server.anonymous.get(
        f"/.well-known/oauth-protected-resource{path}", headers={"host": "photos.test"}
    )
    metadata = ProtectedResourceMetadata.model_validate_json(answer.content)
    assert str(metadata.resource) == RESOURCE
    assert [str(each).rstrip("/") for each in metadata.authorization_servers] == [BASE]
    assert metadata.scopes_supported == ["search", "collections:read", "collections:write"]
    assert answer.headers["access-control-allow-origin"] == "*"


def test_the_issuer_says_all_that_clients_choose_by(server):
    answer = server.anonymous.get(
        "/.well-known/oauth-authorization-server", headers={"host": "photos.test"}
    )
    metadata = OAuthMetadata.model_validate_json(answer.content)
    assert answer.json()["issuer"] == BASE
    assert str(metadata.authorization_endpoint) == f"{BASE}/connect"
    assert metadata.token_endpoint_auth_methods_supported == ["none"]
    assert metadata.code_challenge_methods_supported == ["S256"]
    assert metadata.client_id_metadata_document_supported
    assert metadata.authorization_response_iss_parameter_supported


@pytest.mark.parametrize("kind", ["protected-resource", "authorization-server"])
def test_metadata_of_another_address_are_not_here(server, kind):
    answer = server.anonymous.get(
        f"/.well-known/oauth-{kind}/other", headers={"host": "photos.test"}
    )
    assert answer.status_code == 404


def test_the_tool_server_may_have_an_address_of_its_own(five_photos):
    with api(five_photos, base_url=BASE, mcp_url="https://tools.test/x/") as server:
        answer = server.anonymous.get(
            "/.well-known/oauth-protected-resource/x/mcp", headers={"host": "tools.test"}
        ).json()
    assert answer["resource"] == "https://tools.test/x/mcp"
    assert answer["authorization_servers"] == [BASE]


@pytest.mark.parametrize("host", ["evil.test", "photos.test.evil.test", "192.168.0.7:8000"])
def test_another_name_than_the_servers_is_refused(server, make, host):
    app = make()
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
    ):
        assert app.program.get(path, headers={"host": host}).status_code == 403
    app.program.headers["host"] = host
    for answer in (app.redeem("x"), app.register([REDIRECT]), app.post("revoke", {"token": "x"})):
        assert (answer.status_code, answer.json()["error"]) == (403, "access_denied")


def test_a_page_of_another_site_gets_no_tokens(make):
    app = make()
    app.program.headers["origin"] = "https://evil.test"
    assert app.redeem("x").status_code == 403
    app.program.headers["origin"] = BASE
    assert app.redeem("x").json()["error"] == "invalid_grant"


def test_a_page_of_an_allowed_origin_may_be_a_client(five_photos):
    origin = {"origin": "https://inspector.test"}
    with api(five_photos, base_url=BASE, cors_origins=("https://inspector.test",)) as server:
        program = server.make_browser()
        asked = {**origin, "access-control-request-method": "POST"}
        preflight = program.options("/oauth/token", headers=asked)
        assert preflight.status_code == 204
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        assert program.options("/mcp", headers=asked).status_code == 204
        answer = program.post("/oauth/token", data={"grant_type": "x"}, headers=origin)
        assert answer.json()["error"] == "unsupported_grant_type"
        assert answer.headers["access-control-allow-origin"] == "https://inspector.test"
        assert "access-control-allow-credentials" not in answer.headers
        page = program.get("/connect", headers=origin)
        assert "access-control-allow-origin" not in page.headers


@pytest.mark.slow
def test_over_plain_http_nobody_is_let_in(five_photos):
    with api(five_photos, host="photos.test") as server:
        browser = server.make_browser(base_url="http://photos.test")
        assert browser.get("/connect").status_code == 403
        assert browser.get("/.well-known/oauth-protected-resource").status_code == 403
        local = server.make_browser("ann", base_url="http://127.0.0.1:8000")
        app = Pretender(local, local)
        tokens = app.connect()
        resource = "http://127.0.0.1:8000/mcp"
        assert grant_of(server, tokens["access_token"], resource) is not None
        assert grant_of(server, tokens["access_token"], "http://localhost:8000/mcp") is None
