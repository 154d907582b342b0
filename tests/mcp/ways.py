"""Every way to the tools: both transports, the current revision and the handshake of older ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from serving import PROGRAM, WAIT_MAX_S, Server

MODERN, LEGACY = "2026-07-28", "legacy"
TOOLS = [
    "chat_with_agent",
    "get_task",
    "list_agents",
    "queue_status",
    "cancel_task",
    "explain_task",
    "clear_queue",
    "release_agent",
]
READERS = ["get_task", "list_agents", "queue_status", "explain_task"]


async def name_the_task(request: httpx2.Request) -> None:
    """Adds the header with the task, which the tasks extension needs and this client does not send."""
    message = json.loads(request.content or b"{}")
    if message.get("method") == "tasks/get":
        request.headers["mcp-name"] = message["params"]["taskId"]


@dataclass
class Way:
    """A transport and a revision, with its own gate."""

    server: Server
    transport: Literal["http", "stdio"]
    mode: str
    gate: str
    statuses: list[int] = field(default_factory=list)

    async def note(self, response: httpx2.Response) -> None:
        self.statuses.append(response.status_code)

    @asynccontextmanager
    async def client(self, token: str = "user", *, agent: str | None = None, **more: Any) -> AsyncIterator[Client]:
        secret = self.server.tokens.get(token, token)
        if self.transport == "stdio":
            words = ["mcp", "--url", self.server.url, *(["--agent", agent] if agent else [])]
            program = StdioServerParameters(command=PROGRAM, args=words, env={"LANEWAY_TOKEN": secret})
            async with Client(program, mode=self.mode, **more) as client:
                yield client
            return
        headers = {"authorization": f"Bearer {secret}"} | ({"x-source-agent": agent} if agent else {})
        hooks = {"request": [name_the_task], "response": [self.note]}
        async with httpx2.AsyncClient(headers=headers, timeout=WAIT_MAX_S, event_hooks=hooks) as http:
            transport = streamable_http_client(f"{self.server.url}/mcp", http_client=http)
            async with Client(transport, mode=self.mode, **more) as client:
                yield client


WAYS = [("http", MODERN), ("http", LEGACY), ("stdio", MODERN), ("stdio", LEGACY)]


class Call:
    """A running call, with the progress that it reports."""

    def __init__(self, client: Client, agent: str, message: str, **more: Any) -> None:
        self.client, self.more = client, more
        self.arguments = {"agent_name": agent, "message": message}
        self.told: list[str] = []
        self.heard = anyio.Event()
        self.scope = anyio.CancelScope()
        self.result: types.CallToolResult | None = None

    async def progress(self, _: float, __: float | None, message: str | None) -> None:
        self.told.append(message or "")
        self.heard.set()

    async def run(self) -> None:
        with self.scope:
            call = self.client.call_tool("chat_with_agent", self.arguments, progress_callback=self.progress, **self.more)
            self.result = await call

    async def status(self) -> str:
        with anyio.fail_after(WAIT_MAX_S):
            await self.heard.wait()
        return self.told[0]


def text(result: types.CallToolResult) -> str:
    return result.content[0].text
