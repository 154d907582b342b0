"""Agents: asking them, and how their lines stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncGenerator, Generator, Mapping

from .._options import TurnOptions, split
from ..types import AcceptedTurn, AgentView, ChatAnswer, ClearedQueue, QueueView, ReleasedQueue
from ..events import Event
from .transport import AsyncTransport, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncTurn:
    """A turn that is about to be asked for."""

    def __init__(
        self, transport: AsyncTransport, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._path = path
        self._body = body
        self._headers = headers

    async def answer(self) -> ChatAnswer:
        """Asks, waits for the end, and returns the answer."""
        return await self._transport.read(
            ChatAnswer, "POST", self._path, body=self._body, headers=self._headers, waits=True
        )

    def events(self) -> AsyncGenerator[Event, None]:
        """Asks, and tells what happens from acceptance on. Leaving early cancels the run, unless it is detached."""
        return self._transport.stream("POST", self._path, body=self._body, headers=self._headers)

    async def accepted(self) -> AcceptedTurn:
        """Asks, and returns when it is accepted."""
        headers = {**self._headers, "prefer": "respond-async"}
        return await self._transport.read(AcceptedTurn, "POST", self._path, body=self._body, headers=headers)

    # async only
    def __await__(self) -> Generator[Any, None, ChatAnswer]:
        return self.answer().__await__()

    def __aiter__(self) -> AsyncGenerator[Event, None]:
        return self.events()

    # end


class AsyncAgent:
    """What can run a turn."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self._transport = transport
        self.name = name

    def _turn(self, form: str, message: str, how: Mapping[str, Any]) -> AsyncTurn:
        body, headers = split(how)
        return AsyncTurn(self._transport, path_of("agents", self.name, form), {"message": message, **body}, headers)

    # async only
    def chat(self, message: str, **how: Unpack[TurnOptions]) -> AsyncTurn:
        """One turn of a conversation: await it for the answer, or iterate over it for the events.

        Turns of one conversation run one after another. Leaving early cancels the run, unless it is detached.
        """
        return self._turn("chat", message, how)

    # end
    # sync: def chat(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
    # sync:     """One turn of a conversation; returns the answer. Turns of one conversation run one after another."""
    # sync:     return self._turn("chat", message, how).answer()
    # sync:
    def stream(self, message: str, **how: Unpack[TurnOptions]) -> AsyncGenerator[Event, None]:
        """One turn of a conversation, as events from acceptance on."""
        return self._turn("chat", message, how).events()

    async def submit(self, message: str, **how: Unpack[TurnOptions]) -> AcceptedTurn:
        """One turn of a conversation that is not waited for."""
        return await self._turn("chat", message, how).accepted()

    async def task(self, message: str, **how: Unpack[TurnOptions]) -> ChatAnswer:
        """One stateless task, parallel to all others; returns the answer."""
        return await self._turn("task", message, how).answer()

    async def get(self) -> AgentView:
        """How the agent stands."""
        return await self._transport.read(AgentView, "GET", path_of("agents", self.name))

    async def queue(self) -> QueueView:
        """How its line stands."""
        return await self._transport.read(QueueView, "GET", path_of("agents", self.name, "queue"))

    async def clear(self) -> ClearedQueue:
        """Cancels what waits in its line."""
        return await self._transport.read(ClearedQueue, "POST", path_of("agents", self.name, "queue", "clear"))

    async def release(self) -> ReleasedQueue:
        """Takes its slots away from whatever runs. The old runs may still be going; what they report is refused."""
        return await self._transport.read(ReleasedQueue, "POST", path_of("agents", self.name, "queue", "release"))
