"""Apps that are registered: by their owners for good, by themselves for a while."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from searchlab.api.accounts.apps import (
    UNUSED_LIFE,
    find_client,
    list_apps,
    note_consent,
    propose_app_id,
    register_app,
    register_client,
)
from searchlab.api.accounts.tables import oauth_clients
from searchlab.errors import InputError
from tests.support.databases import lock_account

REDIRECT = "https://app.test/back"


def test_clients_that_registered_themselves_expire(database, clock):
    made = register_client(database, name="Finder", redirect_uris=[REDIRECT], clock=clock)
    used = register_client(database, name="Finder", redirect_uris=[REDIRECT], clock=clock)
    assert find_client(database, made.client_id, clock=clock) == made
    note_consent(database, used.client_id, clock=clock)
    clock.now += UNUSED_LIFE
    assert find_client(database, made.client_id, clock=clock) is None
    assert find_client(database, used.client_id, clock=clock).expires_at > clock.now
    third = register_client(database, name="Finder", redirect_uris=[REDIRECT], clock=clock)
    assert find_client(database, third.client_id, clock=clock) == third


def test_who_registers_thousands_keeps_nobody_out_and_takes_no_app_away(
    database, clock, monkeypatch
):
    monkeypatch.setattr("searchlab.api.accounts.apps.MAX_SELF_REGISTERED", 3)
    names = ("oldest", "used", "newer")
    form = {"redirect_uris": [REDIRECT], "clock": clock}
    made = {}
    for name in names:
        made[name] = register_client(database, name=name, **form).client_id
        clock.now += UNUSED_LIFE / 10
    note_consent(database, made["used"], clock=clock)
    made["newest"] = register_client(database, name="newest", **form).client_id
    living = [name for name in made if find_client(database, made[name], clock=clock)]
    assert living == ["used", "newer", "newest"]
    for name in ("newer", "newest"):
        note_consent(database, made[name], clock=clock)
    assert register_client(database, name="one more", **form) is None


def test_of_two_who_register_the_last_app_one_does(database, clock, acme, monkeypatch):
    monkeypatch.setattr("searchlab.api.accounts.apps.MAX_APPS", 1)
    form = {"redirect_uris": [REDIRECT], "client_id": propose_app_id()}
    first = {"id": "app_1", "name": "first", "redirect_uris": REDIRECT, "created_at": clock.now}
    with ThreadPoolExecutor(1) as pool:
        with lock_account(database, acme) as connection:
            second = pool.submit(register_app, database, acme, name="second", **form)
            with pytest.raises(TimeoutError):
                second.result(0.5)
            connection.execute(oauth_clients.insert().values(account_id=acme, **first))
        with pytest.raises(InputError, match="at most 1 apps, got one more; delete one first"):
            second.result(30)
    assert [app.name for app in list_apps(database, acme)] == ["first"]
