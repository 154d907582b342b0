"""Schedules: create, read, change, fire and remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING, AsyncGenerator

from .._options import ScheduleOptions
from ..types import ScheduleChange, ScheduleRun, ScheduleView
from .transport import AsyncTransport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncSchedule:
    """A schedule, which asks an agent at certain times."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self.name = name

    async def create(self, *, cron: str, agent: str, message: str, **how: Unpack[ScheduleOptions]) -> ScheduleView:
        """Creates the schedule, which all replicas know, also after a restart. `cron` has five or six fields, or is a word such as `@daily`."""
        body = {"name": self.name, "cron": cron, "agent": agent, "message": message, **how}
        return await self._transport.read(ScheduleView, "POST", path_of("schedules"), body=body)

    async def get(self) -> ScheduleView:
        """The schedule, with its next firings and its last one."""
        return await self._transport.read(ScheduleView, "GET", path_of("schedules", self.name))

    async def change(self, **settings: Unpack[ScheduleChange]) -> ScheduleView:
        """Changes the given settings and keeps the others. A schedule of the configuration file can only be enabled and disabled."""
        return await self._transport.read(ScheduleView, "PATCH", path_of("schedules", self.name), body=settings)

    async def remove(self) -> None:
        """Removes a schedule that `create` made, and its firings."""
        await self._transport.send("DELETE", path_of("schedules", self.name))

    async def run(self) -> ScheduleRun:
        """Fires the schedule now."""
        return await self._transport.read(ScheduleRun, "POST", path_of("schedules", self.name, "run"))

    def runs(self) -> AsyncGenerator[ScheduleRun, None]:
        """The firings, the newest first."""
        return self._transport.pages(ScheduleRun, path_of("schedules", self.name, "runs"))
