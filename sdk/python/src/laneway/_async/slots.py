"""Slots: any code of the caller's own, guarded by lanes."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Any, Mapping, Optional

from .._decode import decode
from .._lease import LeaseClock, lease_length
from ..types import HeartbeatAnswer, SlotAnswer
from ..errors import LanewayError, LeaseLost, StaleLease
from .leases import AsyncLeases
from .transport import AsyncTransport, given, path_of

log = logging.getLogger("laneway")


class AsyncSlot:
    """One slot of each of some lanes: `async with client.slot(["main"]): …`.

    Entering waits for the slot. While the block runs the lease is renewed; if it is lost, the block is cancelled and
    `LeaseLost` is raised. Leaving gives the slot back, whatever happened.
    """

    def __init__(self, transport: AsyncTransport, leases: AsyncLeases, request: Mapping[str, Any]) -> None:
        self._transport = transport
        self._leases = leases
        self._request = request
        self._lost: Optional[str] = None
        self._block: Optional[asyncio.Task[Any]] = None
        self.id = ""
        """The task that holds the slot."""
        self.fence = 0
        """Grows with each holder: show it to whatever must not listen to an old one."""

    async def __aenter__(self) -> AsyncSlot:
        response = await self._transport.send("POST", path_of("slots"), body=self._request, waits=True)
        slot = decode(SlotAnswer, response.json())
        clock = LeaseClock(lease_length(self._request.get("lease_ms"), slot.lease_until, response.headers))
        self.id, self.fence, self._lost = slot.id, slot.fence, None
        self._block = asyncio.current_task()
        self._leases.keep(slot.id, slot.fence, clock, lost=self._on_lost, heard=self._on_heard)
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
        if self._lost is not None:
            await self._end_of_cancellation(block, error)
            await self._give_back(error)
            if error is None or isinstance(error, asyncio.CancelledError):
                raise LeaseLost(f"the slot is lost: {self._lost}") from error
            return
        stale = await self._give_back(error)
        if stale is not None and error is None:
            raise LeaseLost(f"the slot is lost: {stale.detail}") from stale

    async def _end_of_cancellation(
        self, block: Optional[asyncio.Task[Any]], error: Optional[BaseException]
    ) -> None:
        """Takes back the cancellation that the loss of the lease caused, whether or not the block has felt it."""
        if not isinstance(error, asyncio.CancelledError):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                pass
        uncancel = getattr(block, "uncancel", None)
        if uncancel is not None:
            uncancel()

    async def _give_back(self, error: Optional[BaseException]) -> Optional[StaleLease]:
        failed = type(error).__name__ if error is not None else None
        body = given(fence=self.fence, success=error is None, error=failed)
        try:
            await self._transport.send("POST", path_of("tasks", self.id, "complete"), body=body)
        except StaleLease as stale:
            return stale
        except LanewayError as gone:
            log.warning("slot %s could not be given back, its lease will end it: %s", self.id, gone)
        return None
