"""The Python examples of this folder work."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

import httpx2
import tool_agent

from laneway import AsyncClient, Client, Laneway, events

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


def test_agents_of_a_platform_come_and_go_at_run_time() -> None:
    with Laneway.local(config={"lane": {"global": {"max_concurrency": 100}}}) as lanes:
        command = [sys.executable, "-m", "uvicorn", "agent_platform:app", "--port", "0", "--host", "127.0.0.1"]
        environment = {**os.environ, "LANEWAY_URL": lanes.url}
        platform = subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert platform.stderr is not None
            url = next(line.split()[4] for line in platform.stderr if "running on" in line)
            with lanes.client() as client:
                talk(url, client)
        finally:
            platform.terminate()
            platform.wait(WAIT_MAX_S)


def talk(url: str, client: Client) -> None:
    def post(path: str, body: object = None) -> httpx2.Response:
        return httpx2.post(f"{url}{path}", json=body, timeout=WAIT_MAX_S)

    def chat(name: str, message: str) -> httpx2.Response:
        return post(f"/api/agents/{name}/chat", {"message": message})

    names = [f"agent-{number}" for number in range(12)]
    for name in names:
        assert post("/api/agents", {"name": name}).status_code == 201
    with ThreadPoolExecutor(16) as pool, client.events() as told:
        # One turn of each agent runs: they do not hinder each other.
        turns = [pool.submit(chat, name, "wait") for name in names]
        running: set[Optional[str]] = set()
        while len(running) < len(names):
            event = next(told)
            if isinstance(event, events.Started):
                running.add(event.task_id)

        # Of one agent, three wait, and the next one is refused.
        waiting = [pool.submit(chat, names[0], f"{number}") for number in range(3)]
        queue = httpx2.get(f"{url}/api/agents/{names[0]}/queue").json()
        while queue["queue_length"] < 3:
            next(told)
            queue = httpx2.get(f"{url}/api/agents/{names[0]}/queue").json()
        assert queue["is_busy"] and sorted(queue["waiting"]) == ["0", "1", "2"]
        full = chat(names[0], "one too many")
        assert (full.status_code, full.json()["queue_length"]) == (429, 3)
        assert int(full.headers["retry-after"]) >= 1
        assert post(f"/api/agents/{names[0]}/queue/clear").json() == {"cleared_count": 3}
        assert [turn.result().status_code for turn in waiting] == [409, 409, 409]

        # A turn that hangs is released, and the next one runs although the old one is still going.
        assert post(f"/api/agents/{names[0]}/queue/release").json() == {"was_running": True}
        assert chat(names[0], "next").json()["response"] == "agent-0: next"
        for name in names:
            assert post(f"/containers/{name}/go-on").status_code == 200
        answers = [turn.result() for turn in turns]
        assert answers[0].status_code == 409
        assert [answer.json()["response"] for answer in answers[1:]] == [f"{name}: wait" for name in names[1:]]

    assert httpx2.delete(f"{url}/api/agents/{names[1]}").status_code == 204
    assert chat(names[1], "gone").status_code == 404
    assert chat(names[2], "here").json()["response"] == "agent-2: here"
