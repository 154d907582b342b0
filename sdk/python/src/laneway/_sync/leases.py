"""Leases that are kept alive in the background, all by one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Callable, Optional

from .._decode import decode
from .._lease import LeaseClock
from ..types import HeartbeatAnswer
from ..errors import LanewayError, NotFound, Refusal, StaleLease
from .transport import Transport, path_of

Lost = Callable[[str], None]
Heard = Callable[[HeartbeatAnswer], None]


@dataclass
class _Kept:
    fence: int
    clock: LeaseClock
    lost: Lost
    heard: Optional[Heard]
    due: float


class Leases:
    """Gives a sign of life each third of each lease. The thread starts with the first lease and ends with the client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._kept: dict[str, _Kept] = {}
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._closed = False
        # When the thread looks again by itself; it need not be told of what is due later.
        self._wakes_at = float("inf")

    def keep(
        self, task: str, fence: int, clock: LeaseClock, *, lost: Lost, heard: Optional[Heard] = None
    ) -> None:
        """Keeps this lease alive until it is dropped or lost. `lost` and `heard` are called on the thread."""
        kept = _Kept(fence, clock, lost, heard, clock.now() + clock.next_sign)
        with self._changed:
            self._kept[task] = kept
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="laneway-leases", daemon=True)
                self._thread.start()
            elif kept.due < self._wakes_at:
                self._changed.notify()

    def drop(self, task: str) -> None:
        """No more signs of life for this one."""
        with self._changed:
            self._kept.pop(task, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._kept.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                if not self._kept:
                    self._wakes_at = float("inf")
                    self._changed.wait()
                    continue
                task, kept = min(self._kept.items(), key=lambda item: item[1].due)
                pause = kept.due - kept.clock.now()
                if pause > 0:
                    self._wakes_at = kept.due
                    self._changed.wait(pause)
                    continue
            self._sign(task, kept)

    def _sign(self, task: str, kept: _Kept) -> None:
        clock = kept.clock
        asked_at = clock.now()
        answer: Optional[HeartbeatAnswer] = None
        why: Optional[str] = None
        try:
            response = self._transport.send("POST", path_of("tasks", task, "heartbeat"), body={"fence": kept.fence})
            answer = decode(HeartbeatAnswer, response.json())
            clock.renewed(asked_at)
            kept.due = clock.now() + clock.next_sign
        except (StaleLease, NotFound) as refused:
            why = refused.detail
        except LanewayError as error:
            if isinstance(error, Refusal) and not error.retryable:
                why = error.detail
            elif clock.left <= 0:
                why = "no sign of life was heard before the lease was over"
            kept.due = clock.now() + min(clock.next_try, max(clock.left, 0))
        with self._changed:
            is_kept = self._kept.get(task) is kept
            if is_kept and why is not None:
                del self._kept[task]
        if is_kept and why is not None:
            kept.lost(why)
        elif is_kept and answer is not None and kept.heard is not None:
            kept.heard(answer)
