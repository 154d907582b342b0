"""Workers: claim tasks of external lanes, run them, report."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
import os
import random
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Mapping, Optional, Sequence, TypeVar, Union

from ._async.client import AsyncClient
from ._async.transport import given, meaning, path_of
from ._lease import LeaseClock, lease_length
from .types import ClaimAnswer, ClaimedTask, HeartbeatAnswer
from .errors import DoNotRetry, LanewayError, LeaseLost, NotFound, StaleLease
from .retry import Retry
from .tracing import traceparent

log = logging.getLogger("laneway.worker")
Handler = Union[Callable[["TaskRun"], Awaitable[Any]], Callable[["TaskRun"], Any]]
H = TypeVar("H", bound=Handler)

# How long a claim waits for work; the server takes at most 60 000.
CLAIM_WAIT_MS = 20_000


class TaskRun:
    """One attempt at a task, as its handler sees it. Everything here may be used from any thread."""

    def __init__(self, task: ClaimedTask, takes_steering: bool, wake: Callable[[], None]) -> None:
        self.id = task.id
        self.kind = task.kind
        self.lane = task.lane
        self.session = task.session
        self.payload: Any = task.payload
        self.attempt = task.attempt
        self.fence = task.fence
        """Grows with each attempt: show it to whatever must not listen to an old one."""
        self.remaining_ms = task.remaining_ms
        """How much time the attempt had when it was claimed."""
        self._wake = wake
        self._lock = threading.Lock()
        self._progress: Any = None
        self._has_progress = False
        self._takes_steering = takes_steering
        # What was said and the handler has not heard, and the ids of what it has: those are named until the server has answered.
        self._offered: dict[str, str] = {}
        self._taken: list[str] = []
        self._named: list[str] = []
        self._stop = threading.Event()

    def progress(self, value: Any) -> None:
        """Tells whoever watches how far it is, in JSON. Of several in a row the newest is told."""
        json.dumps(value, allow_nan=False)
        with self._lock:
            self._progress, self._has_progress = value, True
        self._wake()

    def steered(self) -> list[str]:
        """What was said to the run since this was called last; for handlers that take steering.

        What this has not returned when the handler is done waits for a turn of its own.
        """
        with self._lock:
            said, self._offered = self._offered, {}
            self._taken.extend(said)
        return list(said.values())

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop. An `async` handler is cancelled as well; one in a thread must look."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises `LeaseLost` if the run is to stop."""
        if self._stop.is_set():
            raise LeaseLost("the task was cancelled or its lease is lost")

    def _say(self) -> Mapping[str, Any]:
        with self._lock:
            has, value, self._has_progress = self._has_progress, self._progress, False
            self._named = list(self._taken)
        return {
            **({"progress": value} if has else {}),
            **({"takes_steering": True, "steered": self._named} if self._takes_steering else {}),
        }

    def _hear(self, answer: HeartbeatAnswer) -> None:
        """What is offered again, because the server does not know yet that it was heard, is heard once."""
        with self._lock:
            self._taken = [id for id in self._taken if id not in self._named]
            for message in answer.steering or ():
                if message.id not in self._taken:
                    self._offered.setdefault(message.id, message.text)

    def _unnamed(self) -> Mapping[str, Any]:
        with self._lock:
            return {"steered": list(self._taken)} if self._taken else {}


