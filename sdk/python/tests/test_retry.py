"""Which requests the client repeats, and when."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import pytest

from laneway import Client, Retry, Unreachable, errors
from laneway.errors import refusal


def problem(**fields: Any) -> dict[str, Any]:
    usual = {
        "type": "urn:laneway:problem:at-capacity", "title": "At capacity", "status": 429, "code": "AT_CAPACITY",
        "retryable": True, "detail": "busy", "phase": "setup", "reason": "AT_CAPACITY", "error": "busy", "message": "busy",
    }
    return {**usual, **fields}


@pytest.mark.parametrize(
    ("told", "tries", "spent", "chance", "pause"),
    [
        (problem(retry_after=2, retry_after_ms=1500), 1, 0, 0.0, 1.5),
        (problem(retry_after=2, retry_after_ms=1500), 1, 0, 1.0, 1.875),
        (problem(), 1, 0, 0.0, 0.1),
        (problem(), 3, 0, 0.0, 0.4),
        (problem(), 20, 0, 0.0, 5.0),
        (problem(retry_after_ms=1500), 1, 29, 0.0, None),
        (problem(retryable=False), 1, 0, 0.0, None),
        (problem(phase="run", code="RUN_TIMED_OUT"), 1, 0, 0.0, None),
    ],
)
def test_pauses_honour_the_servers_time_and_the_total_limit(
    told: dict[str, Any], tries: int, spent: float, chance: float, pause: Optional[float]
) -> None:
    assert Retry(limit=30).pause(refusal(told), tries, spent, chance) == pause


def test_a_broken_connection_is_retried_and_a_bug_is_not() -> None:
    assert Retry().pause(Unreachable("x"), 1, 0, 0.0) == 0.1
    assert Retry().pause(errors.UnexpectedAnswer(500, ""), 1, 0, 0.0) is None


@contextmanager
def refusing_twice() -> Iterator[tuple[str, list[tuple[str, Optional[str], float]]]]:
    """A server that refuses two requests of each method, accepts the third, and records them."""
    seen: list[tuple[str, Optional[str], float]] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            seen.append((self.command, self.headers.get("traceparent"), time.monotonic()))
            is_refused = sum(method == self.command for method, *_ in seen) <= 2
            body = problem(retry_after_ms=100) if is_refused else {
                "running": 0, "waiting": 0, "line": "", "id": "t", "status": "queued", "durability": "memory"
            }
            text = json.dumps(body).encode()
            self.send_response(429 if is_refused else 200)
            self.send_header("content-type", "application/problem+json" if is_refused else "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def test_a_get_is_repeated_after_the_servers_time_and_in_one_trace() -> None:
    with refusing_twice() as (url, seen), Client(url) as client:
        client.status()
        assert len(seen) == 3 and len({trace for _, trace, _ in seen}) == 1
        assert all(later - earlier >= 0.1 for (_, _, earlier), (_, _, later) in zip(seen, seen[1:]))


def test_a_post_is_repeated_only_with_a_key() -> None:
    with refusing_twice() as (url, seen), Client(url) as client:
        with pytest.raises(errors.AtCapacity) as refused:
            client.submit("x")
        assert len(seen) == 1 and refused.value.retry_after == 0.1
        client.submit("x", idempotency_key="k")
        assert len(seen) == 3
