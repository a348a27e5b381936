"""A server on this machine that stands in for a library: it answers what a test wrote down."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandIn:
    """Answers in the order in which a test spoke, or by path; remembers what it was asked.

    A body may be a list of pieces; `stop` is an event that ends a body without end.
    """

    def __init__(self):
        self.script, self.by_path, self.requests = [], {}, []
        self.stop = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                known = outer.by_path.get(self.path.partition("?")[0])
                status, headers, body = known or outer.script.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(body, bytes):
                    self.send_header("Content-Length", headers.get("Content-Length", len(body)))
                else:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                self.end_headers()
                # Whoever asked may have heard enough.
                with contextlib.suppress(ConnectionError):
                    for piece in [body] if isinstance(body, bytes) else body():
                        self.wfile.write(piece)
                        self.wfile.flush()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def says(self, answer, status=200, path=None, **headers):
        """Write down the next answer, or the one for a path: JSON, bytes, or pieces to come."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        whole = isinstance(answer, bytes) or callable(answer)
        entry = (status, named, answer if whole else json.dumps(answer).encode())
        if path is None:
            self.script.append(entry)
        else:
            self.by_path[path] = entry

    def drip(self, first=b"", every=0.05):
        """Make a body that goes on a byte at a time until the server stops."""

        def body():
            yield first
            while not self.stop.wait(every):
                yield b"x"

        return body

    def flood(self, first=b""):
        """Make a body that goes on as fast as it is read until the server stops."""

        def body():
            yield first
            while not self.stop.is_set():
                yield b"x" * 65_536

        return body
