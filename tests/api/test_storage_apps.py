"""Apps that are registered: by their owners for good, by themselves for a while."""

from searchlab.api.accounts.apps import UNUSED_LIFE, find_client, note_consent, register_client

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
