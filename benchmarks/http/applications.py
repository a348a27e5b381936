"""The applications that servers are compared on; an answer has some 30 KB, as 20 records have."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

LIBRARY = "SEARCHLAB_BENCHMARKED_LIBRARY"
"""Names the folder of the library that `searchlab_app` serves."""
RECORD = {f"field_{n}": "a value of a photo record, about so long" for n in range(21)}


def litestar_app() -> Any:
    """Make an application of Litestar that answers with a body encoded beforehand."""
    import msgspec
    from litestar import Litestar, Request, Response, get

    body = msgspec.json.encode({"success": True, "data": [RECORD] * 20, "error": None})

    @get("/api/v1/search/photos")
    async def search(request: Request[Any, Any, Any]) -> Response[bytes]:
        request.query_params.get("q")
        return Response(body, media_type="application/json")

    return Litestar(
        [search],
        openapi_config=None,
        logging_config=None,
        signature_types=[Request, Response],
    )


def fastapi_app() -> Any:
    """Make an application of FastAPI that answers with 20 records as pydantic models, as usual."""
    from fastapi import FastAPI
    from pydantic import BaseModel, create_model

    fields: Any = dict.fromkeys(RECORD, (str, ...))
    photo: type[BaseModel] = create_model("Photo", **fields)
    envelope: type[BaseModel] = create_model(
        "Envelope", success=(bool, ...), data=(list[photo], ...), error=(str | None, None)
    )
    app = FastAPI()

    @app.get("/api/v1/search/photos", response_model=envelope)
    async def search(q: str = "", per_page: int = 20) -> Any:
        return envelope(success=True, data=[photo(**RECORD) for _ in range(per_page)])

    return app


def searchlab_app() -> Any:
    """Make the whole API, which gives every search the answer to the first one.

    Key, limits, parameters, cursor, counting, records, headers and log are there: all but a search.
    """
    from searchlab.api.app import create_app
    from searchlab.api.settings import Settings
    from searchlab.search.engine import SearchEngine

    data = Path(os.environ[LIBRARY])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where the log goes
    answers: list[Any] = []
    search = SearchEngine.slice

    def search_once(engine: SearchEngine, *arguments: Any, **options: Any) -> Any:
        if not answers:
            answers.append(search(engine, *arguments, **options))
        return answers[0]

    SearchEngine.slice = search_once  # type: ignore[method-assign]
    return create_app(
        Settings(
            data=data,
            rate_per_second=1e6,
            rate_burst=10**6,
            log_format="json",
            run_folder=str(data / "run"),
        )
    )


def bare_app() -> Any:
    """Make an application without a framework that answers with the same body: the server alone."""
    body = json.dumps({"success": True, "data": [RECORD] * 20}).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app
