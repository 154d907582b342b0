"""Leases that are kept alive in the background."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Mapping, Optional

from .._decode import decode
from .._lease import LeaseClock
from ..types import HeartbeatAnswer
from ..errors import LanewayError, NotFound, Refusal, StaleLease
from .transport import AsyncTransport, path_of

Lost = Callable[[str], None]
Heard = Callable[[HeartbeatAnswer], None]
Say = Callable[[], Mapping[str, Any]]


class AsyncLeases:
    """Gives a sign of life each third of each lease."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._kept: dict[str, asyncio.Task[None]] = {}

    def keep(
        self,
        task: str,
        fence: int,
        clock: LeaseClock,
        *,
        lost: Lost,
        heard: Optional[Heard] = None,
        say: Optional[Say] = None,
        wake: Optional[asyncio.Event] = None,
    ) -> None:
        """Keeps this lease alive until it is dropped or lost.

        `say` gives what else a sign of life carries, `wake` asks for one at once, `heard` gets its answer.
        """
        signs = self._signs(task, fence, clock, lost, heard, say, wake or asyncio.Event())
        self._kept[task] = asyncio.create_task(signs)

    def drop(self, task: str) -> None:
        """No more signs of life for this one."""
        kept = self._kept.pop(task, None)
        if kept is not None:
            kept.cancel()

    def close(self) -> None:
        for task in list(self._kept):
            self.drop(task)

    async def _signs(
        self,
        task: str,
        fence: int,
        clock: LeaseClock,
        lost: Lost,
        heard: Optional[Heard],
        say: Optional[Say],
        wake: asyncio.Event,
    ) -> None:
        pause = clock.next_sign
        while True:
            try:
                await asyncio.wait_for(wake.wait(), pause)
            except asyncio.TimeoutError:
                pass
            wake.clear()
            asked_at = clock.now()
            body = {"fence": fence, **(say() if say else {})}
            try:
                answer = await asyncio.wait_for(self._sign(task, body), max(clock.left, 0.05))
            except (StaleLease, NotFound) as refused:
                return self._over(task, lost, refused.detail)
            except (LanewayError, asyncio.TimeoutError) as error:
                if isinstance(error, Refusal) and not error.retryable:
                    return self._over(task, lost, error.detail)
                if clock.left <= 0:
                    return self._over(task, lost, "no sign of life was heard before the lease was over")
                pause = min(clock.next_try, max(clock.left, 0))
                continue
            clock.renewed(asked_at)
            pause = clock.next_sign
            if heard:
                heard(answer)

    async def _sign(self, task: str, body: Mapping[str, Any]) -> HeartbeatAnswer:
        response = await self._transport.send("POST", path_of("tasks", task, "heartbeat"), body=body)
        return decode(HeartbeatAnswer, response.json())

    def _over(self, task: str, lost: Lost, why: str) -> None:
        self._kept.pop(task, None)
        lost(why)
