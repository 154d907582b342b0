"""Lanes: read, change, pause, resume, drain and clear them."""

# Written by scripts/unasync.py from _async/lanes.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING

from .._options import LaneOptions
from ..types import CancelManyAnswer, LaneNumbers, ReleasedLane
from .transport import Transport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Lane:
    """A named limit; `change` also takes a pattern such as `session:*`."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def get(self) -> LaneNumbers:
        """How it stands, whether it exists now or not."""
        return self._transport.read(LaneNumbers, "GET", path_of("lanes", self.name))

    def change(self, **settings: Unpack[LaneOptions]) -> LaneNumbers:
        """Changes the given settings and keeps the others. Running attempts continue."""
        return self._transport.read(LaneNumbers, "PATCH", path_of("lanes", self.name), body=settings)

    def pause(self) -> LaneNumbers:
        """Starts no further tasks. Running attempts continue."""
        return self._transport.read(LaneNumbers, "POST", path_of("lanes", self.name, "pause"))

    def resume(self) -> LaneNumbers:
        """Ends a pause or a drain."""
        return self._transport.read(LaneNumbers, "POST", path_of("lanes", self.name, "resume"))

    def drain(self) -> LaneNumbers:
        """Accepts no further tasks. Accepted tasks still run."""
        return self._transport.read(LaneNumbers, "POST", path_of("lanes", self.name, "drain"))

    def release(self) -> ReleasedLane:
        """Frees the slots of running attempts. They may still run, but the server refuses their reports."""
        return self._transport.read(ReleasedLane, "POST", path_of("lanes", self.name, "release"))

    def clear(self) -> int:
        """Cancels all waiting tasks. Returns their number."""
        answer = self._transport.read(CancelManyAnswer, "POST", path_of("lanes", self.name, "clear"))
        return answer.cancelled
