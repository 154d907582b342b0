"""Agents: turns, stateless tasks, and the agent's lane."""

# Written by scripts/unasync.py from _async/agents.py; not edited by hand.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generator, Mapping

from .._options import AgentOptions, TurnOptions, split
from .._running import as_child
from ..types import AcceptedTurn, AgentView, ChatAnswer, ClearedQueue, QueueView, ReleasedQueue
from ..events import Event
from .transport import Transport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Turn:
    """A request for a turn, not sent yet."""

    def __init__(
        self, transport: Transport, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._path = path
        self._body = body
        self._headers = headers

    def answer(self) -> ChatAnswer:
        """Sends the request, waits for the end, and returns the answer."""
        return self._transport.read(
            ChatAnswer, "POST", self._path, body=self._body, headers=self._headers, waits=True
        )

    def events(self) -> Generator[Event, None, None]:
        """Sends the request, and yields events from acceptance on. Leaving early cancels the turn, unless it is detached."""
        return self._transport.stream("POST", self._path, body=self._body, headers=self._headers)

    def accepted(self) -> AcceptedTurn:
        """Sends the request, and returns when the server has accepted it."""
        headers = {**self._headers, "prefer": "respond-async"}
        return self._transport.read(AcceptedTurn, "POST", self._path, body=self._body, headers=headers)



class Agent:
    """An agent."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def _turn(self, form: str, message: str, how: Mapping[str, Any]) -> Turn:
        body, headers = split(how)
        headers = {**as_child(self._transport.urls), **headers}
        return Turn(self._transport, path_of("agents", self.name, form), {"message": message, **body}, headers)

    def chat(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """Runs one turn of a session, and returns the answer. Turns of one session run one after another."""
        return self._turn("chat", message, how).answer()

    def stream(self, message: str, **how: Unpack[TurnOptions]) -> Generator[Event, None, None]:
        """Runs one turn of a session, and yields events from acceptance on."""
        return self._turn("chat", message, how).events()

    def submit(self, message: str, **how: Unpack[TurnOptions]) -> AcceptedTurn:
        """Requests one turn of a session, without waiting for its end."""
        return self._turn("chat", message, how).accepted()

    def task(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """Runs a task without a session, in parallel with others, and returns the answer."""
        return self._turn("task", message, how).answer()

    def create(self, **settings: Unpack[AgentOptions]) -> AgentView:
        """Creates the agent, which all replicas know, also after a restart. It needs one of `url`, `external` and `echo`."""
        body = {"name": self.name, **settings}
        return self._transport.read(AgentView, "POST", path_of("agents"), body=body)

    def change(self, **settings: Unpack[AgentOptions]) -> AgentView:
        """Changes the given settings of an agent that `create` made, and keeps the others. `None` removes a setting."""
        return self._transport.read(AgentView, "PATCH", path_of("agents", self.name), body=settings)

    def remove(self) -> None:
        """Removes an agent that `create` made. Its waiting tasks are cancelled, and its running turns may end."""
        self._transport.send("DELETE", path_of("agents", self.name))

    def get(self) -> AgentView:
        """The state of the agent."""
        return self._transport.read(AgentView, "GET", path_of("agents", self.name))

    def queue(self) -> QueueView:
        """The state of the agent's lane."""
        return self._transport.read(QueueView, "GET", path_of("agents", self.name, "queue"))

    def clear(self) -> ClearedQueue:
        """Cancels the waiting tasks of the agent's lane."""
        return self._transport.read(ClearedQueue, "POST", path_of("agents", self.name, "queue", "clear"))

    def release(self) -> ReleasedQueue:
        """Frees the slots of the agent's running attempts. They may still run, but the server refuses their reports."""
        return self._transport.read(ReleasedQueue, "POST", path_of("agents", self.name, "queue", "release"))
