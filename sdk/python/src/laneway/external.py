"""Tasks of external lanes, for callers that poll."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Optional

from .errors import NotFound, Refusal, StaleLease
from .types import ClaimedTask, ExternalTask, LaneNumbers


def failure_instead(error: Exception) -> Optional[dict[str, Any]]:
    """The report of a failure, in place of a report that the server would refuse for ever; `None` for any other error.

    So the attempt ends with the reason, instead of with its lease.
    """
    is_final = isinstance(error, Refusal) and not error.retryable and error.problem.status < 500
    if not is_final or isinstance(error, (StaleLease, NotFound)):
        return None
    return {"success": False, "error": f"its report was refused: {error}", "retryable": False}


class PendingTask:
    """A task that waits for a worker, or a claimed task of this client."""

    def __init__(self, task: ExternalTask | ClaimedTask, claimed: bool) -> None:
        self.id: str = task.id
        self.session: Optional[str] = task.session
        self.lane: str = task.lane
        self.kind: str = task.kind
        self.payload: Any = task.payload
        self.timeout_ms: Optional[int] = task.timeout_ms
        self.attempt: int = task.attempt
        self.claimed = claimed
        """Whether this client has claimed it."""
        left = task.remaining_ms
        self._until = None if left is None else time.monotonic() + left / 1000

    @property
    def remaining_ms(self) -> Optional[int]:
        """The time that is left now, or `None` for no limit."""
        return None if self._until is None else max(0, round((self._until - time.monotonic()) * 1000))

    def is_timed_out(self) -> bool:
        """Whether its time is over."""
        return self.remaining_ms == 0

    def __repr__(self) -> str:
        return f"PendingTask(id={self.id!r}, lane={self.lane!r}, kind={self.kind!r}, remaining_ms={self.remaining_ms})"


@dataclass(frozen=True)
class QueueMetrics:
    """Counters of all lanes."""

    running: int
    waiting: int
    max_concurrent: Optional[int]
    lanes: dict[str, LaneNumbers]
