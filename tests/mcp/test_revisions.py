"""Differences between MCP revisions: the tasks extension and sessions."""

from __future__ import annotations

import json
import urllib.error
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel
from serving import Server
from ways import MODERN, Way, text

pytestmark = pytest.mark.anyio


class CreatedTask(types.Result):
    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class GetTask(types.Request[dict[str, Any], str]):
    method: str = "tasks/get"


class AnyResult(types.Result):
    model_config = ConfigDict(extra="allow")


class Tasks(ClientExtension):
    """The tasks extension: the client waits with `tasks/get` for a call that became a task."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, server: Server, gate: str) -> None:
        self.server, self.gate, self.seen = server, gate, []

    def claims(self) -> list[ResultClaim[CreatedTask]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.resolve)]

    async def look(self, context: ClaimContext, task: str) -> dict[str, Any]:
        found = await context.session.send_request(GetTask(params={"taskId": task}), AnyResult)
        return found.model_dump(by_alias=True)

    async def resolve(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        self.seen.append(created.status)
        self.seen.append((await self.look(context, created.task_id))["status"])
        self.server.open(self.gate)
        await self.server.ended(created.task_id)
        done = await self.look(context, created.task_id)
        self.seen.append(done["status"])
        return types.CallToolResult.model_validate(done["result"])


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_client_that_knows_tasks_gets_one(impatient_server: Server, transport: Literal["http", "stdio"]) -> None:
    name = f"task-{transport}"
    way = Way(impatient_server, transport, MODERN, "gate-1")
    tasks = Tasks(impatient_server, name)
    async with way.client(extensions=[tasks]) as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name})
    assert tasks.seen == ["working", "working", "completed"]
    assert (result.is_error, text(result)) == (False, f"answer of {name}")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_older_revision_works(server: Server, version: str) -> None:
    accept = {"accept": "application/json, text/event-stream"}
    client = {"name": "old", "version": "1"}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    with server.request("/mcp", rpc(1, "initialize", hello), accept) as answer:
        session = answer.headers["mcp-session-id"]
        assert result_of(answer)["protocolVersion"] == version
    head = accept | {"mcp-session-id": session, "mcp-protocol-version": version}
    server.request("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, head).close()
    call = {"name": "chat_with_agent", "arguments": {"agent_name": "echo", "message": version}}
    with server.request("/mcp", rpc(2, "tools/call", call), head) as answer:
        assert result_of(answer)["content"] == [{"type": "text", "text": version}]
    with pytest.raises(urllib.error.HTTPError) as refused:
        server.request("/mcp", rpc(3, "tools/list", {}), head, token="reader")
    assert refused.value.code == 404, "a session is its token's alone"


def rpc(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result_of(answer: Any) -> dict[str, Any]:
    for line in answer:
        if line.startswith(b"data: {"):
            return json.loads(line[6:])["result"]
    raise AssertionError("no answer")
