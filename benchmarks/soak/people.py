"""People: signed in, they search on pages, keep collections, keys and apps, and judge photos."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

from benchmarks.common.load.closed_loop import WORDS
from benchmarks.soak.http_client import Answer, HttpClient
from benchmarks.soak.judging import compare, judge
from benchmarks.soak.person import Person, fields_of, last_part
from benchmarks.soak.world import FORWARDED, World
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.administration import close_account
from searchlab.api.accounts.issuing import challenge_of

_VERIFIER = "v" * 43
_GUESTS = 6
_BACK = "http://127.0.0.1/back"
_KEY = re.compile(r"\bsl_[\w-]{43}")
_FORMS = re.compile(
    r'action="(/(?:account/keys/\w+/revoke|account/grants/\w+/revoke|account/apps/\w+/delete))"'
)
_COLLECTION = re.compile(r'href="/collections/(\d+)"')


async def live_as_ann(world: World) -> None:
    """Sign in, do everything that there is on pages, and sign out again."""
    await _live(world, "ann")


async def live_as_ben(world: World) -> None:
    """Do the same in another account, at the same time."""
    await _live(world, "ben")


async def _live(world: World, account: str) -> None:
    deeds = (_search, _search, _keep_collection, _make_key, _register_app, judge, compare)
    async with HttpClient(world.server.base_url) as client:
        while not world.is_over:
            person = Person(world, account, client)
            if not await person.sign_in():
                continue
            await _clear_away(person)
            for deed in world.random.sample(deeds, len(deeds)):
                await deed(person)
            await person.sign_out()
            world.ledger.events["people signed in and out"] += 1


async def _clear_away(person: Person) -> None:
    """Remove what an earlier visit has left that was broken off."""
    for page in ("/account", "/account/apps"):
        answer = await person.get(page)
        for form in _FORMS.findall(answer.text if answer else ""):
            await person.post(form, {})
    answer = await person.get("/collections")
    for number in set(_COLLECTION.findall(answer.text if answer else "")):
        await person.post(f"/collections/{number}/delete", {}, allowed=(303, 404))


async def _search(person: Person) -> None:
    world = person.world
    page = f"/?{urlencode({'q': world.random.choice(WORDS)})}"
    found = await person.get(page, searches=1)
    if found is not None and (more := re.search(r'href="(/\?[^"]*page=2[^"]*)"', found.text)):
        await person.get(more[1].replace("&amp;", "&"), allowed=(200, 410), searches=1)
    await person.get(f"/photos/{world.choose_photo()}", allowed=(200, 404), searches=1)
    await person.get("/photographers?q=an")
    taken = await person.post("/picture", picture=world.upload)
    if taken is not None:
        await person.get(taken.headers["location"], searches=1)


async def _keep_collection(person: Person) -> None:
    world = person.world
    first, second = (world.choose_photo() for _ in range(2))
    await person.get("/collections/new")
    made = await person.post("/collections/new", {"name": "mine", "is_public": "yes"})
    if made is None:
        return
    number = last_part(made)
    place = f"/collections/{number}"
    for photo_id in (first, second):
        await person.get(f"/collections/add?photo_id={photo_id}", allowed=(200, 404))
        entry = {"photo_id": photo_id, "collection": number}
        await person.post("/collections/add", entry, allowed=(303, 404))
    await person.get(place)
    await person.get(f"{place}/edit")
    edited = {"name": "still mine", "is_public": "yes"}
    renamed = await person.post(f"{place}/edit", edited)
    await person.post(f"{place}/cover", {"photo_id": second}, allowed=(303, 404))
    shown = await person.get(f"/c/{number}")
    await person.get(f"/c/{number}/credits.txt")
    await person.post(f"{place}/remove", {"photo_id": second})
    await person.get(f"{place}/delete")
    if await person.post(f"{place}/delete", {}) is not None:
        await person.get(place, allowed=(404,))
        await person.get(f"/c/{number}", allowed=(404,))
    if renamed is not None and shown is not None and "still mine" not in shown.text:
        world.ledger.report_broken(f"collection {number} was renamed, its page has another name")


async def _make_key(person: Person) -> None:
    world, facet = person.world, "/api/v1/facets/colors"
    await person.get("/account/export")
    page = await person.get("/account")
    if page is None:
        return
    key_id = fields_of(page.text)["key_id"]
    made = await person.post("/account/keys", {"name": "page", "key_id": key_id}, allowed=(200,))
    if made is None:
        return
    secret = _KEY.search(made.text)
    if secret is None:
        world.ledger.report_broken(f"a new key must be shown, got {made.text[:300]}")
        return
    async with world.client_of(secret[0], **{FORWARDED: world.draw_address()}) as client:
        await world.request(client, person.account, "GET", facet)
        if await person.post(f"/account/keys/{key_id}/revoke", {}) is not None:
            await world.request(client, person.account, "GET", facet, allowed=(401,))


async def _register_app(person: Person) -> None:
    """Register an app, allow it, redeem its code, disconnect and delete it."""
    page = await person.get("/account/apps")
    if page is None:
        return
    client_id = fields_of(page.text)["client_id"]
    app = {"name": "Helper", "redirect_uris": _BACK, "client_id": client_id}
    if await person.post("/account/apps", app) is None:
        return
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": _BACK,
        "scope": "search",
        "state": "s",
        "resource": f"{person.world.server.base_url}/mcp",
        "code_challenge": challenge_of(_VERIFIER),
        "code_challenge_method": "S256",
    }
    consent = await person.get(f"/connect?{urlencode(asked)}")
    if consent is not None:
        allowed = await person.post("/connect", fields_of(consent.text) | {"decision": "allow"})
        await _redeem(person, allowed, client_id)
    await person.post(f"/account/apps/{client_id}/delete", {})


async def _redeem(person: Person, allowed: Answer | None, client_id: str) -> None:
    if allowed is None:
        return
    code = parse_qs(urlsplit(allowed.headers["location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _BACK}
    form |= {"code_verifier": _VERIFIER, "client_id": client_id}
    await person.post("/oauth/token", form, allowed=(200,))
    page = await person.get("/account")
    for grant in re.findall(r"/account/grants/\w+/revoke", page.text if page else ""):
        await person.post(grant, {})


async def come_and_go(world: World) -> None:
    """Have accounts made, used once and closed; nothing of them may be left in force."""
    async for turn in world.turns(_GUESTS):
        account = f"guest {turn}"
        _, secret = create_key(world.database, account=account, name="guest", plan="free")
        async with HttpClient(world.server.base_url) as client:
            guest = Person(world, account, client)
            await Person(world, account, client).sign_in()  # in another browser
            closed = await guest.sign_in() and await _close(guest)
            if not closed:
                close_account(world.database, account)
        async with world.client_of(secret, **{FORWARDED: world.draw_address()}) as client:
            facet = "/api/v1/facets/colors"
            await world.request(client, account, "GET", facet, allowed=(401,))
        world.ledger.events["accounts made and closed"] += 1


async def _close(guest: Person) -> bool:
    page = await guest.get("/account")
    sessions = re.findall(r"/account/sessions/ses_\w+/end", page.text if page else "")
    for session in sessions[1:]:  # the first is this one, which was used last
        await guest.post(session, {})
    await guest.get("/account/close")
    closed = await guest.post("/account/close", {"confirm": guest.account}, allowed=(200,))
    return closed is not None
