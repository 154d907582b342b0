"""Agents: asking them, and how their lines stand."""

# Written by scripts/unasync.py from _async/agents.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generator, Mapping

from .._options import TurnOptions, split
from ..types import AcceptedTurn, AgentView, ChatAnswer, ClearedQueue, QueueView, ReleasedQueue
from ..events import Event
from .transport import Transport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Turn:
    """A turn that is about to be asked for."""

    def __init__(
        self, transport: Transport, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._path = path
        self._body = body
        self._headers = headers

    def answer(self) -> ChatAnswer:
        """Asks, waits for the end, and returns the answer."""
        return self._transport.read(
            ChatAnswer, "POST", self._path, body=self._body, headers=self._headers, waits=True
        )

    def events(self) -> Generator[Event, None, None]:
        """Asks, and tells what happens from acceptance on. Leaving early cancels the run, unless it is detached."""
        return self._transport.stream("POST", self._path, body=self._body, headers=self._headers)

    def accepted(self) -> AcceptedTurn:
        """Asks, and returns when it is accepted."""
        headers = {**self._headers, "prefer": "respond-async"}
        return self._transport.read(AcceptedTurn, "POST", self._path, body=self._body, headers=headers)



class Agent:
    """What can run a turn."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def _turn(self, form: str, message: str, how: Mapping[str, Any]) -> Turn:
        body, headers = split(how)
        return Turn(self._transport, path_of("agents", self.name, form), {"message": message, **body}, headers)

    def chat(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """One turn of a conversation; returns the answer. Turns of one conversation run one after another."""
        return self._turn("chat", message, how).answer()

    def stream(self, message: str, **how: Unpack[TurnOptions]) -> Generator[Event, None, None]:
        """One turn of a conversation, as events from acceptance on."""
        return self._turn("chat", message, how).events()

    def submit(self, message: str, **how: Unpack[TurnOptions]) -> AcceptedTurn:
        """One turn of a conversation that is not waited for."""
        return self._turn("chat", message, how).accepted()

    def task(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """One stateless task, parallel to all others; returns the answer."""
        return self._turn("task", message, how).answer()

    def get(self) -> AgentView:
        """How the agent stands."""
        return self._transport.read(AgentView, "GET", path_of("agents", self.name))

    def queue(self) -> QueueView:
        """How its line stands."""
        return self._transport.read(QueueView, "GET", path_of("agents", self.name, "queue"))

    def clear(self) -> ClearedQueue:
        """Cancels what waits in its line."""
        return self._transport.read(ClearedQueue, "POST", path_of("agents", self.name, "queue", "clear"))

    def release(self) -> ReleasedQueue:
        """Takes its slots away from whatever runs. The old runs may still be going; what they report is refused."""
        return self._transport.read(ReleasedQueue, "POST", path_of("agents", self.name, "queue", "release"))
