"""Requests: sent, repeated where that is safe, and read."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from typing import Any, AsyncIterator, Mapping, Optional, TypeVar
from urllib.parse import quote

import httpx2

from .._decode import decode
from ..errors import LanewayError, Refusal, UnexpectedAnswer, Unreachable, refusal
from ..events import Done, Event, event
from ..retry import Retry
from ..tracing import next_traceparent

T = TypeVar("T")

# A peer that is gone without a word is noticed after about a minute, also while an answer is waited for.
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
    """The fields that are not `None`."""
    return {key: value for key, value in fields.items() if value is not None}


class AsyncTransport:
    """One server, and how to talk to it."""

    def __init__(self, url: str, token: Optional[str], retry: Retry, timeout: float) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        carrier = httpx2.AsyncHTTPTransport(socket_options=_KEEP_ALIVE, limits=_CONNECTIONS)
        self.http = httpx2.AsyncClient(base_url=url.rstrip("/"), headers=headers, transport=carrier, timeout=timeout)
        self.retry = retry
        self._patient = httpx2.Timeout(timeout, read=None)

    async def close(self) -> None:
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
    ) -> httpx2.Response:
        """Sends a request, again where that is safe, and returns the answer if it is a good one.

        `waits`: the answer may take any time.
        """
        sent = {"traceparent": next_traceparent(), **(headers or {})}
        repeatable = method in REPEATABLE or "idempotency-key" in sent
        began, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                return await self._once(method, path, body, query, sent, waits)
            except LanewayError as error:
                spent = time.monotonic() - began
                pause = self.retry.pause(error, tries, spent, random.random()) if repeatable else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _once(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]],
        query: Optional[Mapping[str, Any]],
        headers: Mapping[str, str],
        waits: bool,
    ) -> httpx2.Response:
        timeout = self._patient if waits else httpx2.USE_CLIENT_DEFAULT
        try:
            response = await self.http.request(
                method, path, json=body, params=query, headers=dict(headers), timeout=timeout
            )
        except httpx2.TransportError as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error
        if response.is_success:
            return response
        raise refused(response, headers.get("traceparent"))

    async def read(self, kind: type[T], method: str, path: str, **how: Any) -> T:
        """Sends a request and reads the answer as this type."""
        response = await self.send(method, path, **how)
        return decode(kind, response.json())

    async def pages(
        self, kind: type[T], path: str, query: Optional[Mapping[str, Any]] = None
    ) -> AsyncIterator[T]:
        """Everything in a list, page by page."""
        asked = dict(query or {})
        while True:
            response = await self.send("GET", path, query=asked)
            page = response.json()
            for item in page["items"]:
                yield decode(kind, item)
            if page["next_cursor"] is None:
                return
            asked["cursor"] = page["next_cursor"]

    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> AsyncIterator[Event]:
        """The events of one stream, until it ends or breaks."""
        sent = {"traceparent": next_traceparent(), "accept": "text/event-stream", **(headers or {})}
        try:
            async with self.http.stream(
                method, path, json=body, params=query, headers=sent, timeout=self._patient
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise refused(response, sent["traceparent"])
                if response.status_code == 204:
                    yield Done(name="done", data={})
                    return
                async for told in httpx2.EventSource(response):
                    yield event(told.event, told.data, told.id)
        except httpx2.TransportError as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error

    async def follow(
        self,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        after: Optional[str] = None,
    ) -> AsyncIterator[Event]:
        """The events of a stream, which goes on where it was when the connection breaks, until `done`."""
        last = after
        began, tries = time.monotonic(), 0
        while True:
            broke: LanewayError = Unreachable("the stream ended early")
            tries += 1
            try:
                async for told in self.stream("GET", path, query=query, headers=given(**{"last-event-id": last})):
                    began, tries = time.monotonic(), 0
                    last = told.event_id or last
                    yield told
                    if isinstance(told, Done) and "/tasks/" in path:
                        return
            except LanewayError as error:
                broke = error
            pause = self.retry.pause(broke, max(tries, 1), time.monotonic() - began, random.random())
            if pause is None:
                raise broke
            await asyncio.sleep(pause)


def refused(response: httpx2.Response, trace: Optional[str]) -> LanewayError:
    """Why an answer is not a good one."""
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        problem: Refusal = refusal(response.json(), trace)
        return problem
    return UnexpectedAnswer(response.status_code, response.text)
