"""Where the authorization server under test is, and what a token of it stands for."""

BASE = "https://photos.test"
RESOURCE = f"{BASE}/mcp"
# Clients say in a header which address they come from, as behind a proxy.
SETTINGS = {"base_url": BASE, "trusted_proxy_header": "x-sender", "trusted_proxies": ("127.0.0.1",)}


def grant_of(server, token, resource=RESOURCE):
    return server.app.services.tokens.resolve(token, resource)
