"""A process of the slot test: enters a guarded block many times at once, and records each entry and exit.

    python guarded.py URL LANE BLOCKS LOG        each block appends "+" when it is inside and "-" before it leaves
    python guarded.py URL LANE hold LEASE_MS     takes one slot, says so, and holds it until it is killed
"""

from __future__ import annotations

import asyncio
import os
import sys

from laneway import AsyncClient


async def blocks(url: str, lane: str, count: int, log: str) -> None:
    # The system orders all one-byte writes to a file that is open for appending.
    file = os.open(log, os.O_WRONLY | os.O_APPEND)

    async def block(client: AsyncClient) -> None:
        async with client.slot([lane]):
            os.write(file, b"+")
            await asyncio.sleep(0.002)
            os.write(file, b"-")

    async with AsyncClient(url) as client:
        await asyncio.gather(*(block(client) for _ in range(count)))


async def hold(url: str, lane: str, lease_ms: int) -> None:
    async with AsyncClient(url) as client, client.slot([lane], lease_ms=lease_ms):
        print("held", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    where, which, how, last = sys.argv[1:]
    asyncio.run(hold(where, which, int(last)) if how == "hold" else blocks(where, which, int(how), last))
