"""The MCP guide: its samples, and a bridge that survives a restart of the server."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from serving import HERE, PROGRAM, WAIT_MAX_S, Server
from ways import LEGACY, MODERN, TOOLS, Way, text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", [MODERN, LEGACY])
async def test_the_bridge_survives_a_restart_of_the_server(tmp_path: Path, mode: str) -> None:
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
    guide = (HERE.parent.parent / "docs/guide/mcp.md").read_text()
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
            async with httpx2.AsyncClient(headers=told["headers"], timeout=WAIT_MAX_S) as http:
                async with Client(streamable_http_client(told["url"], http_client=http)) as client:
                    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS[:6]
    made = server.run(*samples[0][1].split()[1:], "--config", server.config)
    assert made.startswith("lw_")
    # The last sample is for a server without tokens.
    alone = Server(tmp_path_factory.mktemp("alone"), "laneway.hcl", with_tokens=False)
    try:
        script = samples[3][1].replace("http://127.0.0.1:7717", alone.url)
        done = await anyio.run_process([sys.executable, "-c", script])
        assert done.stdout.decode() == "hello\n"
    finally:
        alone.stop()
