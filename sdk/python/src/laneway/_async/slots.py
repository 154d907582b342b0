"""Slots: any code of the caller's own, guarded by lanes."""

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
    """One slot of each of some lanes: `async with client.slot(["main"]): …`.

    Entering waits for the slot. While the block runs the lease is renewed; if it is lost, the block is cancelled and
    `LeaseLost` is raised. Leaving gives the slot back, whatever happened. Each block needs a slot of its own.
    """

    def __init__(self, transport: AsyncTransport, leases: AsyncLeases, request: Mapping[str, Any]) -> None:
        self._transport = transport
        self._leases = leases
        self._request = request
        self._entered = False
        self._lost: Optional[str] = None
        self._block: Optional[asyncio.Task[Any]] = None
        self._cancelled_before = 0
        self._clock = LeaseClock(0.0)
        self.id = ""
        """The task that holds the slot."""
        self.fence = 0
        """Grows with each holder: show it to whatever must not listen to an old one."""

    async def __aenter__(self) -> AsyncSlot:
        if self._entered:
            raise RuntimeError("this slot guards a block already; ask client.slot() for another one")
        self._entered = True
        try:
            response = await self._transport.send("POST", path_of("slots"), body=self._request, waits=True)
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
            self._on_lost("it was told to stop")

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
        """Takes back the cancellation that the loss of the lease caused, whether or not the block has felt it.

        Returns whether another task has cancelled the block too, whose will then counts. Before Python 3.11 no task can
        tell.
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
                # The caller goes on; the report is repeated until it arrives.
                self._leases.say_later(path, body, self._clock)
                if isinstance(gone, asyncio.CancelledError):
                    raise
        return None


def _cancellations(task: Optional[asyncio.Task[Any]]) -> int:
    """How often a caller has asked to cancel this."""
    count = getattr(task, "cancelling", None)
    return 0 if count is None else int(count())
