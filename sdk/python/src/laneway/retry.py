"""When a request is sent again by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .errors import LanewayError, Refusal, UnexpectedAnswer, Unreachable


@dataclass(frozen=True)
class Retry:
    """How long to keep trying what may be tried again.

    Tried again are requests that can be repeated without harm (GET, PATCH, DELETE, and POST with an idempotency key), after a
    refusal that the server calls retryable and after a broken connection, to the server or behind a gateway.
    """

    limit: float = 30.0
    """No try begins later than this many seconds after the first one. 0: never try again."""
    first: float = 0.1
    """The first pause in seconds where the server does not say how long; it doubles each time."""
    most: float = 5.0
    """The longest such pause in seconds."""
    jitter: float = 0.25
    """Each pause is longer by up to this part of itself, so that callers do not come back together."""

    def pause(self, error: LanewayError, tries: int, spent: float, chance: float) -> Optional[float]:
        """How long to wait before the next try; `None`: it is not tried again.

        `tries` have been made in `spent` seconds; `chance` is from 0 to 1. The pause is never shorter than what the server said.
        """
        told: Optional[float] = None
        if isinstance(error, Refusal):
            if not error.retryable or error.problem.phase == "run":
                return None
            told = error.retry_after
        elif isinstance(error, UnexpectedAnswer) and error.is_of_gateway:
            told = error.retry_after
        elif not isinstance(error, Unreachable):
            return None
        pause = self.own_pause(tries, chance) if told is None else self._spread(told, chance)
        return pause if spent + pause <= self.limit else None

    def own_pause(self, tries: int, chance: float) -> float:
        """How long to wait after this many tries when the server gave no time."""
        return self._spread(min(self.most, self.first * 2.0 ** min(tries - 1, 30)), chance)

    def _spread(self, pause: float, chance: float) -> float:
        return pause * (1 + self.jitter * chance)


NEVER = Retry(limit=0.0)
