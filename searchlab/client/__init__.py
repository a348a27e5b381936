"""A client of the HTTP API, synchronous or asynchronous.

    with Client("http://127.0.0.1:8000", "sl_...") as client:
        for photo in client.search_all(q="a castle", orientation="landscape", limit=40):
            print(photo.relevance_score, photo.image_url)

`Client` and `AsyncClient` have the same methods. Answers are the specification's records, and a
page fetches the next one on demand. A request to a busy server is sent again, and a POST that
changes something never takes effect twice.
"""

from __future__ import annotations

from searchlab.errors import MissingExtraError

try:
    import httpx as httpx
except ImportError as _error:
    _MSG = f"the client must have httpx, got {str(_error)!r}; pip install 'searchlab[client]'"
    raise MissingExtraError(_MSG) from _error

from searchlab.client.clients import AsyncClient, Client
from searchlab.client.failures import (
    AlreadyThereError,
    ApiError,
    AuthenticationError,
    BadRequestError,
    LimitError,
    MissingError,
    PermissionDeniedError,
    ServerError,
    UnfinishedError,
    UnreachableError,
    ValidationError,
)
from searchlab.client.pages import AsyncPage, Page
from searchlab.client.records import Photo

__all__ = [
    "AlreadyThereError",
    "ApiError",
    "AsyncClient",
    "AsyncPage",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "LimitError",
    "MissingError",
    "Page",
    "PermissionDeniedError",
    "Photo",
    "ServerError",
    "UnfinishedError",
    "UnreachableError",
    "ValidationError",
]
