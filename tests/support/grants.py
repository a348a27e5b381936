"""What a person agrees to in tests, and how an app asks for it."""

from searchlab.api.accounts.issuing import Consent, challenge_of

VERIFIER = "v" * 43
CLIENT, REDIRECT, RESOURCE = "app_1", "https://app.test/back", "https://photos.test/mcp"
ASKED = {"client_id": CLIENT, "redirect_uri": REDIRECT, "resource": RESOURCE}


def consent(account_id, scopes="search collections:read", client=CLIENT):
    return Consent(
        account_id=account_id,
        client_id=client,
        client_name="Finder",
        redirect_uri=REDIRECT,
        scopes=scopes,
        resource=RESOURCE,
        challenge=challenge_of(VERIFIER),
    )
