"""A page over a slow network: rows of photos show before the whole page has come, and stay."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
import pytest

pytestmark = pytest.mark.slow

WATCH = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""
SHOWN = """() => [...document.querySelectorAll("li.photo")]
  .filter((photo) => getComputedStyle(photo).visibility === "visible")
  .map((photo) => {
    const {left, top, width, height} = photo.getBoundingClientRect();
    return [photo.querySelector("a").href, left, top, width, height];
  })
"""


@contextmanager
def held_back(served, share):
    """Serve as `served` does, but send only a share of each page until the event is set."""
    may_end = threading.Event()
    client = httpx.Client(base_url=served.base_url)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            headers = {"host": urlsplit(served.base_url).netloc, "accept-encoding": "identity"}
            if "cookie" in self.headers:
                headers["cookie"] = self.headers["cookie"]
            answer = client.get(self.path, headers=headers)
            self.send_response(answer.status_code)
            for name in ("content-type", "content-security-policy"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            is_page = answer.headers.get("content-type", "").startswith("text/html")
            at = int(share * len(answer.content)) if is_page else len(answer.content)
            self.wfile.write(answer.content[:at])
            self.wfile.flush()
            may_end.wait(60 if is_page else 0)
            self.wfile.write(answer.content[at:])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", may_end
    finally:
        may_end.set()
        server.shutdown()
        thread.join()
        server.server_close()
        client.close()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900), (1920, 1080)])
def test_rows_show_before_the_page_is_whole_and_none_moves(signed_in, served, width, height):
    one = signed_in(viewport={"width": width, "height": height})
    one.page.add_init_script(WATCH)
    one.expect("left the machine")  # another port than the server's
    with held_back(served, 0.8) as (address, may_end):
        one.page.goto(f"{address}/?q=castle", wait_until="commit")
        one.page.wait_for_function(f"() => ({SHOWN})().length > 0")
        one.page.wait_for_function(
            "() => performance.getEntriesByName('first-contentful-paint').length > 0"
        )
        before = one.page.evaluate(SHOWN)
        assert one.page.locator("#end").count() == 0
        may_end.set()
        one.page.locator("#end").wait_for(state="attached")
        one.page.wait_for_load_state("networkidle")
        after = one.page.evaluate(SHOWN)
    assert len(after) > len(before) > 0
    assert after[: len(before)] == before
    assert one.page.evaluate("window.shift") == 0
