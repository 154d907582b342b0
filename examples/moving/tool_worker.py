"""A worker that runs the tools of agents, in a process of its own: start any number, on any machines.

    python tool_worker.py URL           on SIGTERM, ends after its running tools
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from laneway import AsyncClient, DoNotRetry, TaskRun, Worker

worker = Worker(AsyncClient(sys.argv[1]), lanes=["session:*/execute"], concurrency=4)


@worker.handler("bash")
async def bash(task: TaskRun) -> dict[str, Any]:
    program = await asyncio.create_subprocess_shell(
        task.payload["command"], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output = b""
    try:
        assert program.stdout is not None
        while piece := await program.stdout.read(4096):
            output += piece
            # Those who watch the session see the output as it comes.
            task.delta(piece.decode(errors="replace"))
        code = await program.wait()
    finally:
        # The task was cancelled or its lease is lost, so end the process.
        if program.returncode is None:
            program.kill()
    # A command that fails is an answer for the model, which reads the output.
    return {"exit_code": code, "output": output.decode(errors="replace")}


@worker.handler("*")
async def unknown(task: TaskRun) -> None:
    raise DoNotRetry(f"there is no tool {task.kind}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run_forever()
