"""Streams of events that can be open before they are read."""

# Written by scripts/unasync.py from _async/streams.py; not edited by hand.

from __future__ import annotations

from types import TracebackType
from typing import Generator, Optional

from ..events import Event


class EventStream:
    """Events, to iterate over. Nothing that happens after it is open is missed.

    That of a `Client` is open at once, that of an `Client` after `await` or at the first event. Leaving a `with` block closes
    it.
    """

    def __init__(self, told: Generator[Optional[Event], None, None]) -> None:
        self._told = told
        self._is_open = False
        self.open()

    def open(self) -> EventStream:
        """Opens the stream. Raises the refusal of the server."""
        if not self._is_open:
            self._is_open = True
            # The first item says that the stream is open.
            self._told.__next__()
        return self

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        while True:
            told = self._told.__next__()
            if told is not None:
                return told

    def close(self) -> None:
        """Closes the stream."""
        self._told.close()

    def __enter__(self) -> EventStream:
        return self.open()

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
