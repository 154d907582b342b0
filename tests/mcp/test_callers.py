"""Callers: tokens, scopes, and agents that call agents."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from serving import Server
from ways import LEGACY, READERS, TOOLS, Call, Way, text

pytestmark = pytest.mark.anyio


async def test_a_wrong_token_is_refused(way: Way) -> None:
    with pytest.raises(Exception) as refused:
        async with way.client("tk_wrong.secret") as client:
            await client.list_tools()
    if way.transport == "http":
        # This client does not report the reason.
        assert set(way.statuses) == {401}
    else:
        assert "the request needs a token" in "".join(str(error) for error in flat(refused.value))


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


async def test_the_calling_agent_is_the_source(way: Way) -> None:
    for number, (token, agent) in enumerate([("agent:coder", None), ("user", "writer")]):
        name = f"source{number}{way.gate}"
        async with way.client(token, agent=agent) as client, anyio.create_task_group() as calls:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.status() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            way.server.open(name)
        current = queue["current_execution"]
        assert (current["source"], current["source_agent"]) == ("agent", agent or "coder")
    async with way.client("agent:coder", agent="another-agent") as client:
        refused = await client.call_tool("chat_with_agent", {"agent_name": "echo", "message": "x"})
        assert refused.is_error and refused.structured_content["code"] == "FORBIDDEN"


async def test_a_chain_of_agents_that_call_themselves_ends(tmp_path: Path) -> None:
    server = Server(tmp_path, "chain.hcl")
    try:
        async with Way(server, "stdio", LEGACY, "").client() as client:
            # Each turn borrows the slot of the turn that asked for it.
            ask = {"agent_name": "deep", "message": "x"}
            assert text(await client.call_tool("chat_with_agent", ask)) == "CHAIN_TOO_DEEP after 8"
            ask = {"agent_name": "deep", "message": "p", "parallel": True}
            assert text(await client.call_tool("chat_with_agent", ask)) == "CHAIN_TOO_DEEP after 8"
    finally:
        server.stop()
