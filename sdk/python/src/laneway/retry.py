"""When the client repeats a request by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .errors import LanewayError, Refusal, UnexpectedAnswer, Unreachable


@dataclass(frozen=True)
class Retry:
    """How long the client repeats a request.

    It repeats requests that are safe to repeat: GET, PATCH, DELETE, and POST with an idempotency key. It does so after a
    retryable refusal, and after a broken connection to the server or behind a gateway.
    """

    limit: float = 30.0
    """No try starts later than this many seconds after the first one. With 0 there is no second try."""
    first: float = 0.1
    """The first pause in seconds, if the server gives no time. It doubles each time."""
    most: float = 5.0
    """The longest pause in seconds, if the server gives no time."""
    jitter: float = 0.25
    """Each pause is longer by a random part of up to this factor, so that callers do not come back together."""

    def pause(self, error: LanewayError, tries: int, spent: float, chance: float) -> Optional[float]:
        """The pause before the next try, or `None` if there is none.

        `tries` have been made in `spent` seconds, and `chance` is from 0 to 1. The pause is at least the server's time.
        """
        named: Optional[float] = None
        if isinstance(error, Refusal):
            if not error.retryable or error.problem.phase == "run":
                return None
            named = error.retry_after
        elif isinstance(error, UnexpectedAnswer) and error.is_of_gateway:
            named = error.retry_after
        elif not isinstance(error, Unreachable):
            return None
        pause = self.own_pause(tries, chance) if named is None else self._spread(named, chance)
        return pause if spent + pause <= self.limit else None

    def own_pause(self, tries: int, chance: float) -> float:
        """The pause after a number of tries, if the server gave no time."""
        return self._spread(min(self.most, self.first * 2.0 ** min(tries - 1, 30)), chance)

    def _spread(self, pause: float, chance: float) -> float:
        return pause * (1 + self.jitter * chance)


NEVER = Retry(limit=0.0)
