"""The official Python client against a real server: both transports, the current revision and the handshake of older ones."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import jsonschema
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel
from serving import HERE, PROGRAM, Server

pytestmark = pytest.mark.anyio

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


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("mcp"), "laneway.hcl")
    yield running
    running.stop()


async def name_the_task(request: httpx2.Request) -> None:
    """The tasks extension wants the task in a header as well, of which this client does not know."""
    message = json.loads(request.content or b"{}")
    if message.get("method") == "tasks/get":
        request.headers["mcp-name"] = message["params"]["taskId"]


@dataclass
class Way:
    """A transport and a revision, with a gate of its own."""

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
        async with httpx2.AsyncClient(headers=headers, timeout=30, event_hooks=hooks) as http:
            transport = streamable_http_client(f"{self.server.url}/mcp", http_client=http)
            async with Client(transport, mode=self.mode, **more) as client:
                yield client


WAYS = [("http", MODERN), ("http", LEGACY), ("stdio", MODERN), ("stdio", LEGACY)]


@pytest.fixture(params=range(4), ids=[f"{transport}-{mode}" for transport, mode in WAYS])
def way(request: pytest.FixtureRequest, server: Server) -> Way:
    return Way(server, *WAYS[request.param], gate=f"gate-{request.param + 1}")


class Call:
    """A call under way, with what is told of its progress."""

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

    async def stands(self) -> str:
        with anyio.fail_after(20):
            await self.heard.wait()
        return self.told[0]


def text(result: types.CallToolResult) -> str:
    return result.content[0].text


async def test_tools_are_listed_in_order_with_strict_schemas(way: Way) -> None:
    async with way.client("admin") as client:
        assert client.session.protocol_version == (MODERN if way.mode == MODERN else "2025-11-25")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        for tool in tools:
            assert tool.input_schema["additionalProperties"] is False
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.annotations.read_only_hint is (tool.name in READERS)
        again = (await client.list_tools()).tools
        assert again == tools


async def test_an_agent_is_asked_and_answers(way: Way) -> None:
    async with way.client() as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": "echo", "message": "hello"})
        assert (result.is_error, text(result)) == (False, "hello")
        assert result.structured_content["response"] == "hello"
        task = result.structured_content["execution"]["id"]
        looked = await client.call_tool("get_task", {"task_id": task})
        assert (looked.structured_content["status"], looked.structured_content["result"]) == ("completed", "hello")
        listed = await client.call_tool("list_agents", {})
        assert "echo" in [agent["name"] for agent in listed.structured_content["items"]]
        explained = await client.call_tool("explain_task", {"task_id": task})
        assert explained.structured_content["status"] == "completed"
        beside = {"agent_name": "echo", "message": "beside", "parallel": True, "session": "s"}
        assert text(await client.call_tool("chat_with_agent", beside)) == "beside"


async def test_a_failed_run_is_an_error_that_says_so(way: Way) -> None:
    async with way.client() as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": "broken", "message": "x"})
        assert result.is_error and result.structured_content["code"] == "RUN_FAILED"


async def test_what_makes_no_sense_is_told_and_starts_nothing(way: Way) -> None:
    async with way.client("admin") as client:
        cases = [
            ("chat_with_agent", {"agent_name": "echo", "message": "x", "agent": 1}, "expected one of `agent_name`"),
            ("chat_with_agent", {"agent_name": "echo"}, "missing field `message`"),
            ("chat_with_agent", {"agent_name": "echo", "message": 5}, "expected a string"),
            ("chat_with_agent", {"agent_name": "echo", "message": " "}, "message must not be empty"),
            ("chat_with_agent", {"agent_name": "nobody", "message": "x"}, "there is no such agent"),
            ("list_agents", {"limit": 5}, "takes no arguments"),
            ("get_task", {"task_id": "nothing"}, "there is no such task"),
            ("clear_queue", {}, "missing field `agent_name`"),
        ]
        for tool, arguments, expected in cases:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and expected in text(result), (tool, arguments, text(result))
        with pytest.raises(Exception, match="no such tool"):
            await client.call_tool("drop_everything", {})


async def test_a_full_line_answers_busy_with_the_computed_time(way: Way) -> None:
    async with way.client() as client, anyio.create_task_group() as calls:
        first, second = (Call(client, way.gate, f"busy{way.gate}{number}") for number in (1, 2))
        calls.start_soon(first.run)
        assert await first.stands() == "running"
        calls.start_soon(second.run)
        assert await second.stands() == "position 1 in line"
        result = await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": "third"})
        busy = result.structured_content
        details = busy.pop("details")
        assert result.is_error
        assert busy == {
            "status": "agent_busy",
            "agent": way.gate,
            "queue_status": "queue_full",
            "retry_after_seconds": details["retry_after"],
            "message": text(result),
        }
        assert f"Retry in {details['retry_after']} s." in text(result)
        numbers = (details["code"], details["lane"], details["running"], details["queue_length"], details["max_queued"])
        assert numbers == ("AT_CAPACITY", f"agent:{way.gate}", 1, 1, 1)
        with pytest.raises(urllib.error.HTTPError) as refused:
            way.server.request(f"/api/agents/{way.gate}/chat", {"message": "x"})
        # The same decision over HTTP, a moment later.
        assert refused.value.code == 429
        assert abs(int(refused.value.headers["retry-after"]) - details["retry_after"]) <= 2
        queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
        assert (queue["is_busy"], queue["queue_length"]) == (True, 1)
        async with way.client("admin") as admin:
            cleared = await admin.call_tool("clear_queue", {"agent_name": way.gate})
            assert cleared.structured_content["cleared_count"] == 1
            released = await admin.call_tool("release_agent", {"agent_name": way.gate})
            assert released.structured_content["was_running"] is True
    actions = [entry["action"] for entry in way.server.get("/api/audit")["items"]]
    assert "clear_queue" in actions and "force_release" in actions


async def test_a_call_that_takes_long_answers_with_its_task_and_the_same_call_joins_it(way: Way) -> None:
    name = f"long{way.gate}"
    arguments = {"agent_name": way.gate, "message": name}
    async with way.client() as client:
        going = (await client.call_tool("chat_with_agent", arguments)).structured_content
        assert (going["status"], going["execution"]["status"]) == ("still_going", "running")
        again = (await client.call_tool("chat_with_agent", arguments)).structured_content
        assert again["task_id"] == going["task_id"]
        way.server.open(name)
        assert await way.server.ended(going["task_id"]) == "completed"
        found = (await client.call_tool("get_task", {"task_id": going["task_id"]})).structured_content
        assert found["result"] == f"answer of {name}"
        assert way.server.runs(name) == 1


async def test_the_same_call_again_makes_no_second_run_until_it_has_ended(way: Way) -> None:
    name = f"same{way.gate}"
    async with way.client() as client:
        async with anyio.create_task_group() as calls:
            first, second = Call(client, way.gate, name), Call(client, way.gate, name)
            for call in (first, second):
                calls.start_soon(call.run)
                assert await call.stands() == "running"
            way.server.open(name)
        assert first.result.structured_content["execution"]["id"] == second.result.structured_content["execution"]["id"]
        assert way.server.runs(name) == 1
        await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name})
        assert way.server.runs(name) == 2
        key = {"laneway/idempotency-key": f"key{way.gate}"}
        keyed = [await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name}, meta=key) for _ in "ab"]
        assert text(keyed[0]) == text(keyed[1]) and way.server.runs(name) == 3


async def test_a_cancelled_call_cancels_its_run(way: Way) -> None:
    name = f"cancel{way.gate}"
    async with way.client() as client:
        async with anyio.create_task_group() as calls:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.stands() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            call.scope.cancel()
        assert await way.server.ended(queue["current_execution"]["id"]) == "cancelled"


async def test_a_client_that_leaves_gives_its_slot_back(way: Way) -> None:
    name = f"leave{way.gate}"
    async with anyio.create_task_group() as calls:
        async with way.client() as client:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.stands() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            call.scope.cancel()
    assert await way.server.ended(queue["current_execution"]["id"]) == "cancelled"


async def test_cancel_task_ends_a_run_of_the_same_token_only(way: Way) -> None:
    name = f"tool{way.gate}"
    async with way.client() as client, way.client("agent:coder") as other:
        going = await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name})
        task = {"task_id": going.structured_content["task_id"]}
        refused = await other.call_tool("cancel_task", task)
        assert refused.is_error and refused.structured_content["code"] == "FORBIDDEN"
        cancelled = await client.call_tool("cancel_task", task)
        assert cancelled.structured_content["status"] == "cancelling"
        assert await way.server.ended(task["task_id"]) == "cancelled"


async def test_a_wrong_token_is_refused(way: Way) -> None:
    with pytest.raises(Exception) as refused:
        async with way.client("tk_wrong.secret") as client:
            await client.list_tools()
    if way.transport == "http":
        # This client does not tell why.
        assert set(way.statuses) == {401}
    else:
        assert "a token is needed" in "".join(str(error) for error in flat(refused.value))


def flat(error: BaseException) -> list[BaseException]:
    return [inner for each in error.exceptions for inner in flat(each)] if isinstance(error, BaseExceptionGroup) else [error]


async def test_a_token_sees_and_uses_what_its_scopes_allow(way: Way) -> None:
    async with way.client("reader") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == READERS
        assert not (await client.call_tool("list_agents", {})).is_error
        for tool, arguments in [
            ("chat_with_agent", {"agent_name": "echo", "message": "x"}),
            ("cancel_task", {"task_id": "0"}),
            ("clear_queue", {"agent_name": "echo"}),
            ("release_agent", {"agent_name": "echo"}),
        ]:
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error and refused.structured_content["code"] == "FORBIDDEN", tool
    async with way.client() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS[:6]


async def test_the_agent_that_asks_is_the_source(way: Way) -> None:
    for number, (token, agent) in enumerate([("agent:coder", None), ("user", "writer")]):
        name = f"source{number}{way.gate}"
        async with way.client(token, agent=agent) as client, anyio.create_task_group() as calls:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.stands() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            way.server.open(name)
        current = queue["current_execution"]
        assert (current["source"], current["source_agent"]) == ("agent", agent or "coder")
    async with way.client("agent:coder", agent="somebody-else") as client:
        refused = await client.call_tool("chat_with_agent", {"agent_name": "echo", "message": "x"})
        assert refused.is_error and refused.structured_content["code"] == "FORBIDDEN"


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
    """The tasks extension: a call that became a task is waited for with `tasks/get`."""

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
async def test_a_client_that_knows_tasks_gets_one(server: Server, transport: Literal["http", "stdio"]) -> None:
    name = f"task-{transport}"
    way = Way(server, transport, MODERN, "gate-1")
    tasks = Tasks(server, name)
    async with way.client(extensions=[tasks]) as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name})
    assert tasks.seen == ["working", "working", "completed"]
    assert (result.is_error, text(result)) == (False, f"answer of {name}")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_older_revision_is_spoken(server: Server, version: str) -> None:
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


async def test_agents_that_ask_themselves_come_to_an_end(tmp_path: Path) -> None:
    server = Server(tmp_path, "chain.hcl")
    try:
        async with Way(server, "stdio", LEGACY, "").client() as client:
            ask = {"agent_name": "deep", "message": "x"}
            assert text(await client.call_tool("chat_with_agent", ask)) == "WOULD_DEADLOCK after 1"
            ask = {"agent_name": "deep", "message": "p", "parallel": True}
            assert text(await client.call_tool("chat_with_agent", ask)) == "CHAIN_TOO_DEEP after 8"
    finally:
        server.stop()


@pytest.mark.parametrize("mode", [MODERN, LEGACY])
async def test_the_bridge_goes_on_with_a_server_that_was_started_again(tmp_path: Path, mode: str) -> None:
    server = Server(tmp_path, "laneway.hcl")
    try:
        async with Way(server, "stdio", mode, "").client() as client:
            ask = {"agent_name": "echo", "message": "hello"}
            assert text(await client.call_tool("chat_with_agent", ask)) == "hello"
            server.stop()
            with pytest.raises(Exception, match="no server answers"):
                await client.call_tool("chat_with_agent", ask)
            server.start()
            assert text(await client.call_tool("chat_with_agent", ask)) == "hello"
    finally:
        server.stop()


async def test_the_samples_of_the_guide_work(server: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    guide = (HERE.parent.parent / "docs/mcp.md").read_text()
    samples = re.findall(r"```(\w+)\n(.*?)```", guide, re.DOTALL)
    assert [language for language, _ in samples] == ["sh", "json", "json", "python"]
    program, address = samples[1][1], samples[2][1]
    for sample in (program, address):
        sample = sample.replace("http://127.0.0.1:7717", server.url).replace("lw_….…", server.tokens["user"])
        told = json.loads(sample)["mcpServers"]["laneway"]
        if "command" in told:
            assert told["command"] == "laneway"
            way = Client(StdioServerParameters(command=PROGRAM, args=told["args"], env=told["env"]))
            async with way as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS[:6]
        else:
            async with httpx2.AsyncClient(headers=told["headers"]) as http:
                async with Client(streamable_http_client(told["url"], http_client=http)) as client:
                    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS[:6]
    made = server.run(*samples[0][1].split()[1:], "--config", server.config)
    assert made.startswith("lw_")
    # The last one is for a server without tokens.
    alone = Server(tmp_path_factory.mktemp("alone"), "laneway.hcl", with_tokens=False)
    try:
        script = samples[3][1].replace("http://127.0.0.1:7717", alone.url)
        done = await anyio.run_process([sys.executable, "-c", script])
        assert done.stdout.decode() == "hello\n"
    finally:
        alone.stop()
