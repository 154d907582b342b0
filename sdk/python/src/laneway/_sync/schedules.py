"""Schedules: create, read, change, fire and remove them."""

# Written by scripts/unasync.py from _async/schedules.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING, Generator

from .._options import ScheduleOptions
from ..types import ScheduleChange, ScheduleRun, ScheduleView
from .transport import Transport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Schedule:
    """A schedule, which asks an agent at certain times."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def create(self, *, cron: str, agent: str, message: str, **how: Unpack[ScheduleOptions]) -> ScheduleView:
        """Creates the schedule, which all replicas know, also after a restart. `cron` has five or six fields, or is a word such as `@daily`."""
        body = {"name": self.name, "cron": cron, "agent": agent, "message": message, **how}
        return self._transport.read(ScheduleView, "POST", path_of("schedules"), body=body)

    def get(self) -> ScheduleView:
        """The schedule, with its next firings and its last one."""
        return self._transport.read(ScheduleView, "GET", path_of("schedules", self.name))

    def change(self, **settings: Unpack[ScheduleChange]) -> ScheduleView:
        """Changes the given settings and keeps the others. A schedule of the configuration file can only be enabled and disabled."""
        return self._transport.read(ScheduleView, "PATCH", path_of("schedules", self.name), body=settings)

    def remove(self) -> None:
        """Removes a schedule that `create` made, and its firings."""
        self._transport.send("DELETE", path_of("schedules", self.name))

    def run(self) -> ScheduleRun:
        """Fires the schedule now."""
        return self._transport.read(ScheduleRun, "POST", path_of("schedules", self.name, "run"))

    def runs(self) -> Generator[ScheduleRun, None, None]:
        """The firings, the newest first."""
        return self._transport.pages(ScheduleRun, path_of("schedules", self.name, "runs"))
