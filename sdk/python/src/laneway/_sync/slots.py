"""Slots, which guard the caller's own code with lanes."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping, Optional

from .._lease import LeaseClock, lease_length
from ..types import HeartbeatAnswer, SlotAnswer
from ..errors import LanewayError, LeaseLost, StaleLease
from .leases import Leases
from .transport import Transport, given, meaning, path_of


class Slot:
    """A slot in each of some lanes: `with client.slot(["main"]) as slot: …`.

    Entering waits for the slot. While the block runs, the client renews the lease. Nothing can stop a thread from outside, so
    a long block calls `check()` regularly. It raises `LeaseLost` once the lease is lost, and so does the end of the block.
    Leaving the block always gives the slot back. Each block needs its own slot.
    """

    def __init__(
        self,
        transport: Transport,
        leases: Leases,
        request: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> None:
        self._transport = transport
        self._leases = leases
        self._request = request
        self._headers = headers
        self._entered = False
        self._lost: Optional[str] = None
        self._clock: Optional[LeaseClock] = None
        self.id: str = request.get("id", "")
        """The id of the slot's task. Before the grant it is known only if the caller chose it."""
        self.fence = 0
        """The fence, which grows with each grant. Pass it to systems that must reject an older owner."""

    @property
    def is_lost(self) -> bool:
        """Whether the lease is lost."""
        if self._lost is None and self._clock is not None and self._clock.left <= 0:
            self._lost = "no heartbeat arrived before the lease ended"
        return self._lost is not None

    def check(self) -> None:
        """Raises `LeaseLost` if the lease is lost."""
        if self.is_lost:
            raise LeaseLost(f"the slot is lost: {self._lost}")

    def __enter__(self) -> Slot:
        if self._entered:
            raise RuntimeError("this slot already guards a block; call client.slot() for another one")
        self._entered = True
        try:
            request = {"worker": self._leases.worker, **self._request}
            response = self._transport.send(
                "POST", path_of("slots"), body=request, headers=self._headers, waits=True
            )
            slot = meaning(SlotAnswer, response)
        except BaseException:
            self._entered = False
            raise
        self._clock = LeaseClock(lease_length(self._request.get("lease_ms"), slot.lease_until, response.headers))
        self.id, self.fence, self._lost = slot.id, slot.fence, None
        self._leases.keep(slot.id, slot.fence, self._clock, lost=self._on_lost, heard=self._on_heard)
        return self

    def _on_heard(self, answer: HeartbeatAnswer) -> None:
        if answer.cancel_requested and self._lost is None:
            self._on_lost("the server stopped it")

    def _on_lost(self, why: str) -> None:
        self._lost = why

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._leases.drop(self.id)
        try:
            stale = self._give_back(error)
            if error is None and (stale is not None or self._lost is not None):
                raise LeaseLost(f"the slot is lost: {self._lost or stale}") from stale
        finally:
            self._entered, self._clock = False, None

    def _give_back(self, error: Optional[BaseException]) -> Optional[StaleLease]:
        failed = type(error).__name__ if error is not None else None
        path = path_of("tasks", self.id, "complete")
        body = given(fence=self.fence, success=error is None, error=failed)
        try:
            if error is None:
                given_back = path_of("slots", self.id) + f"?fence={self.fence}"
                self._transport.send("DELETE", given_back, once=True)
            else:
                self._transport.send("POST", path, body=body)
        except StaleLease as stale:
            return stale
        except (LanewayError, KeyboardInterrupt) as gone:
            # The caller continues, and the background repeats the report until it arrives.
            assert self._clock is not None
            self._leases.say_later(path, body, self._clock)
            if isinstance(gone, KeyboardInterrupt):
                raise
        return None
