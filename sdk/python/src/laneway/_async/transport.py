"""Sends requests, repeats them where that is safe, and reads the answers."""

from __future__ import annotations

import asyncio
# sync: import os
import random
import socket
import time
# async only
import weakref
# end
# async only
from contextlib import suppress
# end
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, AsyncGenerator, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote

import httpx2

from .._decode import decode
from .._names import addresses
from ..errors import Draining, LanewayError, StoreUnavailable, UnexpectedAnswer, Unreachable, refusal
from ..events import Done, Event, event
from ..retry import Retry
from ..tracing import next_traceparent
from .carrier import AsyncCarrier
from .streams import AsyncEventStream

T = TypeVar("T")

# Notices a vanished server after about a minute, also while waiting for an answer.
_KEEP_ALIVE = [
    (getattr(socket, level), getattr(socket, name), value)
    for level, name, value in (
        ("SOL_SOCKET", "SO_KEEPALIVE", 1),
        ("IPPROTO_TCP", "TCP_NODELAY", 1),
        ("IPPROTO_TCP", "TCP_KEEPIDLE", 30),
        ("IPPROTO_TCP", "TCP_KEEPINTVL", 10),
        ("IPPROTO_TCP", "TCP_KEEPCNT", 3),
    )
    if hasattr(socket, level) and hasattr(socket, name)
]
_CONNECTIONS = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
REPEATABLE = {"GET", "PATCH", "DELETE", "PUT"}


