"""Sessions and their messages."""

# Written by scripts/unasync.py from _async/sessions.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from .._options import MessageOptions
from ..types import (
    CancelManyAnswer,
    MessageAnswer,
    Receipt,
    SessionChange,
    SessionStats,
    SessionSummary,
)
from .streams import EventStream
from .transport import Transport, given, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Session:
    """A session: it runs one turn at a time, and further messages wait."""

    def __init__(self, transport: Transport, key: str) -> None:
        self._transport = transport
        self.key = key

    def _path(self, *parts: str) -> str:
        return path_of("sessions", self.key, *parts)

    def send(self, text: str, *, agent: str, **how: Unpack[MessageOptions]) -> MessageAnswer:
        """Sends a message. The answer has its outcome."""
        body = {"agent": agent, "text": text, **how}
        return self._transport.read(MessageAnswer, "POST", self._path("messages"), body=body)

    def get(self) -> SessionSummary:
        """The state of the session."""
        return self._transport.read(SessionSummary, "GET", self._path())

    def stats(self) -> SessionStats:
        """The numbers of its tool lanes."""
        return self._transport.read(SessionStats, "GET", self._path("stats"))

    def change(self, settings: SessionChange) -> SessionSummary:
        """Sets the mode, debounce, cap or drop rule of the session."""
        return self._transport.read(SessionSummary, "PATCH", self._path(), body=settings)

    def receipt(self, message: str) -> Receipt:
        """The outcome of a message."""
        return self._transport.read(Receipt, "GET", self._path("messages", message))

    def withdraw(self, message: str) -> None:
        """Withdraws a waiting message, also one that waits for the running turn to take it."""
        self._transport.send("DELETE", self._path("messages", message))

    def move(self, message: str, before: Optional[str] = None) -> None:
        """Moves a waiting message before another one, or to the end."""
        self._transport.send("POST", self._path("messages", message, "move"), body=given(before=before))

    def promote(self, message: str) -> MessageAnswer:
        """Passes a waiting message into the running turn."""
        return self._transport.read(MessageAnswer, "POST", self._path("messages", message, "promote"))

    def send_now(self, message: str) -> None:
        """Moves a waiting message to the front."""
        self._transport.send("POST", self._path("messages", message, "send-now"))

    def resend(self, message: str) -> MessageAnswer:
        """Sends a parked message again, as a new one."""
        return self._transport.read(MessageAnswer, "POST", self._path("messages", message, "resend"))

    def interrupt(self) -> None:
        """Stops the running turn."""
        self._transport.send("POST", self._path("interrupt"))

    def clear(self) -> int:
        """Withdraws all waiting messages. Returns their number."""
        answer = self._transport.read(CancelManyAnswer, "POST", self._path("clear"))
        return answer.cancelled

    def steer(self, text: str) -> MessageAnswer:
        """Sends a message to the running turn."""
        return self._transport.read(MessageAnswer, "POST", self._path("steer"), body={"text": text})

    def events(self, *, after: Optional[str] = None) -> EventStream:
        """The events of the session, without end."""
        return self._transport.follow(self._path("events"), after=after)
