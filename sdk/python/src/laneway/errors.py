"""Everything that can go wrong: refused (nothing changed, and what to do next), not reached, or lost."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._decode import decode
from .types import Problem


class LanewayError(Exception):
    """Anything that this package raises."""


class Unreachable(LanewayError):
    """The server could not be reached, or the connection broke. Whether it took the request is not known."""


class UnexpectedAnswer(LanewayError):
    """Something answered that is not a Laneway server, or not one that this package knows."""

    def __init__(self, status: int, body: str, retry_after: Optional[str] = None) -> None:
        super().__init__(f"the answer, with status {status}, is not one that a Laneway server of this version gives")
        self.status = status
        self.body = body[:2000]
        self.retry_after = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
        """When to come back, in seconds, if the answer said so."""

    @property
    def is_of_gateway(self) -> bool:
        """Whether a proxy answered that could not reach the server."""
        return self.status in (502, 503, 504)


class LeaseLost(LanewayError):
    """The slot or the task is no longer held: its lease lapsed, or it was taken away."""


class NotClaimable(LanewayError):
    """The task is not there to be claimed: others are ahead of it, its lanes are full, a worker has it, or it has ended."""

    def __init__(self, task: str, status: str) -> None:
        super().__init__(f"task {task} is {status} and cannot be claimed now; explain() says what holds it up")
        self.task_id = task
        self.status = status


class DoNotRetry(Exception):
    """Raised by a worker's handler: it failed, and another attempt would not help."""


class Refusal(LanewayError):
    """The server understood and refused, or what it ran did not succeed."""

    code: str = ""

    def __init__(self, problem: Problem, trace: Optional[str] = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        """All that was told."""
        self.trace = trace
        """The trace that the request belonged to."""
        self.code = problem.code

    @property
    def retry_after(self) -> Optional[float]:
        """When to come back, in seconds; `None`: the server did not say."""
        told = self.problem.retry_after_ms
        if told is not None:
            return told / 1000
        return None if self.problem.retry_after is None else float(self.problem.retry_after)

    @property
    def retryable(self) -> bool:
        """Whether asking again, unchanged, could help."""
        return self.problem.retryable

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return self.problem.status

    @property
    def detail(self) -> str:
        """One sentence about it."""
        return self.problem.detail

    @property
    def reason(self) -> str:
        """The code, or why a task was cancelled."""
        return self.problem.reason

    @property
    def lane(self) -> Optional[str]:
        """The lane that refused."""
        return self.problem.lane

    @property
    def task_id(self) -> Optional[str]:
        """The task that it is about."""
        return self.problem.task_id


class AtCapacity(Refusal):
    """The line is full, or the caller may not wait."""


class RateLimited(Refusal):
    """By a rate limit of the caller."""


class SessionBusy(Refusal):
    """The session has a turn, and its mode is `reject`."""


class StaleLease(Refusal):
    """An old fence: the attempt lost its lease."""


class IdempotencyConflict(Refusal):
    """The same key with another body."""


class WouldDeadlock(Refusal):
    """It would wait for a slot that is held until it has ended."""


class ChainTooDeep(Refusal):
    """Too many tasks would wait for each other."""


class DeadlineUnmeetable(Refusal):
    """It cannot start in time."""


class Draining(Refusal):
    """No new work is taken."""


class StoreUnavailable(Refusal):
    """The store cannot be reached."""


class WaitTimeout(Refusal):
    """It waited for longer than it was allowed to."""


class Expired(Refusal):
    """Its deadline passed while it waited."""


class RunTimedOut(Refusal):
    """The run took too long."""


class RunFailed(Refusal):
    """The run did not succeed."""


class Lost(Refusal):
    """The process that ran it is gone."""


class Cancelled(Refusal):
    """It was cancelled; `reason` says why."""


class Invalid(Refusal):
    """The request makes no sense."""


class Unauthorized(Refusal):
    """No token, or not one that is known."""


class Forbidden(Refusal):
    """The token may not do that."""


class NotFound(Refusal):
    """There is no such thing."""


class TooLarge(Refusal):
    """The request is too large."""


class Internal(Refusal):
    """The server is at fault."""


BY_CODE: Mapping[str, type[Refusal]] = {
    "AT_CAPACITY": AtCapacity,
    "RATE_LIMITED": RateLimited,
    "SESSION_BUSY": SessionBusy,
    "STALE_LEASE": StaleLease,
    "IDEMPOTENCY_CONFLICT": IdempotencyConflict,
    "WOULD_DEADLOCK": WouldDeadlock,
    "CHAIN_TOO_DEEP": ChainTooDeep,
    "DEADLINE_UNMEETABLE": DeadlineUnmeetable,
    "DRAINING": Draining,
    "STORE_UNAVAILABLE": StoreUnavailable,
    "WAIT_TIMEOUT": WaitTimeout,
    "EXPIRED": Expired,
    "RUN_TIMED_OUT": RunTimedOut,
    "RUN_FAILED": RunFailed,
    "LOST": Lost,
    "CANCELLED": Cancelled,
    "INVALID": Invalid,
    "UNAUTHORIZED": Unauthorized,
    "FORBIDDEN": Forbidden,
    "NOT_FOUND": NotFound,
    "TOO_LARGE": TooLarge,
    "INTERNAL": Internal,
}


def refusal(data: Any, trace: Optional[str] = None) -> Refusal:
    """The exception for a problem document; of a code that is not known, a plain `Refusal`."""
    problem = decode(Problem, data)
    return BY_CODE.get(problem.code, Refusal)(problem, trace)
