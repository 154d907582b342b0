"""Connections that send a request as one segment."""

from __future__ import annotations

import ssl
from typing import Any, Iterable, Optional

import httpcore2
import httpx2

# The most bytes that a connection holds back.
_MOST_HELD = 65_536


class AsyncGathering(httpcore2.AsyncNetworkStream):
    """Holds back written bytes until the next read.

    The HTTP library writes the head and the body of a request one after the other. As two segments they would wake the
    server twice.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._held = b""
        self._patience: Optional[float] = None

    async def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        self._held = self._held + buffer if self._held else bytes(buffer)
        self._patience = timeout
        if len(self._held) > _MOST_HELD:
            await self._flush()

    async def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        if self._held:
            try:
                await self._flush()
            except httpcore2.WriteError:
                # A server that closes early may have sent the reason, which can still be read.
                pass
        return await self._stream.read(max_bytes, timeout)

    async def _flush(self) -> None:
        held, self._held = self._held, b""
        await self._stream.write(held, self._patience)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: Optional[str] = None, timeout: Optional[float] = None
    ) -> httpcore2.AsyncNetworkStream:
        return AsyncGathering(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._usual: Any = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[httpcore2.SOCKET_OPTION]] = None,
    ) -> httpcore2.AsyncNetworkStream:
        return AsyncGathering(await self._usual.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._usual.sleep(seconds)


class AsyncCarrier(httpx2.AsyncHTTPTransport):
    """The connections to the server."""

    def __init__(self, limits: httpx2.Limits, socket_options: Iterable[httpcore2.SOCKET_OPTION]) -> None:
        trusted = httpx2.create_ssl_context()
        super().__init__(verify=trusted, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(),
            socket_options=socket_options,
        )
