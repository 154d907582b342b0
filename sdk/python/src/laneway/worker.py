"""Workers: claim tasks of external lanes, run them, report."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
import os
import random
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Awaitable, Callable, Mapping, Optional, Sequence, TypeVar, Union

from ._async.client import AsyncClient
from ._async.transport import given, meaning, path_of
from ._lease import LeaseClock, lease_length
from ._running import running
from .types import ClaimAnswer, ClaimedTask, ExternalTask, HeartbeatAnswer
from .errors import AttemptFailed, DoNotRetry, LanewayError, NotFound, StaleLease
from .external import failure_instead
from .retry import Retry
from .task_run import TaskRun
from .tracing import traceparent

log = logging.getLogger("laneway.worker")
Handler = Union[Callable[[TaskRun], Awaitable[Any]], Callable[[TaskRun], Any]]
H = TypeVar("H", bound=Handler)

# The kind of the handler that runs tasks of all other kinds.
ANY_KIND = "*"
# How many seconds a report waits for output that goes before it. Output is not stored, so its loss does not matter.
LAST_OUTPUT = 2.0

# How many seconds pass between two looks for tasks without a handler, and how many waiting tasks a look covers.
LOOK_EVERY, LOOK_MAX = 60.0, 50

# How many seconds longer than its wait the answer of a claim may take, while the worker runs and while it drains.
ANSWER, LAST_ANSWER = 30.0, 2.0


class Worker:
    """Claims tasks and runs them with handlers, several at once.

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
        poll: float = 5.0,
    ) -> None:
        """`grace` is how many seconds attempts may continue after `drain()`. Then other workers get their tasks.

        `poll` is how many seconds a claim waits for tasks, 0.1 to 60. `drain()` waits at most this long for an open claim.
        """
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if not 0.1 <= poll <= 60:
            raise ValueError("poll must be from 0.1 to 60 seconds")
        self._client = client
        self._lanes = list(lanes)
        self._concurrency = concurrency
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._lease_ms = lease_ms
        self._grace = grace
        self._poll = poll
        self._handlers: dict[str, tuple[Handler, bool]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._threads: Optional[ThreadPoolExecutor] = None
        self._draining = asyncio.Event()
        self._pauses = Retry(limit=float("inf"))
        self._warned: set[str] = set()
        self._look_again = 0.0

    def handler(self, kind: str, *, steering: bool = False) -> Callable[[H], H]:
        """Registers the handler of a kind; `*` stands for all other kinds. A plain function runs in a thread.

        Its return value is the result and its exception is the error. `DoNotRetry` prevents a retry. With `steering`, the
        handler takes messages to its turn while it runs.
        """

        def known(run: H) -> H:
            self._handlers[kind] = (run, steering)
            return run

        return known

    def drain(self) -> None:
        """Claims no further tasks, but still runs those of an open claim.

        `run` returns when the attempts have ended or their grace is over.
        """
        self._draining.set()

    def run_forever(self) -> None:
        """Runs until SIGTERM or SIGINT, then drains. A second signal ends it at once. For a program that does nothing else."""
        asyncio.run(self._until_signal())

    async def _until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(self.run())

        def on_signal() -> None:
            if self._draining.is_set():
                running.cancel()
            self.drain()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
        try:
            await asyncio.wait({running})
            if not running.cancelled():
                running.result()
        finally:
            await self._client.close()

    async def run(self) -> None:
        """Claims and runs tasks until it is drained. If the server is away, it waits and tries again."""
        if not self._handlers:
            raise ValueError("the worker has no handler")
        log.info("worker %s claims from %s", self.name, ", ".join(self._lanes))
        draining = asyncio.ensure_future(self._draining.wait())
        # One thread per possible attempt, because an attempt that waits for a thread would hold its slot idle.
        self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="laneway-worker")
        following = self._client.leases.follow(self.name)
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
            following.leave()

    async def _claim_until(self, draining: asyncio.Future[Any]) -> None:
        tries = 0
        while not draining.done():
            free = self._concurrency - len(self._running)
            if free == 0:
                await asyncio.wait({draining, *self._running}, return_when=asyncio.FIRST_COMPLETED)
                continue
            asked = time.monotonic()
            claim = asyncio.ensure_future(self._claim(free))
            # A worker that is cancelled does not look at the error of its last claim.
            claim.add_done_callback(lambda done: done.cancelled() or done.exception())
            await self._heard(claim, draining)
            if claim.cancelled():
                return
            try:
                # A draining server answers at once, so pause before the next claim.
                tries = 0 if claim.result() or time.monotonic() - asked >= self._poll / 2 else tries + 1
                pause = self._pauses.own_pause(tries, random.random()) if tries else 0.0
            except LanewayError as error:
                tries += 1
                again = self._pauses.pause(error, tries, 0.0, random.random())
                if again is None:
                    raise
                pause = again
                log.warning("cannot claim, will try again in %.1f s: %s", pause, error)
            if pause:
                await asyncio.wait({draining}, timeout=pause)

    async def _heard(self, claim: asyncio.Future[int], draining: asyncio.Future[Any]) -> None:
        """Waits for a claim's answer, also when the worker drains meanwhile.

        Otherwise no worker would run its tasks until their leases lapse.
        """
        try:
            await asyncio.wait({draining, claim}, return_when=asyncio.FIRST_COMPLETED)
            if not claim.done():
                log.info("a claim is open; its tasks still run")
                await asyncio.wait({claim}, timeout=self._poll + LAST_ANSWER)
        finally:
            if not claim.done():
                claim.cancel()
                await asyncio.wait({claim})

    async def _claim(self, free: int) -> int:
        """Claims tasks and starts them. Returns their number."""
        body = given(
            worker=self.name,
            lanes=self._lanes,
            # None means all.
            kinds=[] if ANY_KIND in self._handlers else sorted(self._handlers),
            max=free,
            wait_ms=round(self._poll * 1000),
            lease_ms=self._lease_ms,
        )
        response = await self._client.transport.send("POST", path_of("claim"), body=body, within=self._poll + ANSWER)
        tasks = meaning(ClaimAnswer, response).tasks
        for task in tasks:
            clock = LeaseClock(lease_length(self._lease_ms, task.lease_until, response.headers))
            running = asyncio.ensure_future(self._run_one(task, clock))
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        if not tasks:
            await self._look_for_strangers()
        return len(tasks)

    async def _look_for_strangers(self) -> None:
        """Warns of waiting tasks in the worker's lanes that it has no handler for, once for each kind."""
        now = time.monotonic()
        if ANY_KIND in self._handlers or now < self._look_again:
            return
        self._look_again = now + LOOK_EVERY
        # A token of a worker may not be allowed to look.
        strange: set[str] = set()
        looked = 0
        with suppress(LanewayError):
            async for task in self._client.transport.pages(ExternalTask, path_of("external-tasks")):
                if self._is_mine(task.lane):
                    strange.add(task.kind)
                looked += 1
                if looked == LOOK_MAX:
                    break
        strange -= self._warned | set(self._handlers)
        self._warned |= strange
        if strange:
            log.warning("tasks wait in its lanes whose kinds it has no handler for: %s", ", ".join(sorted(strange)))

    def _is_mine(self, lane: str) -> bool:
        patterns = ("[^/]*".join(map(re.escape, pattern.split("*"))) for pattern in self._lanes)
        return any(re.fullmatch(pattern, lane) for pattern in patterns)

    async def _run_one(self, task: ClaimedTask, clock: LeaseClock) -> None:
        handler, steering = self._handlers.get(task.kind) or self._handlers[ANY_KIND]
        loop, leases = asyncio.get_running_loop(), self._client.leases

        def wake() -> None:
            loop.call_soon_threadsafe(leases.wake, task.id)

        run = TaskRun(task, steering, wake)
        traceparent.set(task.traceparent)
        running.set((self._client.url, task.id))
        work = asyncio.ensure_future(self._call(handler, run))
        lost = False
        flushed = asyncio.Event()

        def stop() -> None:
            # A function in a thread runs until it checks, and keeps its slot until then.
            if not run._stop.is_set():
                run._stop.set()
                if inspect.iscoroutinefunction(handler):
                    work.cancel()

        def on_lost(why: str) -> None:
            nonlocal lost
            flushed.set()
            if work.done():
                # The server knows the end of the task already, or refuses the report.
                return
            log.warning("task %s is lost: %s", task.id, why)
            lost = True
            stop()

        def on_heard(answer: HeartbeatAnswer) -> None:
            run._hear(answer)
            if not run._has_output():
                flushed.set()
            if answer.cancel_requested:
                stop()

        leases.keep(task.id, task.fence, clock, lost=on_lost, heard=on_heard, say=run._say, worker=self.name)
        if steering:
            leases.wake(task.id)
        try:
            await asyncio.wait({work})
            if not lost:
                await self._flush(task, run, flushed)
                await self._report(task, clock, {**_outcome(work, run), **run._unnamed()})
        finally:
            leases.drop(task.id)
            run._stop.set()
            work.cancel()

    async def _flush(self, task: ClaimedTask, run: TaskRun, flushed: asyncio.Event) -> None:
        """Sends the output that is left: watchers get it before the end."""
        if run._has_output():
            flushed.clear()
            self._client.leases.wake(task.id)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(flushed.wait(), LAST_OUTPUT)

    async def _call(self, handler: Handler, run: TaskRun) -> Any:
        if inspect.iscoroutinefunction(handler):
            return await handler(run)
        context = contextvars.copy_context()
        result = await asyncio.get_running_loop().run_in_executor(self._threads, lambda: context.run(handler, run))
        return await result if inspect.isawaitable(result) else result

    async def _report(self, task: ClaimedTask, clock: LeaseClock, outcome: Mapping[str, Any]) -> None:
        """Repeats the report until it arrives or the lease ends. After the lease, another attempt counts."""
        body = {"fence": task.fence, **outcome}
        tries = 0
        while True:
            tries += 1
            try:
                await self._client.transport.send("POST", path_of("tasks", task.id, "complete"), body=body)
                return
            except (StaleLease, NotFound) as refused:
                # If the answer to an earlier try was lost, the server may already have this report.
                level = logging.WARNING if tries == 1 else logging.INFO
                log.log(level, "the report on task %s was refused: %s", task.id, refused)
                return
            except LanewayError as error:
                failure = failure_instead(error)
                if failure is not None and "result" in body:
                    # The server may have ended the attempt already, with its own words.
                    body, tries = {"fence": task.fence, **failure}, 1
                    continue
                pause = self._pauses.pause(error, tries, 0.0, random.random())
                if pause is None or clock.left <= 0:
                    log.error("the report on task %s did not arrive: %s", task.id, error)
                    return
                await asyncio.sleep(pause)


def _outcome(work: asyncio.Future[Any], run: TaskRun) -> Mapping[str, Any]:
    """The report on an ended attempt."""
    if work.cancelled():
        return {"success": False, "error": "cancelled", "retryable": False}
    error = work.exception()
    if error is None:
        return _sayable(work.result()) or {"success": True, "result": work.result()}
    if isinstance(error, AttemptFailed):
        retryable = error.retryable and not run.is_cancelled
        failed = {"success": False, "error": str(error), "retryable": retryable}
        return failed if error.result is None else _sayable(error.result) or {**failed, "result": error.result}
    text = f"{type(error).__name__}: {error}"
    final = isinstance(error, DoNotRetry) or run.is_cancelled
    return {"success": False, "error": str(error) if isinstance(error, DoNotRetry) else text, "retryable": not final}


def _sayable(result: Any) -> Optional[Mapping[str, Any]]:
    """The report on a result that cannot be sent; `None` if it can."""
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError) as unsayable:
        return {"success": False, "error": f"the result cannot be said in JSON: {unsayable}", "retryable": False}
    return None
