"""Renews leases in the background."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from contextlib import aclosing, contextmanager, suppress
from typing import Any, AsyncGenerator, Callable, Generator, Mapping, Optional

from .._lease import LeaseClock
from ..errors import LanewayError, NotFound, Refusal, StaleLease
from ..events import Event
from ..retry import Retry
from ..types import HeartbeatAnswer
from .transport import AsyncTransport, path_of

log = logging.getLogger("laneway")
# How many seconds the closing of a client waits for its last reports.
LAST_WORDS = 2.0
# How many seconds a lease lasts before the client opens a stream for it. Most slots are shorter.
FOLLOW_AFTER = 0.1
Lost = Callable[[str], None]
Heard = Callable[[HeartbeatAnswer], None]
Say = Callable[[], Mapping[str, Any]]


class _Kept:
    """One lease. Between heartbeats it is only a timer."""

    def __init__(
        self,
        leases: AsyncLeases,
        worker: str,
        task: str,
        fence: int,
        clock: LeaseClock,
        lost: Lost,
        heard: Optional[Heard],
        say: Optional[Say],
    ) -> None:
        self._leases = leases
        self._worker = worker
        self._task = task
        self._fence = fence
        self._clock = clock
        self._lost = lost
        self._heard = heard
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._signing: Optional[asyncio.Task[None]] = None
        self._again = False
        self._timer = self._loop.call_later(clock.next_sign, self._sign)
        self._following: Optional[_Following] = None
        self._follow_timer = self._loop.call_later(FOLLOW_AFTER, self._follow)

    def _follow(self) -> None:
        self._following = self._leases.follow(self._worker)

    def wake(self) -> None:
        """Sends a heartbeat now."""
        if self._signing is None:
            self._in(0.0)
        else:
            self._again = True

    def drop(self) -> None:
        self._timer.cancel()
        self._follow_timer.cancel()
        if self._following is not None:
            self._following.leave()
            self._following = None
        if self._signing is not None:
            self._signing.cancel()

    def _in(self, seconds: float) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._sign)

    def _sign(self) -> None:
        self._signing = self._loop.create_task(self._give_sign())

    async def _give_sign(self) -> None:
        clock = self._clock
        asked_at = clock.now()
        body = {"fence": self._fence, **(self._say() if self._say else {})}
        try:
            answer = await asyncio.wait_for(self._leases.sign(self._task, body), max(clock.left, 0.05))
        except Exception as error:
            self._signing = None
            self._failed(error)
            return
        self._signing = None
        clock.renewed(asked_at)
        self._in(0.0 if self._again else clock.next_sign)
        self._again = False
        if self._heard:
            self._heard(answer)

    def _failed(self, error: Exception) -> None:
        is_final = isinstance(error, (StaleLease, NotFound)) or (isinstance(error, Refusal) and not error.retryable)
        if is_final or self._clock.left <= 0:
            self._leases.drop(self._task)
            self._lost(str(error) if is_final else "no heartbeat arrived before the lease ended")
        else:
            self._in(min(self._clock.next_try, self._clock.left))


class _Following:
    """A stream of the worker's events, which say for which tasks the server wants a heartbeat now.

    It stays open while it has users. Without it, heartbeats bring the same news, only later.
    """

    def __init__(self, leases: AsyncLeases, worker: str) -> None:
        self._leases = leases
        self._worker = worker
        self._users = 0
        self._pauses = Retry(limit=float("inf"))
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def is_over(self) -> bool:
        return self._reading.done() or self._reading.get_loop() is not asyncio.get_running_loop()

    def join(self) -> None:
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._leases.forget(self._worker)
            self._reading.cancel()

    async def _read(self) -> None:
        tries = 0
        while True:
            try:
                async with aclosing(self._leases.events(self._worker)) as events:
                    async for event in events:
                        tries = 0
                        if event.name == "heartbeat_wanted" and event.task_id is not None:
                            self._leases.wake(event.task_id)
            except LanewayError as error:
                log.debug("does not hear of cancels at once, will try again: %s", error)
            tries += 1
            await asyncio.sleep(self._pauses.own_pause(tries, random.random()))


class AsyncLeases:
    """Sends three heartbeats per lease, and more when the server wants them."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{random.getrandbits(64):016x}"
        """The name under which the server knows this client as the owner of slots."""
        self._following: dict[str, _Following] = {}
        self._kept: dict[str, _Kept] = {}
        self._later: set[asyncio.Task[None]] = set()
        # The number of slots being given back, and an event that is set when it is zero.
        self._leaving = 0
        self._none_leaving: Optional[asyncio.Event] = None

    def follow(self, worker: str) -> _Following:
        """Has the server say when it wants a heartbeat of this worker, until the user leaves."""
        following = self._following.get(worker)
        if following is None or following.is_over:
            following = self._following[worker] = _Following(self, worker)
        following.join()
        return following

    def forget(self, worker: str) -> None:
        self._following.pop(worker, None)

    def events(self, worker: str) -> AsyncGenerator[Event, None]:
        return self._transport.stream("GET", path_of("workers", worker, "events"))

    @contextmanager
    def leaving(self) -> Generator[None, None, None]:
        """Makes the closing of the client wait while a slot is given back."""
        self._leaving += 1
        try:
            yield
        finally:
            self._leaving -= 1
            if self._leaving == 0 and self._none_leaving is not None:
                self._none_leaving.set()

    def keep(
        self,
        task: str,
        fence: int,
        clock: LeaseClock,
        *,
        lost: Lost,
        heard: Optional[Heard] = None,
        say: Optional[Say] = None,
        worker: Optional[str] = None,
    ) -> None:
        """Renews the lease until it is dropped or lost.

        `say` returns further fields of a heartbeat, and `heard` gets its answer.
        """
        self._kept[task] = _Kept(self, worker or self.worker, task, fence, clock, lost, heard, say)

    def wake(self, task: str) -> None:
        """Sends a heartbeat of one task now."""
        kept = self._kept.get(task)
        if kept is not None:
            kept.wake()

    def drop(self, task: str) -> None:
        """Stops the heartbeats of one task."""
        kept = self._kept.pop(task, None)
        if kept is not None:
            kept.drop()

    def say_later(self, path: str, body: Mapping[str, Any], clock: LeaseClock) -> None:
        """Repeats a report until it arrives or the lease ends."""
        saying = asyncio.get_running_loop().create_task(self._say(path, body, clock))
        self._later.add(saying)
        saying.add_done_callback(self._later.discard)

    async def _say(self, path: str, body: Mapping[str, Any], clock: LeaseClock) -> None:
        while clock.left > 0:
            try:
                await self._transport.send("POST", path, body=body, within=max(clock.left, 0.05))
                return
            except LanewayError as error:
                if isinstance(error, Refusal) and not error.retryable:
                    return
                log.warning("could not report that a slot is free, will try again: %s", error)
            await asyncio.sleep(clock.next_try)

    async def close(self) -> None:
        """Stops all heartbeats, and waits shortly for the last reports."""
        for task in list(self._kept):
            self.drop(task)
        until = time.monotonic() + LAST_WORDS
        if self._leaving:
            self._none_leaving = asyncio.Event()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._none_leaving.wait(), LAST_WORDS)
        if self._later:
            await asyncio.wait(self._later, timeout=max(0.0, until - time.monotonic()))
        for saying in list(self._later):
            saying.cancel()

    async def sign(self, task: str, body: Mapping[str, Any]) -> HeartbeatAnswer:
        return await self._transport.read(HeartbeatAnswer, "POST", path_of("tasks", task, "heartbeat"), body=body)
