"""Renews all leases in one background thread."""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional

from .._lease import LeaseClock
from ..types import HeartbeatAnswer
from ..errors import LanewayError, NotFound, Refusal, StaleLease
from ..retry import Retry
from .transport import Transport, path_of

log = logging.getLogger("laneway")
# How many seconds the closing of a client waits for its last reports.
LAST_WORDS = 1.0
# How many seconds a lease lasts before the client opens a stream for it. Most slots are shorter.
FOLLOW_AFTER = 0.1
Lost = Callable[[str], None]
Heard = Callable[[HeartbeatAnswer], None]


@dataclass
class _Kept:
    """One lease: its next request, and when it is due."""

    path: str
    body: Mapping[str, Any]
    clock: LeaseClock
    due: float
    lost: Optional[Lost] = None
    heard: Optional[Heard] = None
    is_last_word: bool = False
    since: float = field(default_factory=time.monotonic)


class Leases:
    """Sends three heartbeats per lease, and more when the server wants them.

    One thread sends them. Another one follows the events that say for which tasks the server wants a heartbeat now. They
    start when they are first needed, and end with the client.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._begin()

    def _begin(self) -> None:
        # A forked process has none of its parent's threads, and the parent renews the parent's leases.
        self._process = os.getpid()
        self._kept: dict[str, _Kept] = {}
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._closed = False
        self._follows = False
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{random.getrandbits(64):016x}"
        # When the thread wakes by itself. It needs no notification of requests that are due later.
        self._wakes_at = float("inf")

    @property
    def worker(self) -> str:
        """The name under which the server knows this process as the owner of slots."""
        if self._process != os.getpid():
            self._begin()
        return self._worker

    def keep(
        self, task: str, fence: int, clock: LeaseClock, *, lost: Lost, heard: Optional[Heard] = None
    ) -> None:
        """Renews the lease until it is dropped or lost. The thread calls `lost` and `heard`."""
        path = path_of("tasks", task, "heartbeat")
        self._add(task, _Kept(path, {"fence": fence}, clock, clock.now() + clock.next_sign, lost, heard))

    def say_later(self, path: str, body: Mapping[str, Any], clock: LeaseClock) -> None:
        """Repeats a report until it arrives or the lease ends."""
        self._add(path, _Kept(path, body, clock, clock.now(), is_last_word=True))

    def _add(self, key: str, kept: _Kept) -> None:
        if self._process != os.getpid():
            self._begin()
        with self._changed:
            self._kept[key] = kept
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="laneway-leases", daemon=True)
                self._thread.start()
            elif kept.due < self._wakes_at:
                self._changed.notify()

    def drop(self, task: str) -> None:
        """Stops the heartbeats of one task."""
        if self._process == os.getpid():
            with self._changed:
                self._kept.pop(task, None)

    def close(self) -> None:
        """Stops all heartbeats, and waits shortly for the last reports."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._closed = True
            self._kept = {key: kept for key, kept in self._kept.items() if kept.is_last_word}
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wake(self, task: str) -> None:
        """Sends a heartbeat of one task now."""
        with self._changed:
            kept = self._kept.get(task)
            if kept is not None and not kept.is_last_word:
                kept.due = kept.clock.now()
                self._changed.notify()

    def _follow_at(self) -> float:
        """When to begin to follow events."""
        since = (kept.since for kept in self._kept.values() if not kept.is_last_word)
        return float("inf") if self._follows else min(since, default=float("inf")) + FOLLOW_AFTER

    def _follow(self, worker: str) -> None:
        pauses, tries = Retry(limit=float("inf")), 0
        while not self._closed:
            try:
                for event in self._transport.stream("GET", path_of("workers", worker, "events")):
                    tries = 0
                    if event.name == "heartbeat_wanted" and event.task_id is not None:
                        self.wake(event.task_id)
            except LanewayError as error:
                log.debug("does not hear of cancels at once, will try again: %s", error)
            except RuntimeError:
                # The client closed its connections.
                return
            tries += 1
            if not self._closed:
                time.sleep(pauses.own_pause(tries, random.random()))

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    break
                if not self._kept:
                    self._wakes_at = float("inf")
                    self._changed.wait()
                    continue
                key, kept = min(self._kept.items(), key=lambda item: item[1].due)
                wakes_at = min(kept.due, self._follow_at())
                pause = wakes_at - time.monotonic()
                if pause > 0:
                    self._wakes_at = wakes_at
                    self._changed.wait(pause)
                    continue
                if wakes_at < kept.due:
                    self._follows = True
                    threading.Thread(target=self._follow, args=(self._worker,), name="laneway-events", daemon=True).start()
                    continue
            self._say(key, kept, kept.clock.left)
        for key, kept in list(self._kept.items()):
            self._say(key, kept, min(LAST_WORDS, kept.clock.left))

    def _say(self, key: str, kept: _Kept, within: float) -> None:
        """Sends a due request, with a timeout of `within` seconds."""
        clock = kept.clock
        asked_at = clock.now()
        answer: Optional[HeartbeatAnswer] = None
        over: Optional[str] = None
        try:
            how: dict[str, Any] = {"body": kept.body, "within": max(within, 0.05)}
            if kept.is_last_word:
                self._transport.send("POST", kept.path, **how)
                over = "it is given back"
            else:
                answer = self._transport.read(HeartbeatAnswer, "POST", kept.path, **how)
                clock.renewed(asked_at)
                kept.due = clock.now() + clock.next_sign
        except Exception as error:
            if isinstance(error, (StaleLease, NotFound)) or (isinstance(error, Refusal) and not error.retryable):
                over = error.detail
            elif clock.left <= 0:
                over = "no heartbeat arrived before the lease ended"
            elif kept.is_last_word:
                log.warning("could not report that a slot is free, will try again: %s", error)
            kept.due = clock.now() + min(clock.next_try, max(clock.left, 0))
        with self._changed:
            is_kept = self._kept.get(key) is kept
            if is_kept and over is not None:
                del self._kept[key]
        if is_kept and over is not None and kept.lost is not None:
            kept.lost(over)
        elif is_kept and answer is not None and kept.heard is not None:
            kept.heard(answer)
