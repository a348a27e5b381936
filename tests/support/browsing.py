"""A real browser at a real server: pages whose requests, console and accessibility are watched."""

from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from benchmarks.common.chromium import launch

AXE = Path(__file__).parents[1] / "browser" / "vendored" / "axe.min.js"
# Of what axe knows, what a page that is right by day can get wrong in other colours, or at a width
# at which it hides some of itself.
OTHERWISE = (
    *("button-name", "color-contrast", "heading-order", "label", "link-in-text-block", "link-name"),
    *("page-has-heading-one", "scrollable-region-focusable", "select-name", "skip-link"),
    *("summary-name", "target-size"),
)
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
# No rule among them reads style sheets, which axe would fetch once more for each run.
_RUN = """rules => axe.run({
  resultTypes: ["violations"], runOnly: rules, preload: { assets: ["media"] },
})"""


@contextmanager
def launched():
    """Run Chromium for as long as the block lasts."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A browser window of one person.

    Attributes:
        page: Its page, of playwright.
        context: With its cookies.
        base_url: Address of the server.
        troubles: What no page may have: errors in the console, requests that leave the machine,
            answers of a server that failed.
    """

    def __init__(self, browser, base_url, **options):
        self.base_url = base_url
        self.troubles = []
        self.context = browser.new_context(base_url=base_url, **options)
        self.context.set_default_timeout(10_000)
        self.context.on("request", self._on_request)
        self.context.on("response", self._on_response)
        self.context.on("console", self._on_console)
        self.context.on("weberror", lambda error: self.troubles.append(str(error.error)))
        self.page = self.context.new_page()
        self.expected = []

    def expect(self, trouble):
        """Let pass a trouble whose text holds this, since it is what a test is about."""
        self.expected.append(trouble)

    def left(self):
        """Return the troubles that nobody expected."""
        return [
            trouble
            for trouble in self.troubles
            if not any(expected in trouble for expected in self.expected)
        ]

    def _on_request(self, request):
        parts = urlsplit(request.url)
        own = urlsplit(self.base_url).netloc
        if parts.scheme not in ("data", "blob") and parts.netloc != own:
            self.troubles.append(f"a request left the machine: {request.url}")

    def _on_response(self, response):
        if response.status >= 500:
            self.troubles.append(f"{response.status} of {response.url}")

    def _on_console(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def follow(self, control):
        """Click what leads to another page, and wait until that page is there.

        A click alone returns as soon as the browser is on its way, so what is read right after it
        may be of the page before, or of half a page.
        """
        with self.page.expect_navigation():
            control.click()

    def sign_in(self, link):
        """Follow a one-time link to its end."""
        self.page.goto(link)
        self.page.wait_for_url(lambda url: "/sign-in" not in url)

    def paste(self, link):
        """Sign in without a script."""
        self.page.goto("/sign-in")
        self.page.get_by_label("one-time link").fill(link)
        self.follow(self.page.get_by_role("button", name="Sign in"))

    def violations(self, rules=_RULES):
        """Return what axe finds wrong with the page, a line each; see `violations_of`."""
        return violations_of(self.page, rules)

    def overflow(self):
        """Return by how many pixels the page is wider than the window."""
        return overflow_of(self.page)


def overflow_of(page):
    """Return by how many pixels a page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def violations_of(page, rules=_RULES):
    """Return what axe finds wrong with a page, a line each, by these rules or kinds of rules."""
    if not page.evaluate("'axe' in window"):
        # By the debugger, since the page's own policy lets no such script in.
        page.evaluate(AXE.read_text(encoding="utf-8"))
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node['failureSummary']}"
        for each in page.evaluate(_RUN, list(rules))["violations"]
        for node in each["nodes"]
    ]


def violations_by_day_and_dark(page):
    """Return what axe finds wrong with a page in its light colours, and then in its dark ones."""
    wrong = violations_of(page)
    page.emulate_media(color_scheme="dark")
    # Colours that fade into others are read at their ends.
    page.evaluate("document.getAnimations().forEach(each => each.finish())")
    wrong += [f"in the dark, {line}" for line in violations_of(page, OTHERWISE)]
    page.emulate_media(color_scheme="light")
    return wrong
