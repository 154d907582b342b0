"""A proxy between a client and the server that can change answers."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional
from urllib.parse import urlsplit

Meddling = Callable[[str, str], Optional[str]]
"""Maps a method and a path to an action. `lose` passes the request on and drops the answer; `502` or JSON answer without the
server; `None` does nothing."""


@contextmanager
def proxy(url: str, meddle: Meddling) -> Iterator[str]:
    """Starts a proxy in front of a server, and returns its address."""
    host = urlsplit(url).netloc

    class Passes(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            what = meddle(self.command, self.path)
            if what == "502":
                self.answer(502, "text/html", b"<html>Bad gateway</html>")
                return
            if what is not None and what.startswith("{"):
                self.answer(200, "application/json", what.encode())
                return
            onward = http.client.HTTPConnection(host, timeout=30)
            onward.request(self.command, self.path, body, {"content-type": "application/json"} if body else {})
            told = onward.getresponse()
            text = told.read()
            onward.close()
            if what == "lose":
                self.close_connection = True
            else:
                self.answer(told.status, told.headers["content-type"], text)

        do_POST = do_PATCH = do_DELETE = do_GET

        def answer(self, status: int, kind: str, text: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passes)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def the_first(times: int, what: str, method: str, end_of_path: str) -> Meddling:
    """Applies an action to the first matching requests."""
    seen = 0

    def meddle(asked: str, path: str) -> Optional[str]:
        nonlocal seen
        if asked != method or not path.endswith(end_of_path):
            return None
        seen += 1
        return what if seen <= times else None

    return meddle
