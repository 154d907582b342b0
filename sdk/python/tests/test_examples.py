"""The examples work."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import httpx2
import pytest
from conftest import WAIT_MAX_S

from laneway import Client, Laneway, Local

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(scope="module")
def own() -> Iterator[Local]:
    config = {
        "lane": {"main": {"max_concurrency": 2, "max_queued": 2}, "external": {"max_concurrency": 8, "handler": "external"}},
        "queue": {"query_max_concurrency": 4},
    }
    with Laneway.local(config=config) as running:
        yield running


def example(name: str, *words: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name, *words], capture_output=True, text=True, timeout=WAIT_MAX_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_moving_from_a_semaphore(own: Local) -> None:
    assert example("from_semaphore.py", own.url) == "semaphore: 3 at most\nlane: 3 at most\n"


def test_an_agent_loop_reads_in_parallel_and_writes_in_order(own: Local) -> None:
    assert example("agent_loop.py", own.url) == "turn 0: ['alpha', 'beta']\nturn 1: [5, 9]\nc.txt: alphabeta\n"


def test_a_fleet_of_workers_shares_the_work_and_drains(own: Local) -> None:
    command = [sys.executable, str(EXAMPLES / "worker_fleet.py"), own.url]
    fleet = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for worker in fleet:
        assert worker.stderr is not None and "claims from external" in worker.stderr.readline()
    with own.client() as client:
        echoes = [client.submit("shell", {"words": ["echo", str(n)]}, lanes=["external"]) for n in range(12)]
        counted = client.submit("count", {"to": 10}, lanes=["external"])
        wrong = client.submit("shell", {}, lanes=["external"])
        assert [client.wait(task.id).result for task in echoes] == [f"{n}\n" for n in range(12)]
        assert client.wait(counted.id).result == 45
        assert client.wait(wrong.id).error == "the payload needs a list of words"
    for worker in fleet:
        worker.terminate()
    assert [worker.wait(30) for worker in fleet] == [0, 0, 0]


def test_a_chat_handler_in_fastapi_is_protected(own: Local) -> None:
    command = [sys.executable, "-m", "uvicorn", "fastapi_chat:app", "--port", "0", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        command, cwd=EXAMPLES, stderr=subprocess.PIPE, text=True, env={**os.environ, "LANEWAY_URL": own.url}
    )
    try:
        assert server.stderr is not None
        url = next(line.split()[4] for line in server.stderr if "running on" in line)
        ask(url, own)
    finally:
        server.terminate()
        server.wait(30)


def ask(url: str, own: Local) -> None:
    def chat(n: int) -> Any:
        return httpx2.post(f"{url}/chat", json={"user": f"user-{n}", "message": f"hi {n}"}, timeout=WAIT_MAX_S)

    with ThreadPoolExecutor(6) as pool, own.client() as client:
        client.lane("main").pause()
        asked = [pool.submit(chat, n) for n in range(6)]
        # Two requests wait; the server refuses the others with a retry time.
        refusals = list(itertools.islice(as_completed(asked), 4))
        client.lane("main").resume()
        answers = [answer.result() for answer in asked]
    assert {answer.result().status_code for answer in refusals} == {429}
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert {answer.json()["answer"] for answer in answers if answer.status_code == 200} <= {f"HI {n}" for n in range(6)}
    with own.client() as client:
        assert client.lane("main").get().running == 0
