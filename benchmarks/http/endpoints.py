"""The requests that the API gets: every operation, and a text search under every filter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import httpx

from benchmarks.common.load.closed_loop import NEW_TEXT, LoadRequest
from benchmarks.common.load.rounds import Target
from searchlab.library.decoding import thumbnail_path
from searchlab.library.library import Library
from searchlab.search.filters.photo_filter import facet_counts

TEXT = "castle"


def list_endpoints(library: Library, base_url: str, key: str, pids: Sequence[int]) -> list[Target]:
    """List a request for each operation that clients use often.

    Args:
        library: The library that is served.
        base_url: Address of the server.
        key: API key of an account.
        pids: Process ids of the workers.
    """
    api, headers = f"{base_url}/api/v1", {"x-api-key": key}
    table = library.engine.table
    photo_id = table.photo(0).photo_id
    search, photo = f"{api}/search/photos", f"{api}/photos/{photo_id}"
    upload, form = _make_upload(thumbnail_path(library.thumbnails, table.photo(0).sha256))
    album = _make_collection(api, headers, table.photo_ids(range(5)))
    requests = {
        "text search, asked before": LoadRequest(f"{search}?q={TEXT}", headers=headers),
        "text search, new text": LoadRequest(f"{search}?q={NEW_TEXT}", headers=headers),
        "text search, three fields": LoadRequest(
            f"{search}?q={TEXT}&fields=photo_id,width,urls", headers=headers
        ),
        "image search by photo_id": LoadRequest(f"{search}?photo_id={photo_id}", "POST", headers),
        "image search by photo_id and text": LoadRequest(
            f"{search}?photo_id={photo_id}&q={TEXT}", "POST", headers
        ),
        "image search by upload": LoadRequest(search, "POST", headers | form, upload),
        "filter only": LoadRequest(f"{search}?orientation=landscape", headers=headers),
        "colour only": LoadRequest(
            f"{search}?color_hex=%231f6f8b&color_tolerance=60", headers=headers
        ),
        "similar photos": LoadRequest(f"{photo}/similar", headers=headers),
        "a photo": LoadRequest(photo, headers=headers),
        "colours facet": LoadRequest(f"{api}/facets/colors", headers=headers),
        "photographers suggested": LoadRequest(
            f"{api}/facets/photographers/suggest?q=an", headers=headers
        ),
        "collections": LoadRequest(f"{api}/collections", headers=headers),
        "a collection": LoadRequest(f"{api}/collections/{album}", headers=headers),
        "usage": LoadRequest(f"{api}/usage", headers=headers),
        "health": LoadRequest(f"{base_url}/health"),
    }
    # A worker reads two pictures at once and lets 16 wait; to more it answers 503, as it should.
    most = {"image search by upload": 16}
    return [Target(request, pids, {"endpoint": n}, most.get(n)) for n, request in requests.items()]


def list_filters(library: Library, base_url: str, key: str, pids: Sequence[int]) -> list[Target]:
    """List a text search under each kind of filter, and under several at once."""
    table = library.engine.table
    counts = facet_counts(table, "source")
    conditions: dict[str, dict[str, str]] = {
        "none": {},
        "orientation": {"orientation": "landscape"},
        "color_name": {"color_name": "blue"},
        "color_hex": {"color_hex": "#1f6f8b", "color_tolerance": "60"},
        "source": {"source": max(counts, key=lambda name: counts[name])},
        "after_date": {"after_date": "2001-01-01"},
        "orientation, color_name, after_date": {
            "orientation": "landscape",
            "color_name": "blue",
            "after_date": "2001-01-01",
        },
    }
    search, headers = f"{base_url}/api/v1/search/photos", {"x-api-key": key}
    return [
        Target(
            LoadRequest(f"{search}?{urlencode({'q': TEXT, **words})}", headers=headers),
            pids,
            {"filter": name},
        )
        for name, words in conditions.items()
    ]


def ask_each(targets: Sequence[Target]) -> list[str]:
    """Send each request once; returns how each was planned, such as `exact; candidates=349; ...`.

    Raises:
        RuntimeError: A request is not answered with 200, so its speed would mean nothing.
    """
    plans = []
    with httpx.Client(verify=False) as client:  # no certificates are read for plain HTTP
        for target in targets:
            request = target.request
            url = request.url.replace(NEW_TEXT, "snow")
            answer = client.request(
                request.method, url, headers=dict(request.headers), content=request.body
            )
            if answer.status_code != 200:
                msg = f"{target.labels} must be answered with 200, got {answer.status_code}: "
                raise RuntimeError(msg + answer.text[:300])
            plans.append(answer.headers.get("x-searchlab-plan", ""))
    return plans


def _make_upload(picture: Path) -> tuple[bytes, dict[str, str]]:
    request = httpx.Request(
        "POST", "http://local", files={"image": ("a.webp", picture.read_bytes(), "image/webp")}
    )
    return request.read(), {"content-type": request.headers["content-type"]}


def _make_collection(api: str, headers: dict[str, str], photo_ids: Sequence[str]) -> int:
    with httpx.Client(base_url=api, headers=headers, verify=False) as client:
        collection_id = client.post("/collections", json={"name": "bench"}).json()["data"]["id"]
        for photo_id in photo_ids:
            client.post(f"/collections/{collection_id}/photos", json={"photo_id": photo_id})
    return int(collection_id)
