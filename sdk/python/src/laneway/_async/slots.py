"""Slots, which guard the caller's own code with lanes."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Mapping, Optional

from .._lease import LeaseClock, lease_length
from ..types import HeartbeatAnswer, SlotAnswer
from ..errors import LanewayError, LeaseLost, StaleLease
from .leases import AsyncLeases
from .transport import AsyncTransport, given, meaning, path_of


class AsyncSlot:
    """A slot in each of some lanes: `async with client.slot(["main"]): …`.

    Entering waits for the slot. While the block runs, the client renews the lease. If it loses the lease, it cancels the
    block and raises `LeaseLost`. Leaving the block always gives the slot back. Each block needs its own slot.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        leases: AsyncLeases,
        request: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> None:
        self._transport = transport
        self._leases = leases
        self._request = request
        self._headers = headers
        self._entered = False
        self._lost: Optional[str] = None
        self._block: Optional[asyncio.Task[Any]] = None
        self._cancelled_before = 0
        self._clock = LeaseClock(0.0)
        self.id: str = request.get("id", "")
        """The id of the slot's task. Before the grant it is known only if the caller chose it."""
        self.fence = 0
        """The fence, which grows with each grant. Pass it to systems that must reject an older owner."""

    async def __aenter__(self) -> AsyncSlot:
        if self._entered:
            raise RuntimeError("this slot already guards a block; call client.slot() for another one")
        self._entered = True
        try:
            request = {"worker": self._leases.worker, **self._request}
            response = await self._transport.send(
                "POST", path_of("slots"), body=request, headers=self._headers, waits=True
            )
            slot = meaning(SlotAnswer, response)
        except BaseException:
            self._entered = False
            raise
        self._clock = LeaseClock(lease_length(self._request.get("lease_ms"), slot.lease_until, response.headers))
        self.id, self.fence, self._lost = slot.id, slot.fence, None
        self._block = asyncio.current_task()
        self._cancelled_before = _cancellations(self._block)
        self._leases.keep(slot.id, slot.fence, self._clock, lost=self._on_lost, heard=self._on_heard)
        return self

    def _on_heard(self, answer: HeartbeatAnswer) -> None:
        if answer.cancel_requested and self._lost is None:
            self._on_lost("the server stopped it")

    def _on_lost(self, why: str) -> None:
        self._lost = why
        if self._block is not None:
            self._block.cancel()

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._leases.drop(self.id)
        block, self._block = self._block, None
        is_cancelled = isinstance(error, asyncio.CancelledError)
        try:
            if self._lost is not None:
                others = await self._end_of_cancellation(block, is_cancelled)
                await self._give_back(error)
                if others and not is_cancelled:
                    raise asyncio.CancelledError
                if not others and (error is None or is_cancelled):
                    raise LeaseLost(f"the slot is lost: {self._lost}") from error
                return
            stale = await self._give_back(error)
            if stale is not None and error is None:
                raise LeaseLost(f"the slot is lost: {stale.detail}") from stale
        finally:
            self._entered = False

    async def _end_of_cancellation(self, block: Optional[asyncio.Task[Any]], is_felt: bool) -> bool:
        """Removes the cancellation that the loss of the lease caused, whether or not the block has received it.

        Returns whether another task has also cancelled the block. Before Python 3.11 this is unknown, and the answer is
        False.
        """
        if not is_felt:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                pass
        uncancel = getattr(block, "uncancel", None)
        return uncancel is not None and uncancel() > self._cancelled_before

    async def _give_back(self, error: Optional[BaseException]) -> Optional[StaleLease]:
        failed = type(error).__name__ if error is not None else None
        path = path_of("tasks", self.id, "complete")
        body = given(fence=self.fence, success=error is None, error=failed)
        with self._leases.leaving():
            try:
                if error is None:
                    given_back = path_of("slots", self.id) + f"?fence={self.fence}"
                    await self._transport.send("DELETE", given_back, once=True)
                else:
                    await self._transport.send("POST", path, body=body)
            except StaleLease as stale:
                return stale
            except (LanewayError, asyncio.CancelledError) as gone:
                # The caller continues, and the background repeats the report until it arrives.
                self._leases.say_later(path, body, self._clock)
                if isinstance(gone, asyncio.CancelledError):
                    raise
        return None


def _cancellations(task: Optional[asyncio.Task[Any]]) -> int:
    """How often callers have cancelled a task."""
    count = getattr(task, "cancelling", None)
    return 0 if count is None else int(count())
