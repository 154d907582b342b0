"""The cost of a slot, compared with a plain request of the same HTTP client to the same server: `python scripts/bench.py`.

It alternates the operations and takes the median of the ratios of all rounds. The exit status is 1 if a bound fails.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from laneway import AsyncClient, Client, Laneway

ROUNDS, EACH, BOUND = 15, 100, 3.0


def report(what: str, pairs: list[tuple[float, float]]) -> bool:
    ratios = sorted(slot / plain for slot, plain in pairs)
    ratio = statistics.median(ratios)
    slot, plain = (statistics.median(side) * 1e6 for side in zip(*pairs))
    holds = ratio <= BOUND
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(
        f"{what:<28} {slot:>9.0f} us {plain:>9.0f} us {ratio:>7.2f}  ({spread})  <= {BOUND:.0f}  "
        f"{'holds' if holds else 'DOES NOT HOLD'}"
    )
    return holds


async def asynchronous(url: str) -> list[tuple[float, float]]:
    async with AsyncClient(url) as client:

        async def pair() -> tuple[float, float]:
            began = time.perf_counter()
            async with client.slot(["bench"]):
                pass
            between = time.perf_counter()
            await client.transport.http.get("/api/status")
            return between - began, time.perf_counter() - between

        return [middle([await pair() for _ in range(EACH)]) for _ in range(ROUNDS)]


def synchronous(url: str) -> list[tuple[float, float]]:
    with Client(url) as client:

        def pair() -> tuple[float, float]:
            began = time.perf_counter()
            with client.slot(["bench"]):
                pass
            between = time.perf_counter()
            client.transport.http.get("/api/status")
            return between - began, time.perf_counter() - between

        return [middle([pair() for _ in range(EACH)]) for _ in range(ROUNDS)]


def middle(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians of a round, which ignore other load during a single operation."""
    slots, plains = zip(*pairs)
    return statistics.median(slots), statistics.median(plains)


def main() -> int:
    with Laneway.local() as queue:
        print(f"{'':<28} {'slot':>12} {'plain':>12} {'ratio':>7}")
        held = [
            report("Python, asynchronous", asyncio.run(asynchronous(queue.url))),
            report("Python, synchronous", synchronous(queue.url)),
        ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
