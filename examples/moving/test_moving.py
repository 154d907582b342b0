"""The Python examples of this folder work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import tool_agent

from laneway import AsyncClient

HERE = Path(__file__).resolve().parent
WAIT_MAX_S = 180


def test_an_agent_gets_the_results_of_tools_that_run_in_another_process() -> None:
    with tool_agent.serve() as server:
        command = [sys.executable, str(HERE / "tool_worker.py"), server.url]
        worker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert worker.stderr is not None and "claims from session:*/execute" in worker.stderr.readline()
            asyncio.run(asyncio.wait_for(turn(server.url), WAIT_MAX_S))
        finally:
            worker.terminate()
            assert worker.wait(WAIT_MAX_S) == 0


async def turn(url: str) -> None:
    async with AsyncClient(url) as client:
        stream = await client.session("ann").events()
        calls = [("read", "a.txt"), ("bash", {"command": "echo one; exit 3"}), ("teleport", "home"), ("read", "b.txt")]
        results = await tool_agent.model_turn(client, "ann", calls)
        assert [result.result for result in results] == [
            "a.txt",
            {"exit_code": 3, "output": "one\n"},
            None,
            "b.txt",
        ]
        assert [result.success for result in results] == [True, True, False, True]
        error = results[2].error
        assert error is not None and error.detail == "the attempt failed: there is no tool teleport"
        seen = await tool_agent.watch(stream, 2)
        # The two run at once, each after it has waited.
        assert [line for line in seen if line.startswith("bash")] == [
            "bash waits for a worker: {'command': 'echo one; exit 3'}",
            "bash succeeded",
        ]
        assert [line for line in seen if line.startswith("teleport")] == [
            "teleport waits for a worker: home",
            "teleport failed",
        ]
        # What failed for good is kept, and found by its session.
        letters = await client.dead_letters(session="ann")
        assert [(letter.kind, letter.lane) for letter in letters] == [("teleport", "session:ann/execute")]
        stats = (await client.queue_stats("ann")).lanes["execute"]
        assert (stats.pending, stats.active, stats.handler_mode) == (0, 0, "external")
