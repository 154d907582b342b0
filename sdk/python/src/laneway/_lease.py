"""The length and the end of a lease, without relying on equal clocks."""

from __future__ import annotations

import time
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Callable, Mapping, Optional

SHORTEST = 0.1


def lease_length(lease_ms: Optional[int], lease_until: str, headers: Mapping[str, str]) -> float:
    """The length of the lease in seconds: the requested one, or else that by the server's clock, at most a second too short.

    The header `Date` has whole seconds, so the server's time may be up to one second later.
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
        """Renews the lease from the moment when a successful heartbeat was sent."""
        self._until = asked_at + self.length

    def now(self) -> float:
        """The current time of the clock."""
        return self._clock()

    @property
    def left(self) -> float:
        """How many seconds are left."""
        return self._until - self._clock()

    @property
    def next_sign(self) -> float:
        """In how many seconds the next heartbeat is due: a third of the lease."""
        return max(0.0, self.left - self.length * 2 / 3)

    @property
    def next_try(self) -> float:
        """In how many seconds to try again after a failed heartbeat."""
        return min(1.0, self.length / 10)
