"""What the tests in a browser share: Chromium, a served library, and people who are signed in."""

import functools
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.common.chromium import find_chromium
from tests.support.browsing import Watched, launched
from tests.support.spec_server import corpus

_MISSING = "a browser is needed: install Chromium (`apt-get install chromium-headless-shell`)"
_running = ExitStack()


@functools.cache
def start():
    return _running.enter_context(launched())


# Files share the browser of their worker. It ends with the last of them here: playwright leaves an
# event loop running in the thread, in which tests of other folders run their own.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    yield
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _running.close()
        start.cache_clear()


@pytest.fixture(scope="module")
def browser():
    if find_chromium() is None:
        if os.environ.get("SEARCHLAB_NEEDS_BROWSER"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    return start()


@pytest.fixture(scope="session")
def served():
    return corpus()


@pytest.fixture
def window(browser, served):
    """Opens windows, each of another person; at the end none of them may have had troubles."""
    windows = []

    def open_window(**options):
        windows.append(Watched(browser, served.base_url, **options))
        return windows[-1]

    yield open_window
    troubles = [trouble for one in windows for trouble in one.left()]
    for one in windows:
        one.context.close()
    assert troubles == []


@pytest.fixture(scope="session")
def link(served):
    """Makes a one-time link of an account, as `searchlab accounts link` prints it."""
    database = {"database-url": served.database_url}

    def make(account="paid"):
        if f'"{account}"' not in served.command("accounts list --json", **database):
            served.command("accounts create", account=account, plan="scale", **database)
        options = {"account": account, "base-url": served.base_url}
        return served.command("accounts link", **options, **database).split()[-1]

    return make


@pytest.fixture(scope="session")
def cookies():
    """What people who have signed in hold, by account: few may sign in from one address at once."""
    return {}


@pytest.fixture
def signed_in(window, link, cookies):
    """Opens a window in which somebody is signed in, in the session of before unless `anew`."""

    def enter(account="paid", *, anew=False, **options):
        one = window(**options)
        if anew or account not in cookies:
            if options.get("java_script_enabled", True):
                one.sign_in(link(account))
            else:
                one.paste(link(account))
            cookies[account] = one.context.cookies()
        else:
            one.context.add_cookies(cookies[account])
        return one

    return enter
