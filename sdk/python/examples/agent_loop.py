"""An agent loop whose tool calls go through lanes: reads run together, writes one after another.

    python agent_loop.py URL            the tools run in this program, as a worker of the session's tool lanes
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from laneway import AsyncClient, TaskRun, Worker
from laneway.types import BatchCall

files: dict[str, str] = {"a.txt": "alpha", "b.txt": "beta"}


def tools(client: AsyncClient, session: str) -> Worker:
    worker = Worker(client, lanes=[f"session:{session}/*"], concurrency=8, poll=0.5)

    @worker.handler("read")
    async def read(task: TaskRun) -> str:
        await asyncio.sleep(0.05)
        return files[task.payload["path"]]

    @worker.handler("write")
    async def write(task: TaskRun) -> int:
        path, text = task.payload["path"], task.payload["text"]
        files[path] = files.get(path, "") + text
        return len(files[path])

    return worker


async def model(turn: int, results: list[Any]) -> list[BatchCall]:
    """A stand-in for a model: the tool calls of each of its turns."""
    if turn == 0:
        return [{"tool": "read", "payload": {"path": path}} for path in files]
    if turn == 1:
        return [{"tool": "write", "payload": {"path": "c.txt", "text": text}} for text in results]
    return []


async def main(url: str, session: str) -> None:
    async with AsyncClient(url) as client:
        for lane in ("query", "execute"):
            await client.set_lane_handler(lane, "external", session=session)
        worker = tools(client, session)
        working = asyncio.ensure_future(worker.run())
        turn, results = 0, list[Any]()
        while calls := await model(turn, results):
            answer = await client.batch(session, calls)
            results = [result.result for result in answer.results]
            print(f"turn {turn}: {results}")
            turn += 1
        print(f"c.txt: {files['c.txt']}")
        worker.drain()
        await working


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], "example"))
