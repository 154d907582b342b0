"""A worker of a fleet: start any number of them, on any machines.

    python worker_fleet.py URL          on SIGTERM, ends after its running attempts
"""

from __future__ import annotations

import asyncio
import logging
import sys

from laneway import AsyncClient, DoNotRetry, TaskRun, Worker

worker = Worker(AsyncClient(sys.argv[1]), lanes=["external"], concurrency=2)


@worker.handler("shell")
async def shell(task: TaskRun) -> str:
    words: list[str] = task.payload.get("words", [])
    if not words:
        raise DoNotRetry("the payload needs a list of words")
    program = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        output, _ = await program.communicate()
    finally:
        # The task was cancelled or its lease is lost, so end the process.
        if program.returncode is None:
            program.kill()
    return output.decode()


@worker.handler("count")
def count(task: TaskRun) -> int:
    """A plain function runs in a thread, and regularly checks whether it must stop."""
    total = 0
    for step in range(int(task.payload["to"])):
        task.check()
        total += step
        task.progress({"step": step})
    return total


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run_forever()
