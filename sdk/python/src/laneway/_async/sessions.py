"""Sessions and their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, AsyncGenerator, Optional

from .._options import MessageOptions
from ..types import (
    CancelManyAnswer,
    MessageAnswer,
    Receipt,
    SessionChange,
    SessionStats,
    SessionSummary,
)
from ..events import Event
from .transport import AsyncTransport, given, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncSession:
    """A conversation: one turn at a time, and messages that wait."""

    def __init__(self, transport: AsyncTransport, key: str) -> None:
        self._transport = transport
        self.key = key

    def _path(self, *parts: str) -> str:
        return path_of("sessions", self.key, *parts)

    async def send(self, text: str, *, agent: str, **how: Unpack[MessageOptions]) -> MessageAnswer:
        """A message; the answer says what became of it."""
        body = {"agent": agent, "text": text, **how}
        return await self._transport.read(MessageAnswer, "POST", self._path("messages"), body=body)

    async def get(self) -> SessionSummary:
        """How it stands."""
        return await self._transport.read(SessionSummary, "GET", self._path())

    async def stats(self) -> SessionStats:
        """How its tool lanes stand."""
        return await self._transport.read(SessionStats, "GET", self._path("stats"))

    async def change(self, settings: SessionChange) -> SessionSummary:
        """Sets its own mode, debounce, cap or drop rule."""
        return await self._transport.read(SessionSummary, "PATCH", self._path(), body=settings)

    async def receipt(self, message: str) -> Receipt:
        """What became of a message."""
        return await self._transport.read(Receipt, "GET", self._path("messages", message))

    async def withdraw(self, message: str) -> None:
        """Takes back a message that waits."""
        await self._transport.send("DELETE", self._path("messages", message))

    async def move(self, message: str, before: Optional[str] = None) -> None:
        """Puts a waiting message before another, or last."""
        await self._transport.send("POST", self._path("messages", message, "move"), body=given(before=before))

    async def send_now(self, message: str) -> None:
        """Makes a waiting message the next one."""
        await self._transport.send("POST", self._path("messages", message, "send-now"))

    async def resend(self, message: str) -> MessageAnswer:
        """Sends a parked message once more, as a new one."""
        return await self._transport.read(MessageAnswer, "POST", self._path("messages", message, "resend"))

    async def interrupt(self) -> None:
        """Tells the running turn to stop."""
        await self._transport.send("POST", self._path("interrupt"))

    async def clear(self) -> int:
        """Takes back what waits; returns how many messages."""
        answer = await self._transport.read(CancelManyAnswer, "POST", self._path("clear"))
        return answer.cancelled

    async def steer(self, text: str) -> MessageAnswer:
        """Says something to the running turn."""
        return await self._transport.read(MessageAnswer, "POST", self._path("steer"), body={"text": text})

    def events(self, *, after: Optional[str] = None) -> AsyncGenerator[Event, None]:
        """What happens in it, without end."""
        return self._transport.follow(self._path("events"), after=after)
