"""Agents: turns, stateless tasks, and the agent's lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncGenerator, Generator, Mapping

from .._options import AgentOptions, TurnOptions, split
from .._running import as_child
from ..types import AcceptedTurn, AgentView, ChatAnswer, ClearedQueue, QueueView, ReleasedQueue
from ..events import Event
from .transport import AsyncTransport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncTurn:
    """A request for a turn, not sent yet."""

    def __init__(
        self, transport: AsyncTransport, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._path = path
        self._body = body
        self._headers = headers

    async def answer(self) -> ChatAnswer:
        """Sends the request, waits for the end, and returns the answer."""
        return await self._transport.read(
            ChatAnswer, "POST", self._path, body=self._body, headers=self._headers, waits=True
        )

    def events(self) -> AsyncGenerator[Event, None]:
        """Sends the request, and yields events from acceptance on. Leaving early cancels the turn, unless it is detached."""
        return self._transport.stream("POST", self._path, body=self._body, headers=self._headers)

    async def accepted(self) -> AcceptedTurn:
        """Sends the request, and returns when the server has accepted it."""
        headers = {**self._headers, "prefer": "respond-async"}
        return await self._transport.read(AcceptedTurn, "POST", self._path, body=self._body, headers=headers)

    # async only
    def __await__(self) -> Generator[Any, None, ChatAnswer]:
        return self.answer().__await__()

    def __aiter__(self) -> AsyncGenerator[Event, None]:
        return self.events()

    # end


class AsyncAgent:
    """An agent."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self.name = name

    def _turn(self, form: str, message: str, how: Mapping[str, Any]) -> AsyncTurn:
        body, headers = split(how)
        headers = {**as_child(self._transport.urls), **headers}
        return AsyncTurn(self._transport, path_of("agents", self.name, form), {"message": message, **body}, headers)

    # async only
    def chat(self, message: str, **how: Unpack[TurnOptions]) -> AsyncTurn:
        """One turn of a session: await it for the answer, or iterate over it for the events.

        Turns of one session run one after another. Leaving early cancels the turn, unless it is detached.
        """
        return self._turn("chat", message, how)

    # end
    # sync: def chat(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
    # sync:     """Runs one turn of a session, and returns the answer. Turns of one session run one after another."""
    # sync:     return self._turn("chat", message, how).answer()
    # sync:
    def stream(self, message: str, **how: Unpack[TurnOptions]) -> AsyncGenerator[Event, None]:
        """Runs one turn of a session, and yields events from acceptance on."""
        return self._turn("chat", message, how).events()

    async def submit(self, message: str, **how: Unpack[TurnOptions]) -> AcceptedTurn:
        """Requests one turn of a session, without waiting for its end."""
        return await self._turn("chat", message, how).accepted()

    async def task(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """Runs a task without a session, in parallel with others, and returns the answer."""
        return await self._turn("task", message, how).answer()

    async def create(self, **settings: Unpack[AgentOptions]) -> AgentView:
        """Creates the agent, which all replicas know, also after a restart. It needs one of `url`, `external` and `echo`."""
        body = {"name": self.name, **settings}
        return await self._transport.read(AgentView, "POST", path_of("agents"), body=body)

    async def change(self, **settings: Unpack[AgentOptions]) -> AgentView:
        """Changes the given settings of an agent that `create` made, and keeps the others. `None` removes a setting."""
        return await self._transport.read(AgentView, "PATCH", path_of("agents", self.name), body=settings)

    async def remove(self) -> None:
        """Removes an agent that `create` made. Its waiting tasks are cancelled, and its running turns may end."""
        await self._transport.send("DELETE", path_of("agents", self.name))

    async def get(self) -> AgentView:
        """The state of the agent."""
        return await self._transport.read(AgentView, "GET", path_of("agents", self.name))

    async def queue(self) -> QueueView:
        """The state of the agent's lane."""
        return await self._transport.read(QueueView, "GET", path_of("agents", self.name, "queue"))

    async def clear(self) -> ClearedQueue:
        """Cancels the waiting tasks of the agent's lane."""
        return await self._transport.read(ClearedQueue, "POST", path_of("agents", self.name, "queue", "clear"))

    async def release(self) -> ReleasedQueue:
        """Frees the slots of the agent's running attempts. They may still run, but the server refuses their reports."""
        return await self._transport.read(ReleasedQueue, "POST", path_of("agents", self.name, "queue", "release"))
