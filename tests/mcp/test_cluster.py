"""The official Python client with a session behind a balancer, while the replicas restart one after another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from serving import HERE, WAIT_MAX_S
from ways import LEGACY, text

pytestmark = pytest.mark.anyio


@pytest.fixture
def cluster() -> Iterator[SimpleNamespace]:
    command = ["node", str(HERE / "cluster.mjs")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    described = json.loads(process.stdout.readline())

    def restart() -> None:
        process.stdin.write("restart\n")
        process.stdin.flush()
        assert process.stdout.readline() == "restarted\n"

    yield SimpleNamespace(**described, restart=restart)
    process.stdin.close()
    process.wait(WAIT_MAX_S)


async def test_every_call_of_a_session_is_answered_by_any_replica(cluster: SimpleNamespace) -> None:
    headers = {"authorization": f"Bearer {cluster.token}"}
    restarted = anyio.Event()
    sessions: set[str | None] = set()

    async def note(response: httpx2.Response) -> None:
        sessions.add(response.request.headers.get("mcp-session-id"))

    async def restart() -> None:
        await anyio.to_thread.run_sync(cluster.restart)
        restarted.set()

    async with httpx2.AsyncClient(headers=headers, timeout=WAIT_MAX_S, event_hooks={"response": [note]}) as http:
        transport = streamable_http_client(f"{cluster.url}/mcp", http_client=http)
        async with Client(transport, mode=LEGACY) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(restart)
            answered, left = 0, 12
            while left > 0:
                left -= restarted.is_set()
                message = f"message {answered}"
                answer = await client.call_tool("chat_with_agent", {"agent_name": "echo", "message": message})
                assert (answer.is_error, text(answer)) == (False, message)
                answered += 1
    assert answered >= 12
    # The handshake has no session, and all other requests have the same one.
    assert len(sessions) == 2 and None in sessions
