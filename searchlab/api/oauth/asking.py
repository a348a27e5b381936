"""Asking: what a client asks a person for, read from the address of the consent page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from searchlab.api.oauth.addresses import is_resource
from searchlab.api.oauth.documents import OAuthClient
from searchlab.api.oauth.problems import OAuthProblem, RefusalCode
from searchlab.api.oauth.redirects import is_registered
from searchlab.api.oauth.scopes import DEFAULT_SCOPE, SCOPES, parse_scope, write_scope
from searchlab.errors import InputError, quote

PARAMETERS: Final = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method"),
)
"""The parameters that are read; others are ignored, as RFC 6749 asks."""
_REFUSED: Final = {
    "request": RefusalCode.REQUEST_NOT_SUPPORTED,
    "request_uri": RefusalCode.REQUEST_URI_NOT_SUPPORTED,
}
MAX_BYTES: Final = 6_000
_CHALLENGE = re.compile(r"[A-Za-z0-9\-_]{43}")
_STATE = re.compile(r"[\x20-\x7e]{0,2000}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asks for.

    Attributes:
        scopes: What it wants to do, separated by spaces.
        state: Sent back to it unchanged.
        challenge: Hash of its verifier.
        resource: Address of the tool server.
    """

    scopes: str
    state: str
    challenge: str
    resource: str


def read_parameters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Read parameters that may come once each.

    Raises:
        InputError: One comes twice, or all together are too long.
    """
    parameters: dict[str, str] = {}
    for name, value in pairs:
        if name not in PARAMETERS and name not in _REFUSED and name != "response_mode":
            continue
        if name in parameters:
            msg = f"{name} must come once, got it again; connect again from the app"
            raise InputError(msg)
        parameters[name] = value
    size = sum(len(name) + len(value) for name, value in parameters.items())
    if size > MAX_BYTES:
        msg = f"what an app asks for must have at most {MAX_BYTES:,} characters, got {size:,}"
        raise InputError(msg)
    return parameters


def check_redirect(client: OAuthClient, redirect_uri: str) -> str:
    """Return where the answer goes; nothing is ever sent to an address that is not the client's.

    Raises:
        InputError: The client has not said that this address is its own.
    """
    if not redirect_uri or not is_registered(redirect_uri, client.redirect_uris):
        came = quote(redirect_uri)
        msg = f"redirect_uri must be one that {client.name} has named before, got {came}"
        raise InputError(msg)
    return redirect_uri


def read_asked(parameters: Mapping[str, str], resource: str) -> Asked:
    """Read what a client asks for, once it is known who it is and where its answer goes.

    Raises:
        OAuthProblem: Something does not fit; the client is told.
    """
    for name, error in _REFUSED.items():
        if name in parameters:
            raise OAuthProblem(error, f"{name} must not come, got it")
    if not parameters.get("response_type"):
        raise OAuthProblem(RefusalCode.INVALID_REQUEST, "response_type must be 'code', got none")
    if parameters["response_type"] != "code":
        raise OAuthProblem(RefusalCode.UNSUPPORTED_RESPONSE_TYPE, "response_type must be 'code'")
    if parameters.get("response_mode", "query") != "query":
        raise OAuthProblem(RefusalCode.INVALID_REQUEST, "response_mode must be 'query'")
    if parameters.get("code_challenge_method") != "S256":
        raise OAuthProblem(RefusalCode.INVALID_REQUEST, "code_challenge_method must be 'S256'")
    challenge = parameters.get("code_challenge", "")
    if not _CHALLENGE.fullmatch(challenge):
        raise OAuthProblem(
            RefusalCode.INVALID_REQUEST, "code_challenge must be 43 characters of base64url"
        )
    state = parameters.get("state", "")
    if not _STATE.fullmatch(state):
        raise OAuthProblem(
            RefusalCode.INVALID_REQUEST, "state must be at most 2,000 printable characters"
        )
    if not is_resource(parameters.get("resource", ""), resource):
        raise OAuthProblem(RefusalCode.INVALID_TARGET, f"resource must be {resource}")
    asked = parameters.get("scope", "").strip()
    scopes = parse_scope(asked or DEFAULT_SCOPE)
    if not scopes:
        raise OAuthProblem(RefusalCode.INVALID_SCOPE, f"scope must be among {' '.join(SCOPES)}")
    return Asked(scopes=write_scope(scopes), state=state, challenge=challenge, resource=resource)
