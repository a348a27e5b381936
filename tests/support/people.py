"""People at the pages of a served library, and the fields of the forms that they see."""

import html
import re

from searchlab.api.accounts.visitors import find_account


def person(server, account, plan="scale"):
    """Make a browser signed in to an account; it knows `account` and `account_id`."""
    browser = server.make_browser(account, plan=plan)
    browser.account = account
    browser.account_id = find_account(server.database, account).account_id
    return browser


def hidden(page):
    """Read the hidden fields of a page's forms."""
    fields = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in fields}
