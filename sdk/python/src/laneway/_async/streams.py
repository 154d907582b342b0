"""Streams of events that can be open before they are read."""

from __future__ import annotations

from types import TracebackType
# async only
from typing import Any, Generator
# end
from typing import AsyncGenerator, Optional

from ..events import Event


class AsyncEventStream:
    """Events, to iterate over. Nothing that happens after it is open is missed.

    That of a `Client` is open at once, that of an `AsyncClient` after `await` or at the first event. Leaving a `with` block closes
    it.
    """

    def __init__(self, told: AsyncGenerator[Optional[Event], None]) -> None:
        self._told = told
        self._is_open = False
        # sync: self.open()

    async def open(self) -> AsyncEventStream:
        """Opens the stream. Raises the refusal of the server."""
        if not self._is_open:
            self._is_open = True
            # The first item says that the stream is open.
            await self._told.__anext__()
        return self

    # async only
    def __await__(self) -> Generator[Any, Any, AsyncEventStream]:
        return self.open().__await__()

    # end
    def __aiter__(self) -> AsyncEventStream:
        return self

    async def __anext__(self) -> Event:
        while True:
            told = await self._told.__anext__()
            if told is not None:
                return told

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._told.aclose()

    async def __aenter__(self) -> AsyncEventStream:
        return await self.open()

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.aclose()
