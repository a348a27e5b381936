"""Pictures that a model searches by: as data in the call, or sent to an address before it.

Few models can write a whole picture into a call, but many have a shell beside them. So a tool gives
an address for ten minutes; whoever sends a picture there gets a short text for it, which holds its
embedding and stands for it in a search. The picture itself is stored nowhere.
"""

from __future__ import annotations

import binascii
import datetime
from base64 import b64decode
from typing import Any, Final

import msgspec
from litestar import Request, Response, put
from litestar.params import FromPath

from searchlab.api import searches
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.grants import is_connected
from searchlab.api.accounts.keyring import Caller
from searchlab.api.http.admission import admit
from searchlab.api.http.bodies import read_whole
from searchlab.api.http.context import caller_of, context_of, services_of
from searchlab.api.http.decoding import MAX_UPLOAD_PIXELS
from searchlab.api.wire.envelope import succeed
from searchlab.api.wire.errors import HttpProblem, invalid
from searchlab.errors import CursorError
from searchlab.photos.images.decode import check_format
from searchlab.search.cursors import open_signed, sign
from searchlab.search.searched_pictures import SearchedPicture

AnyRequest = Request[Any, Any, Any]

LIFETIME_S: Final = 600
PATH: Final = "/mcp/pictures"
_AUDIENCE = "upload of a picture"
_PREFIX: Final = "slp_"  # by which logs know what to strike out
_PLACE = ("arguments", "picture")
_WANTED = (
    "picture must be the base64 of a JPEG, PNG, WebP or AVIF file, or what the address of "
    "get_upload_address has answered"
)


def read_picture_argument(request: AnyRequest, text: str) -> bytes | None:
    """Read the argument `picture`.

    Returns:
        The file, or None if it was sent before; it is then in the request's context.

    Raises:
        Invalid: It is neither, or it was sent to another server.
    """
    if text.startswith(("http://", "https://")):
        msg = f"{_WANTED}, got an address; this server fetches none"
        raise invalid(_PLACE, msg, "picture")
    head, comma, rest = text.partition(",")
    if not comma and "." in text:
        library = services_of(request).live_library.library
        try:
            context_of(request).picture = SearchedPicture.unseal(text, library.key)
        except CursorError:
            msg = f"{_WANTED}, got a text that this server did not answer; send the picture again"
            raise invalid(_PLACE, msg, "picture") from None
        return None
    if comma and not head.endswith(";base64"):
        raise invalid(_PLACE, f"{_WANTED}, got another text", "picture")
    try:
        return b64decode("".join((rest if comma else text).split()), validate=True)
    except (binascii.Error, ValueError):
        raise invalid(_PLACE, f"{_WANTED}, got another text", "picture") from None


# -- the address ------------------------------------------------------------------------------


class _Ticket(msgspec.Struct, array_like=True):
    account_id: int
    key_id: str
    plan: str
    until: float


def make_address(request: AnyRequest) -> tuple[str, str]:
    """Return an address that takes pictures of the caller, and when it ends, as ISO 8601."""
    caller, until = caller_of(request), utc_now() + datetime.timedelta(seconds=LIFETIME_S)
    ticket = _Ticket(caller.account_id, caller.key_id, caller.plan, until.timestamp())
    key = services_of(request).live_library.library.key
    token = _PREFIX + sign(msgspec.msgpack.encode(ticket), key, audience=_AUDIENCE)
    return f"{context_of(request).base_url}{PATH}/{token}", until.isoformat()


def _open_ticket(request: AnyRequest, token: str) -> Caller:
    key = services_of(request).live_library.library.key
    try:
        content = open_signed(token.removeprefix(_PREFIX), key, audience=_AUDIENCE)
        ticket = msgspec.msgpack.decode(content, type=_Ticket)
    except (ValueError, msgspec.MsgspecError):
        msg = "the address must be one of get_upload_address, got another; ask for a new one"
        raise HttpProblem(msg, "NOT_FOUND") from None
    if ticket.until < utc_now().timestamp():
        minutes = LIFETIME_S // 60
        msg = f"an address takes pictures for {minutes} minutes, got an older one; ask for another"
        raise HttpProblem(msg, "NOT_FOUND")
    return Caller(ticket.account_id, ticket.key_id, ticket.plan)


class SentPicture(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a picture: the text that stands for it in `search_photos`."""

    picture: str


@put(f"{PATH}/{{ticket:str}}", status_code=200, include_in_schema=False)
async def take_picture(request: AnyRequest, ticket: FromPath[str]) -> Response[bytes]:
    """Take a picture, whose bytes are the whole body, and answer with what stands for it."""
    caller, services = _open_ticket(request, ticket), services_of(request)
    if not await services.in_database(is_connected, services.database, caller.key_id):
        msg = "the app that got this address must still be connected; connect it again"
        raise HttpProblem(msg, "NOT_FOUND")
    await admit(services, context_of(request), caller)
    with services.slots.bodies.holding(caller.account_id) as take:
        content = await read_whole(request, services.settings.max_upload_bytes, take=take)
        check_format(content, MAX_UPLOAD_PIXELS)
        picture = await searches.embed_picture(services, caller, content)
    sealed = picture.seal(services.live_library.library.key)
    return succeed(request, SentPicture(picture=sealed))


ROUTES: Final[list[Any]] = [take_picture]
