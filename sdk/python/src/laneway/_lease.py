"""How long a lease is, and when it is over, told without trusting that two clocks agree."""

from __future__ import annotations

import time
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Callable, Mapping, Optional

SHORTEST = 0.1


def lease_length(lease_ms: Optional[int], lease_until: str, headers: Mapping[str, str]) -> float:
    """How long the lease is, in seconds: as it was asked for, or else by the server's own clock, and rather too short.

    The header `Date` has whole seconds, so up to one second more may have passed than it says.
    """
    if lease_ms is not None:
        return lease_ms / 1000
    until = datetime.fromisoformat(lease_until.replace("Z", "+00:00"))
    if "date" not in headers:
        return SHORTEST
    answered = parsedate_to_datetime(headers["date"])
    return max(SHORTEST, (until - answered).total_seconds() - 1)


class LeaseClock:
    """Counts down a lease that heartbeats renew."""

    def __init__(self, length: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.length = length
        self._clock = clock
        self._until = clock() + length

    def renewed(self, asked_at: float) -> None:
        """A sign of life that was sent at this moment was heard."""
        self._until = asked_at + self.length

    def now(self) -> float:
        """The moment, by the clock that counts."""
        return self._clock()

    @property
    def left(self) -> float:
        """How many seconds are left."""
        return self._until - self._clock()

    @property
    def next_sign(self) -> float:
        """In how many seconds the next sign of life is due: each third of the lease."""
        return max(0.0, self.left - self.length * 2 / 3)

    @property
    def next_try(self) -> float:
        """In how many seconds to try again after a sign of life that was not heard."""
        return min(1.0, self.length / 10)
