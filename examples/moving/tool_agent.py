"""An agent whose tool calls run in lanes of its session: reads together, here; what changes something, in workers.

The tools of a session are in the lanes `session:KEY/query`, `/execute` and so on. The lane `execute` is external, so
`tool_worker.py` runs its tasks in another process.
"""

from __future__ import annotations

from typing import Any

from laneway import AsyncClient, AsyncEventStream, Laneway, Local, events
from laneway.types import BatchCall, BatchResult

CONFIG: dict[str, Any] = {
    "handler": {"read": {"command": ["cat"]}},
    "queue": {
        "query_max_concurrency": 4,
        "enable_dlq": True,
        "lane_handlers": {"execute": {"mode": "external", "timeout_ms": 60_000}},
    },
}


def serve() -> Local:
    return Laneway.local(config=CONFIG)


async def model_turn(client: AsyncClient, session: str, calls: list[tuple[str, Any]]) -> list[BatchResult]:
    """Runs the tool calls of one model turn. The results are in the order of the calls, and a failure stops nothing."""
    asked: list[BatchCall] = [{"tool": tool, "payload": payload} for tool, payload in calls]
    return (await client.batch(session, asked)).results


async def watch(stream: AsyncEventStream, ends: int) -> list[str]:
    """What a watcher of a session sees of its external tools, until `ends` of them have ended."""
    seen: list[str] = []
    async with stream:
        async for event in stream:
            if isinstance(event, events.ExternalTaskPending):
                seen.append(f"{event.kind} waits for a worker: {event.payload}")
            elif isinstance(event, events.ExternalTaskCompleted):
                seen.append(f"{event.kind} {'succeeded' if event.success else 'failed'}")
                ends -= 1
                if ends == 0:
                    break
    return seen
