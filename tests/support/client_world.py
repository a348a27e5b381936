"""Both clients on a server that answers with what it was given, and every operation of theirs.

A test file takes the fixtures it needs by their names, as in `connect = client_world.connect`.
"""

import asyncio

import httpx
import pytest

from searchlab.api.wire.schema import Urls
from searchlab.client import AsyncClient, Client

BASE = "http://photos.example.org"
KEY = "sl_0123456789"
META = {"request_id": "11111111-1111-4111-8111-111111111111", "took_ms": 1.5}
PHOTO = {
    "photo_id": "p1",
    "source_photo_id": "s1",
    "image_url": "https://example.org/1",
    "urls": {size: f"https://example.org/1/{size}" for size in Urls.__struct_fields__},
    "source_image_url": "https://example.org/page/1",
    "width": 30,
    "height": 20,
    "orientation": "landscape",
    "blur_hash": "L00000fQfQfQfQfQfQfQfQfQfQfQ",
    "color_name": "red",
    "color_hex": "#e50000",
    "source": "unsplash",
    "license_type": "cc0",
    "photographer_username": "ann",
    "photographer_full_name": "Ann Lee",
    "photographer_url": "https://example.org/ann",
    "source_description": "A dune",
    "description": "A red photo.",
    "alt_description": "red dune",
    "relevance_score": 0.75,
    "uploaded_on": "2024-02-29",
    "attribution": {"html": "<b>Ann</b>", "plain": "Ann Lee"},
}
COLLECTION = {
    "id": 7,
    "name": "Dunes",
    "description": None,
    "is_public": False,
    "cover_photo_id": "",
    "created_at": "2026-01-02T03:04:05+00:00",
    "updated_at": "2026-01-02T03:04:05+00:00",
    "photos_count": 0,
}
ENTRY = {
    "id": 3,
    "photo_id": "p1",
    "photo_thumbnail_url": "https://example.org/1/thumb",
    "photo_source": "unsplash",
    "photo_photographer": "Ann Lee",
    "added_at": "2026-01-02T03:04:05+00:00",
}
BY_KEY = {
    "key_id": "k1",
    "name": "laptop",
    "created_at": "2026-01-02T03:04:05+00:00",
    "last_used_at": None,
    "requests_this_month": 2,
    "requests_today": 1,
}


def success(data, **parts):
    body = {"success": True, "data": data, "meta": META, "error": None, "pagination": None}
    return httpx.Response(200, json=body | parts)


def page(*photos, cursor=None, per_page=20):
    pagination = {"per_page": per_page, "has_more": cursor is not None, "next_cursor": cursor}
    return success(list(photos), pagination=pagination)


def failure(status, code="SOME_CODE", *, details=None, headers=None):
    error = {"code": code, "message": "it must be so", "details": details}
    body = {"success": False, "data": None, "meta": META, "error": error, "pagination": None}
    return httpx.Response(status, json=body, headers=headers)


class Server:
    """Answers with what it was given, in order; the last one again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        # A response is bound to the client that got it, and these are answered many times.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def sent(self):
        return len(self.requests)

    @property
    def last(self):
        return self.requests[-1]


async def listed(photos):
    return [each async for each in photos]


class Both:
    """One way to call the methods of either client."""

    def __init__(self, kind, server, **options):
        self.kind = kind
        self.client = kind(BASE, KEY, transport=httpx.MockTransport(server), **options)

    def wait(self, awaited):
        return asyncio.run(awaited) if self.kind is AsyncClient else awaited

    def list(self, photos):
        return asyncio.run(listed(photos)) if self.kind is AsyncClient else list(photos)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *args, **options: self.wait(method(*args, **options))


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def connect(request):
    return lambda server, **options: Both(request.param, server, **options)


@pytest.fixture(autouse=True)
def slept(monkeypatch):
    """Record the seconds that a client wants to wait, without waiting."""
    seconds = []

    async def sleep(wait):
        seconds.append(wait)

    monkeypatch.setattr("time.sleep", seconds.append)
    monkeypatch.setattr("asyncio.sleep", sleep)
    return seconds


def query_of(request):
    return request.url.query.decode()


OPERATIONS = [
    ("search", ("a castle",), {}, "GET", "/search/photos?q=a+castle", page()),
    ("search", (), {"cursor": "c", "fields": "urls"}, "GET", "/search/photos?cursor=c&fields=urls",
     page()),
    ("search_by_image", (), {"photo_id": "p1", "q": "sea", "text_alpha": 0.5}, "POST",
     "/search/photos?q=sea&photo_id=p1&text_alpha=0.5", page()),
    ("similar", ("p1",), {"limit": 5}, "GET", "/photos/p1/similar?limit=5", page()),
    ("photo", ("p1",), {"fields": ["urls", "width"]}, "GET", "/photos/p1?fields=urls%2Cwidth",
     success(PHOTO)),
    ("colors", (), {}, "GET", "/facets/colors", success([{"name": "red", "hex": "e50000"}])),
    ("sources", (), {}, "GET", "/facets/sources",
     success([{"name": "unsplash", "license_url": "https://example.org/licence"}])),
    ("orientations", (), {}, "GET", "/facets/orientations", success([{"name": "square"}])),
    ("licenses", (), {}, "GET", "/facets/licenses", success([{"name": "free"}])),
    ("suggest_photographers", ("ann",), {"limit": 3}, "GET",
     "/facets/photographers/suggest?q=ann&limit=3", success([])),
    ("photographer", ("a/b ü",), {}, "GET", "/facets/photographers/a%2Fb%20%C3%BC", success([])),
    ("photographer", ("..",), {}, "GET", "/facets/photographers/%2E%2E", success([])),
    ("collections", (), {}, "GET", "/collections", success([COLLECTION])),
    ("create_collection", ("Dunes",), {}, "POST", "/collections", success(COLLECTION)),
    ("collection", (7,), {}, "GET", "/collections/7", success(COLLECTION | {"photos": [ENTRY]})),
    ("delete_collection", (7,), {}, "DELETE", "/collections/7", success({"deleted": True})),
    ("add_photo", (7, "p1"), {}, "POST", "/collections/7/photos", success(ENTRY)),
    ("remove_photo", (7, "p1"), {}, "DELETE", "/collections/7/photos/p1",
     success({"deleted": True})),
    ("usage", (), {}, "GET", "/usage",
     success({"period": "2026-01", "requests": {"used": 1, "limit": 5000, "remaining": 4999}})),
    ("monthly_usage", (), {"months": 2}, "GET", "/usage/monthly?months=2",
     success({"period_months": 2, "records": [{"month": "2026-01", "requests": 3}]})),
    ("daily_usage", (2,), {}, "GET", "/usage/daily?days=2",
     success({"period_days": 2, "records": [{"date": "2026-01-31", "requests": 3}]})),
    ("usage_by_key", (), {}, "GET", "/usage/by-key", success({"keys": [BY_KEY]})),
]  # fmt: skip
