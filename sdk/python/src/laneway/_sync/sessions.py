"""Sessions and their messages."""

# Written by scripts/unasync.py from _async/sessions.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING, Generator, Optional

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
from .transport import Transport, given, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Session:
    """A conversation: one turn at a time, and messages that wait."""

    def __init__(self, transport: Transport, key: str) -> None:
        self._transport = transport
        self.key = key

    def _path(self, *parts: str) -> str:
        return path_of("sessions", self.key, *parts)

    def send(self, text: str, *, agent: str, **how: Unpack[MessageOptions]) -> MessageAnswer:
        """A message; the answer says what became of it."""
        body = {"agent": agent, "text": text, **how}
        return self._transport.read(MessageAnswer, "POST", self._path("messages"), body=body)

    def get(self) -> SessionSummary:
        """How it stands."""
        return self._transport.read(SessionSummary, "GET", self._path())

    def stats(self) -> SessionStats:
        """How its tool lanes stand."""
        return self._transport.read(SessionStats, "GET", self._path("stats"))

    def change(self, settings: SessionChange) -> SessionSummary:
        """Sets its own mode, debounce, cap or drop rule."""
        return self._transport.read(SessionSummary, "PATCH", self._path(), body=settings)

    def receipt(self, message: str) -> Receipt:
        """What became of a message."""
        return self._transport.read(Receipt, "GET", self._path("messages", message))

    def withdraw(self, message: str) -> None:
        """Takes back a message that waits."""
        self._transport.send("DELETE", self._path("messages", message))

    def move(self, message: str, before: Optional[str] = None) -> None:
        """Puts a waiting message before another, or last."""
        self._transport.send("POST", self._path("messages", message, "move"), body=given(before=before))

    def send_now(self, message: str) -> None:
        """Makes a waiting message the next one."""
        self._transport.send("POST", self._path("messages", message, "send-now"))

    def resend(self, message: str) -> MessageAnswer:
        """Sends a parked message once more, as a new one."""
        return self._transport.read(MessageAnswer, "POST", self._path("messages", message, "resend"))

    def interrupt(self) -> None:
        """Tells the running turn to stop."""
        self._transport.send("POST", self._path("interrupt"))

    def clear(self) -> int:
        """Takes back what waits; returns how many messages."""
        answer = self._transport.read(CancelManyAnswer, "POST", self._path("clear"))
        return answer.cancelled

    def steer(self, text: str) -> MessageAnswer:
        """Says something to the running turn."""
        return self._transport.read(MessageAnswer, "POST", self._path("steer"), body={"text": text})

    def events(self, *, after: Optional[str] = None) -> Generator[Event, None, None]:
        """What happens in it, without end."""
        return self._transport.follow(self._path("events"), after=after)