class Worker:
    """Claims tasks and runs them by handlers, several at a time.

        worker = Worker(client, lanes=["session:*/execute"], concurrency=4)

        @worker.handler("bash")
        async def bash(task: TaskRun) -> str: ...

        await worker.run()
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        lanes: Sequence[str] = ("external",),
        concurrency: int = 1,
        name: Optional[str] = None,
        lease_ms: Optional[int] = None,
        grace: float = 30.0,
    ) -> None:
        """`grace`: how many seconds running tasks have after `drain()`; then they are let go, and offered again elsewhere."""
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._client = client
        self._lanes = list(lanes)
        self._concurrency = concurrency
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._lease_ms = lease_ms
        self._grace = grace
        self._handlers: dict[str, tuple[Handler, bool]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._threads: Optional[ThreadPoolExecutor] = None
        self._draining = asyncio.Event()
        self._pauses = Retry(limit=float("inf"))

    def handler(self, kind: str, *, steering: bool = False) -> Callable[[H], H]:
        """Says who runs tasks of this kind. A plain function runs in a thread.

        What it returns is the result; what it raises is the error, and `DoNotRetry` says that another attempt would not help.
        `steering`: it takes what is said to its turn while it runs.
        """

        def known(run: H) -> H:
            self._handlers[kind] = (run, steering)
            return run

        return known

    def drain(self) -> None:
        """Claims nothing more; `run` returns when what runs has ended, or its grace is over."""
        self._draining.set()

    def run_forever(self) -> None:
        """Runs until SIGTERM or SIGINT, then drains. For a program that does nothing else."""
        asyncio.run(self._until_signal())

    async def _until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.drain)
        try:
            await self.run()
        finally:
            await self._client.close()

    async def run(self) -> None:
        """Claims and runs until it is drained. A server that is away for a while is waited for."""
        if not self._handlers:
            raise ValueError("the worker has no handler")
        log.info("worker %s claims from %s", self.name, ", ".join(self._lanes))
        draining = asyncio.ensure_future(self._draining.wait())
        # As many threads as may run at once: what waits for a thread would hold its slot in vain.
        self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="laneway-worker")
        try:
            await self._claim_until(draining)
            if self._running:
                await asyncio.wait(set(self._running), timeout=self._grace)
        finally:
            draining.cancel()
            for task in self._running:
                task.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)
            if self._running:
                await asyncio.wait(set(self._running))

    async def _claim_until(self, draining: asyncio.Future[Any]) -> None:
        tries = 0
        while not draining.done():
            free = self._concurrency - len(self._running)
            if free == 0:
                await asyncio.wait({draining, *self._running}, return_when=asyncio.FIRST_COMPLETED)
                continue
            claim = asyncio.ensure_future(self._claim(free))
            try:
                await asyncio.wait({draining, claim}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Nobody would run what it claims from now on.
                if not claim.done():
                    claim.cancel()
                    await asyncio.wait({claim})
            if claim.cancelled():
                return
            try:
                claim.result()
                tries = 0
            except LanewayError as error:
                tries += 1
                pause = self._pauses.pause(error, tries, 0.0, random.random())
                if pause is None:
                    raise
                log.warning("cannot claim, will try again in %.1f s: %s", pause, error)
                await asyncio.wait({draining}, timeout=pause)

    async def _claim(self, free: int) -> None:
        body = given(
            worker=self.name,
            lanes=self._lanes,
            kinds=sorted(self._handlers),
            max=free,
            wait_ms=CLAIM_WAIT_MS,
            lease_ms=self._lease_ms,
        )
        response = await self._client.transport.send("POST", path_of("claim"), body=body, waits=True)
        for task in meaning(ClaimAnswer, response).tasks:
            clock = LeaseClock(lease_length(self._lease_ms, task.lease_until, response.headers))
            running = asyncio.ensure_future(self._run_one(task, clock))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _run_one(self, task: ClaimedTask, clock: LeaseClock) -> None:
        handler, steering = self._handlers[task.kind]
        loop, leases = asyncio.get_running_loop(), self._client.leases

        def wake() -> None:
            loop.call_soon_threadsafe(leases.wake, task.id)

        run = TaskRun(task, steering, wake)
        traceparent.set(task.traceparent)
        work = asyncio.ensure_future(self._call(handler, run))
        lost = False

        def stop() -> None:
            # A function in a thread goes on until it looks, and what it holds is not free before.
            if not run._stop.is_set():
                run._stop.set()
                if inspect.iscoroutinefunction(handler):
                    work.cancel()

        def on_lost(why: str) -> None:
            nonlocal lost
            log.warning("task %s is lost: %s", task.id, why)
            lost = True
            stop()

        def on_heard(answer: HeartbeatAnswer) -> None:
            run._hear(answer)
            if answer.cancel_requested:
                stop()

        leases.keep(task.id, task.fence, clock, lost=on_lost, heard=on_heard, say=run._say)
        if steering:
            leases.wake(task.id)
        try:
            await asyncio.wait({work})
            if not lost:
                await self._report(task, clock, {**_outcome(work, run), **run._unnamed()})
        finally:
            leases.drop(task.id)
            run._stop.set()
            work.cancel()

    async def _call(self, handler: Handler, run: TaskRun) -> Any:
        if inspect.iscoroutinefunction(handler):
            return await handler(run)
        context = contextvars.copy_context()
        result = await asyncio.get_running_loop().run_in_executor(self._threads, context.run, handler, run)
        return await result if inspect.isawaitable(result) else result

    async def _report(self, task: ClaimedTask, clock: LeaseClock, outcome: Mapping[str, Any]) -> None:
        """Reports as long as the lease lasts: what is not heard by then was not done by us."""
        body = {"fence": task.fence, **outcome}
        tries = 0
        while True:
            tries += 1
            try:
                await self._client.transport.send("POST", path_of("tasks", task.id, "complete"), body=body)
                return
            except (StaleLease, NotFound) as refused:
                # After a try whose answer was lost this may be our own completion.
                level = logging.WARNING if tries == 1 else logging.INFO
                log.log(level, "the report on task %s was refused: %s", task.id, refused)
                return
            except LanewayError as error:
                pause = self._pauses.pause(error, tries, 0.0, random.random())
                if pause is None or clock.left <= 0:
                    log.error("the report on task %s was not heard: %s", task.id, error)
                    return
                await asyncio.sleep(pause)


def _outcome(work: asyncio.Future[Any], run: TaskRun) -> Mapping[str, Any]:
    """What is reported about a run that is over."""
    if work.cancelled():
        return {"success": False, "error": "cancelled", "retryable": False}
    error = work.exception()
    if error is None:
        try:
            json.dumps(work.result(), allow_nan=False)
        except (TypeError, ValueError) as unsayable:
            return {"success": False, "error": f"the result cannot be said in JSON: {unsayable}", "retryable": False}
        return {"success": True, "result": work.result()}
    text = f"{type(error).__name__}: {error}"
    final = isinstance(error, DoNotRetry) or run.is_cancelled
    return {"success": False, "error": str(error) if isinstance(error, DoNotRetry) else text, "retryable": not final}