def path_of(*parts: str) -> str:
    """A path below `/api`, each part percent-encoded."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)


def given(**fields: Any) -> dict[str, Any]:
    """The values that are not `None`."""
    return {key: value for key, value in fields.items() if value is not None}


class AsyncTransport:
    """The connection to a server. When it is away, the next address takes its place."""

    def __init__(
        self, url: Union[str, Sequence[str]], token: Optional[str], retry: Retry, timeout: float
    ) -> None:
        self._addresses = addresses(url)
        self._current = 0
        self.retry = retry
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._patient = httpx2.Timeout(timeout, read=None)
        # async only
        self._of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]
        self._of_loops = weakref.WeakKeyDictionary()
        # A stream must be closed before its loop ends.
        self._streams: weakref.WeakSet[AsyncEventStream] = weakref.WeakSet()
        # end
        # sync: self._process = os.getpid()
        # sync: self._http = self._connections()

    def _connections(self) -> httpx2.AsyncClient:
        carrier = AsyncCarrier(_CONNECTIONS, _KEEP_ALIVE)
        return httpx2.AsyncClient(headers=self._headers, transport=carrier, timeout=self._timeout)

    @property
    def urls(self) -> Sequence[str]:
        """All addresses."""
        return self._addresses

    @property
    def url(self) -> str:
        """The address in use."""
        return self._addresses[self._current]

    def _leave(self, used: int, error: LanewayError) -> bool:
        """Goes on with the next address if the server is away. Returns whether no server got the request."""
        if is_away(error) and self._current == used:
            self._current = (used + 1) % len(self._addresses)
        return isinstance(error, Unreachable) and not error.was_sent

    # async only
    @property
    def http(self) -> httpx2.AsyncClient:
        """The connections of the running loop. A loop cannot use those of another."""
        loop = asyncio.get_running_loop()
        known = self._of_loops.get(loop)
        if known is None:
            known = self._of_loops[loop] = self._connections()
        return known

    # end
    # sync: @property
    # sync: def http(self) -> httpx2.Client:
    # sync:     """The connections of this process. Two processes on one connection would get each other's answers."""
    # sync:     if self._process != os.getpid():
    # sync:         self._process, self._http = os.getpid(), self._connections()
    # sync:     return self._http
    # sync:
    async def close(self) -> None:
        # async only
        for stream in list(self._streams):
            # Another task may be reading it, and closes it when it ends.
            with suppress(RuntimeError):
                await stream.aclose()
        # end
        await self.http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        waits: bool = False,
        within: Optional[float] = None,
        once: bool = False,
    ) -> httpx2.Response:
        """Sends a request, repeats it where that is safe, and returns a successful answer.

        `waits` means that the answer may take any time, and `within` limits it to a number of seconds. `once` means that the
        caller repeats the request itself.
        """
        timeout: Any = self._patient if waits else httpx2.USE_CLIENT_DEFAULT if within is None else within
        sent = {"traceparent": next_traceparent(), **(headers or {})}
        repeatable = not once and (method in REPEATABLE or "idempotency-key" in sent)
        began, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                return await self._anywhere(method, path, body, query, sent, timeout)
            except LanewayError as error:
                spent = time.monotonic() - began
                pause = self.retry.pause(error, tries, spent, random.random()) if repeatable else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _anywhere(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]],
        query: Optional[Mapping[str, Any]],
        headers: dict[str, str],
        timeout: Any,
    ) -> httpx2.Response:
        """One try, at each address in turn while no server got the request."""
        for others in reversed(range(len(self._addresses))):
            used = self._current
            try:
                return await self._once(method, self.url + path, body, query, headers, timeout)
            except LanewayError as error:
                if not (self._leave(used, error) and others):
                    raise
        raise AssertionError("there is an address")

    async def _once(
        self,
        method: str,
        url: str,
        body: Optional[Mapping[str, Any]],
        query: Optional[Mapping[str, Any]],
        headers: dict[str, str],
        timeout: Any,
    ) -> httpx2.Response:
        try:
            response = await self.http.request(
                method, url, json=body, params=query, headers=headers, timeout=timeout
            )
        except httpx2.TransportError as error:
            raise unreachable(error) from error
        if response.is_success:
            return response
        raise refused(response, headers.get("traceparent"))

    async def read(self, kind: type[T], method: str, path: str, **how: Any) -> T:
        """Sends a request, and decodes the answer as a type."""
        return meaning(kind, await self.send(method, path, **how))

    async def pages(
        self, kind: type[T], path: str, query: Optional[Mapping[str, Any]] = None
    ) -> AsyncGenerator[T, None]:
        """All items of a list, page by page."""
        asked = dict(query or {})
        while True:
            page = meaning(_Page, await self.send("GET", path, query=asked))
            for item in page.items:
                yield decode(kind, item)
            if page.next_cursor is None:
                return
            asked["cursor"] = page.next_cursor

    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> AsyncGenerator[Event, None]:
        """The events of one stream, until it ends or the connection breaks."""
        async with aclosing(self._stream(method, path, body, query, headers)) as stream:
            async for told in stream:
                if told is not None:
                    yield told

    async def _stream(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]],
        query: Optional[Mapping[str, Any]],
        headers: Optional[Mapping[str, str]],
    ) -> AsyncGenerator[Optional[Event], None]:
        """The events of one stream, after `None` when it is open."""
        sent = {"traceparent": next_traceparent(), "accept": "text/event-stream", **(headers or {})}
        for others in reversed(range(len(self._addresses))):
            used = self._current
            try:
                async with aclosing(self._stream_at(self.url + path, method, body, query, sent)) as stream:
                    async for told in stream:
                        yield told
                return
            except LanewayError as error:
                if not (self._leave(used, error) and others):
                    raise

    async def _stream_at(
        self,
        url: str,
        method: str,
        body: Optional[Mapping[str, Any]],
        query: Optional[Mapping[str, Any]],
        headers: dict[str, str],
    ) -> AsyncGenerator[Optional[Event], None]:
        try:
            async with self.http.stream(
                method, url, json=body, params=query, headers=headers, timeout=self._patient
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise refused(response, headers["traceparent"])
                yield None
                if response.status_code == 204:
                    yield Done(name="done", data={})
                    return
                async for told in httpx2.EventSource(response):
                    yield event(told.event, told.data, told.id)
        except httpx2.TransportError as error:
            raise unreachable(error) from error

    def follow(
        self, path: str, *, query: Optional[Mapping[str, Any]] = None, after: Optional[str] = None
    ) -> AsyncEventStream:
        """The events of a stream, until `done`. Reconnects after the last event when the connection breaks."""
        stream = AsyncEventStream(self._follow(path, query, after))
        # async only
        self._streams.add(stream)
        # end
        return stream

    async def _follow(
        self, path: str, query: Optional[Mapping[str, Any]], after: Optional[str]
    ) -> AsyncGenerator[Optional[Event], None]:
        last = after
        began, tries = time.monotonic(), 0
        while True:
            broke: LanewayError = Unreachable("the stream ended early")
            tries += 1
            try:
                headers = given(**{"last-event-id": last})
                async with aclosing(self._stream("GET", path, None, query, headers)) as stream:
                    async for told in stream:
                        began, tries = time.monotonic(), 0
                        if told is None:
                            yield None
                            continue
                        last = told.event_id or last
                        yield told
                        if isinstance(told, Done) and path.startswith("/api/tasks/"):
                            return
            except LanewayError as error:
                broke = error
            pause = self.retry.pause(broke, max(tries, 1), time.monotonic() - began, random.random())
            if pause is None:
                raise broke
            await asyncio.sleep(pause)


@dataclass
class _Page:
    """One page of a list."""

    items: list[Any]
    next_cursor: Optional[str] = None


def unreachable(error: httpx2.TransportError) -> Unreachable:
    """The exception for a failed connection."""
    was_sent = not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
    return Unreachable(f"{type(error).__name__}: {error}", was_sent=was_sent)


def is_away(error: LanewayError) -> bool:
    """Whether another server may answer where this one did not."""
    if isinstance(error, UnexpectedAnswer):
        return error.is_of_gateway
    return isinstance(error, (Unreachable, Draining, StoreUnavailable))


def meaning(kind: type[T], response: httpx2.Response) -> T:
    """Decodes an answer as a type."""
    try:
        return decode(kind, response.json())
    except (ValueError, TypeError, AttributeError) as error:
        raise UnexpectedAnswer(response.status_code, response.text) from error


def refused(response: httpx2.Response, trace: Optional[str]) -> LanewayError:
    """The exception for an answer without success."""
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        try:
            return refusal(response.json(), trace)
        except (ValueError, TypeError, AttributeError):
            pass
    return UnexpectedAnswer(response.status_code, response.text, response.headers.get("retry-after"))
