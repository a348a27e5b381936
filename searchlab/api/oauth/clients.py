"""Clients: found by their id, whether it is an address or was given here."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any, Final

from litestar import Request

from searchlab.api.accounts import apps
from searchlab.api.http.context import services_of
from searchlab.api.oauth.documents import MAX_SECONDS, OAuthClient, is_address
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import InputError, quote

CLIENTS_AT_ONCE: Final = 20
CLIENTS_PER_SECOND: Final = 0.1
"""Registrations of one address, and documents fetched for one account."""


async def find_client(
    request: Request[Any, Any, Any], client_id: str, account_id: int
) -> OAuthClient:
    """Return the client of an id.

    Args:
        request: The request that names it.
        client_id: Its id.
        account_id: The account that is asked for access, for which documents are fetched.

    Raises:
        InputError: There is no such client, or its document cannot be used.
        HttpProblem: Too many documents were fetched for this account (429).
    """
    services = services_of(request)
    if not is_address(client_id):
        record = await services.in_database(apps.find_client, services.database, client_id)
        if record is None:
            msg = (
                "client_id must be that of an app that is registered here, or the https address of "
                f"its description, got {quote(client_id)}; connect again from the app"
            )
            raise InputError(msg)
        vouched = record.expires_at is None
        return OAuthClient(record.client_id, record.name, record.redirect_uris, "", vouched)
    documents = services.client_documents
    client = documents.recall(client_id)
    if client is not None:
        return client
    check_client_rate(request, f"document:{account_id}")
    try:
        async with asyncio.timeout(MAX_SECONDS + 1):  # names may take longer to resolve
            return await services.document_threads.run(documents.find, client_id)
    except TimeoutError:
        msg = f"client_id must lead to a document within {MAX_SECONDS:g} s, got nothing"
        raise InputError(msg) from None


def check_client_rate(request: Request[Any, Any, Any], sender: str) -> None:
    """Count what a stranger makes this server fetch or store.

    Raises:
        HttpProblem: It was too much (429).
    """
    services = services_of(request)
    verdict = services.client_rates.check(sender, now=time.monotonic())
    if not verdict.allowed:
        services.metrics.count_refusal("rate")
        wait_s = math.ceil(verdict.retry_after_s)
        msg = f"too many new apps in a short time; try again in {wait_s} s"
        raise HttpProblem(msg, "RATE_LIMITED", headers={"Retry-After": str(wait_s)})
