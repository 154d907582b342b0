"""Exceptions: rejections, unreachable servers, unexpected answers, and lost leases."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ._decode import decode
from .types import Problem


class LanewayError(Exception):
    """The base of all exceptions of this package."""


class Unreachable(LanewayError):
    """No server could be reached, or the connection broke."""

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        """Whether a server may have accepted the request."""


class UnexpectedAnswer(LanewayError):
    """The answer is not one of a Laneway server that this package knows."""

    def __init__(self, status: int, body: str, retry_after: Optional[str] = None) -> None:
        super().__init__(f"the answer, with status {status}, is not one that a Laneway server of this version gives")
        self.status = status
        self.body = body[:2000]
        self.retry_after = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
        """When to try again, in seconds, if the answer has a time."""

    @property
    def is_of_gateway(self) -> bool:
        """Whether the answer comes from a proxy that could not reach the server."""
        return self.status in (502, 503, 504)


class LeaseLost(LanewayError):
    """The slot or the task is lost: its lease lapsed, or it was released by force."""


class NotClaimable(LanewayError):
    """The task cannot be claimed: others are ahead of it, its lanes are full, a worker has it, or it has ended."""

    def __init__(self, task: str, status: str) -> None:
        super().__init__(f"task {task} is {status} and cannot be claimed now; explain() says what holds it up")
        self.task_id = task
        self.status = status


class DoNotRetry(Exception):
    """A worker's handler raises it when the attempt failed and a retry would not help."""


class AttemptFailed(Exception):
    """A worker's handler raises it when the attempt failed but produced something, such as the output of a command.

    The task keeps `result` with the error.
    """

    def __init__(self, error: str, result: Any = None, *, retryable: bool = True) -> None:
        super().__init__(error)
        self.result = result
        self.retryable = retryable


class Refusal(LanewayError):
    """The server refused the request, or the task did not succeed."""

    code: str = ""

    def __init__(self, problem: Problem, trace: Optional[str] = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        """The whole problem document."""
        self.trace = trace
        """The trace of the request."""
        self.code = problem.code

    @property
    def retry_after(self) -> Optional[float]:
        """When to try again, in seconds, or `None` if the server gave no time."""
        told = self.problem.retry_after_ms
        if told is not None:
            return told / 1000
        return None if self.problem.retry_after is None else float(self.problem.retry_after)

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.problem.retryable

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return self.problem.status

    @property
    def detail(self) -> str:
        """The error in one sentence."""
        return self.problem.detail

    @property
    def reason(self) -> str:
        """The code, or the reason why a task was cancelled."""
        return self.problem.reason

    @property
    def lane(self) -> Optional[str]:
        """The lane that refused."""
        return self.problem.lane

    @property
    def task_id(self) -> Optional[str]:
        """The task that the refusal is about."""
        return self.problem.task_id


class AtCapacity(Refusal):
    """The lane is full, or the request may not wait."""


class RateLimited(Refusal):
    """A rate limit of the caller's token refused the request."""


class SessionBusy(Refusal):
    """The session runs a turn, and its mode is `reject`."""


class StaleLease(Refusal):
    """The fence is old: the attempt has lost its lease."""


class IdempotencyConflict(Refusal):
    """An earlier request had the same key and another body."""


class WouldDeadlock(Refusal):
    """The task would wait for a slot that is not free before the task has ended."""


class ChainTooDeep(Refusal):
    """Too many tasks would wait for each other."""


class DeadlineUnmeetable(Refusal):
    """The task cannot start before its deadline."""


class Draining(Refusal):
    """The lane or the server accepts no further tasks."""


class StoreUnavailable(Refusal):
    """The store cannot be reached."""


class WaitTimeout(Refusal):
    """The task reached its wait timeout."""


class Expired(Refusal):
    """The task's deadline passed while it waited."""


class RunTimedOut(Refusal):
    """The task reached its timeout."""


class RunFailed(Refusal):
    """The task failed."""


class Lost(Refusal):
    """The process that ran the task is gone."""


class Cancelled(Refusal):
    """The task was cancelled; `reason` says why."""


class Invalid(Refusal):
    """The request is not valid."""


class Unauthorized(Refusal):
    """The request has no token, or an unknown one."""


class Forbidden(Refusal):
    """The token does not allow the request."""


class NotFound(Refusal):
    """The task, session, agent or other object does not exist."""


class TooLarge(Refusal):
    """The request is too large."""


class Internal(Refusal):
    """The server has a bug."""


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
    """The exception for a problem document. An unknown code gives a plain `Refusal`."""
    problem = decode(Problem, data)
    return BY_CODE.get(problem.code, Refusal)(problem, trace)
