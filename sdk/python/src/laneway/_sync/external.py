"""Tasks of external lanes: pending, claimed, completed."""

# Written by scripts/unasync.py from _async/external.py; not edited by hand.

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Callable, Optional

from .._lease import LeaseClock, lease_length
from ..types import ClaimAnswer, ClaimedTask, ExternalTask, TaskView
from ..errors import LanewayError, NotClaimable, Refusal
from ..external import PendingTask, failure_instead
from .leases import Leases
from .transport import Transport, given, meaning, path_of


class External:
    """The tasks that this client has claimed, and the pending ones."""

    def __init__(self, transport: Transport, leases: Leases) -> None:
        self._transport = transport
        self._leases = leases
        self._held: dict[str, ClaimedTask] = {}
        self._claiming = threading.Lock()

    def pending(self, session: Optional[str], lane: Optional[str]) -> list[PendingTask]:
        found = [PendingTask(task, True) for task in self._held.values()]
        for task in self._transport.pages(ExternalTask, path_of("external-tasks")):
            found.append(PendingTask(task, False))
        return [
            task
            for task in found
            if (session is None or task.session == session) and (lane is None or task.lane == lane)
        ]

    def complete(
        self, task: str, success: bool, result: Any, error: Optional[str], retryable: Optional[bool]
    ) -> TaskView:
        claimed = self._claim(task)
        body = given(fence=claimed.fence, success=success, result=result, error=error, retryable=retryable)
        try:
            view = self._transport.read(TaskView, "POST", path_of("tasks", task, "complete"), body=body)
        except Refusal as refused:
            self._forget(task)
            failure = failure_instead(refused)
            if failure is not None:
                with suppress(LanewayError):
                    report = {"fence": claimed.fence, **failure}
                    self._transport.send("POST", path_of("tasks", task, "complete"), body=report)
            raise
        # Without an answer the client keeps the claim, so that the caller can report again.
        self._forget(task)
        return view

    def _claim(self, task: str) -> ClaimedTask:
        """Claims exactly this task, even if other tasks are ahead of it."""
        with self._claiming:
            held = self._held.get(task)
            if held is not None:
                return held
            body = {"worker": self._leases.worker, "ids": [task]}
            response = self._transport.send("POST", path_of("claim"), body=body)
            for one in meaning(ClaimAnswer, response).tasks:
                self._held[one.id] = one
                clock = LeaseClock(lease_length(None, one.lease_until, response.headers))
                self._leases.keep(one.id, one.fence, clock, lost=self._lost(one.id))
                return one
            view = self._transport.read(TaskView, "GET", path_of("tasks", task))
            raise NotClaimable(task, view.status)

    def _forget(self, task: str) -> None:
        self._leases.drop(task)
        self._held.pop(task, None)

    def _lost(self, task: str) -> Callable[[str], None]:
        def lost(_: str) -> None:
            self._held.pop(task, None)

        return lost
