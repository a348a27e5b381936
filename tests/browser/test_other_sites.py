"""Another site cannot act for somebody who is signed in here, nor show pages inside its own."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def other_site(served):
    """Serves a page that posts to ours as soon as it is open, and one that frames ours."""
    pages = {
        "/post": f"""<!doctype html><title>x</title><form method="post"
            action="{served.base_url}/collections/new"><input name="name" value="planted"></form>
            <script>document.forms[0].submit()</script>""",
        "/frame": f"""<!doctype html><title>x</title>
            <iframe src="{served.base_url}/account"></iframe>""",
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    # By another name, since ports do not make a site.
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_form_of_another_site_changes_nothing(signed_in, other_site):
    one = signed_in("visited")
    for trouble in ("left the machine", "403", "Framing", "frame", "favicon"):
        one.expect(trouble)
    one.page.goto(f"{other_site}/post")
    one.page.wait_for_load_state("networkidle")
    one.page.goto("/collections")
    assert "planted" not in one.page.content()


def test_no_page_is_shown_inside_another_site(signed_in, other_site):
    one = signed_in("visited")
    for trouble in ("left the machine", "Framing", "frame", "favicon", "404"):
        one.expect(trouble)
    one.page.goto(f"{other_site}/frame")
    one.page.wait_for_load_state("networkidle")
    inside = [frame for frame in one.page.frames if frame != one.page.main_frame]
    assert inside
    assert not any(frame.locator("header.top").count() for frame in inside)
