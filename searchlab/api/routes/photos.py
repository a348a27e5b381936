"""One photo (4.3)."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath

from searchlab.api.http.caching import answer_cached
from searchlab.api.http.context import context_of, services_of
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read, select_fields
from searchlab.api.wire.requests import OnePhoto
from searchlab.api.wire.schema import Photo


@get(
    "/api/v1/photos/{photo_id:str}",
    opt=Operation(
        operation_id="getPhoto",
        summary="Get one photo",
        description="Its `relevance_score` is 1, since there is no query.",
        parameters=OnePhoto,
        data=Photo,
        problems=("INVALID_FIELDS", "NOT_FOUND"),
    ).opt,
)
async def get_photo(request: Request[Any, Any, Any], photo_id: FromPath[str]) -> Response[bytes]:
    """Get one photo."""
    parameters = read(OnePhoto, request)
    fields = select_fields(parameters.fields, context_of(request).plan)
    snapshot = services_of(request).live_library.current
    row = snapshot.row_of(photo_id)
    base_url = context_of(request).base_url
    photo = snapshot.photos.record(row, 1.0, fields=fields, base_url=base_url)
    return answer_cached(request, photo)


ROUTES = [get_photo]
