"""From asyncio.Semaphore to a lane: the same block, with a limit across all machines.

    python from_semaphore.py URL
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any, Callable

from laneway import AsyncClient

inside = most = 0


async def work() -> None:
    global inside, most
    inside += 1
    most = max(most, inside)
    await asyncio.sleep(0.01)
    inside -= 1


async def twelve(guard: Callable[[], AbstractAsyncContextManager[Any]]) -> int:
    """Starts twelve blocks at once, and returns how many ran at once at most."""
    global most
    most = 0

    async def block() -> None:
        async with guard():
            await work()

    await asyncio.gather(*(block() for _ in range(12)))
    return most


async def main(url: str) -> None:
    # Before: the semaphore counts only in this process.
    semaphore = asyncio.Semaphore(3)
    print(f"semaphore: {await twelve(lambda: semaphore)} at most")

    # After: the lane counts in all processes, shows waiting tasks, and can change at any time.
    async with AsyncClient(url) as client:
        await client.lane("calls").change(max_concurrency=3, max_queued=100)
        print(f"lane: {await twelve(lambda: client.slot(['calls']))} at most")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
