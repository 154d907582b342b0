"""Real servers for the tests."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, Union

import pytest

from laneway import AsyncClient, Client, Laneway, Local

T = TypeVar("T")

WAIT_MAX_S = 180
"""How long a test waits. An idle machine needs some milliseconds; only a failure reaches it."""

LISTENER = """read -r asked; echo '{"type": "progress"}'; read -r passed; echo '{"type": "result", "result": "heard"}'"""

CONFIG: dict[str, Any] = {
    "lane": {
        "main": {"max_concurrency": 4},
        "three": {"max_concurrency": 3, "max_queued": 1000},
        "one": {"max_concurrency": 1, "max_queued": 1},
        "tight": {"max_concurrency": 1, "max_queued": 0},
        "external": {"max_concurrency": 4, "handler": "external"},
        "again": {"handler": "external", "retry": {"strategy": "fixed", "max_retries": 1, "fixed_delay": "10ms"}},
        "global": {"max_concurrency": 100},
    },
    "agent": {
        "upper": {"command": ["tr", "a-z", "A-Z"]},
        "slow": {"command": ["sleep", "60"], "max_queued": 3},
        "broken": {"command": ["sh", "-c", "echo went wrong >&2; exit 3"]},
        "outside": {"external": True},
        "echo": {"echo": True},
        # It answers once a message has been passed into its turn.
        "listener": {"protocol": "jsonl", "command": ["sh", "-c", LISTENER]},
    },
    "handler": {
        "read": {"command": ["cat"]},
        "bash": {"command": ["cat"]},
        "write": {"command": ["cat"]},
    },
    "queue": {"query_max_concurrency": 4},
}


@pytest.fixture(scope="session")
def server() -> Iterator[Local]:
    with Laneway.local(config=CONFIG) as running:
        yield running


@pytest.fixture()
def client(server: Local) -> Iterator[Client]:
    with server.client() as connected:
        yield connected


class Restarting:
    """A server with a file store on a fixed port, which a test can kill and restart."""

    def __init__(self, store: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._listen = f"127.0.0.1:{probe.getsockname()[1]}"
        self._store = store
        self.running = self._start()
        self.url = self.running.url

    def _start(self) -> Local:
        return Laneway.local(self._store, config=CONFIG, listen=self._listen)

    def kill(self) -> None:
        os.kill(self.running.pid, signal.SIGKILL)
        self.running.close()

    def start(self) -> None:
        self.running = self._start()

    def close(self) -> None:
        self.running.close()


@pytest.fixture()
def restarting(tmp_path: Path) -> Iterator[Restarting]:
    server = Restarting(tmp_path / "data")
    yield server
    server.close()


def run(url: Union[str, list[str]], test: Callable[[AsyncClient], Awaitable[T]], **how: Any) -> T:
    """Runs an asynchronous test with a client."""
    import asyncio

    async def with_client() -> T:
        async with AsyncClient(url, **how) as client:
            return await asyncio.wait_for(test(client), WAIT_MAX_S)

    return asyncio.run(with_client())
