"""One attempt at a task, as its handler sees it."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Mapping

from .errors import LeaseLost
from .types import ClaimedTask, HeartbeatAnswer


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
        """The fence, which grows with each attempt. Pass it to systems that must reject an older attempt."""
        self.remaining_ms = task.remaining_ms
        """How much time the attempt had when it was claimed."""
        self._wake = wake
        self._lock = threading.Lock()
        self._progress: Any = None
        self._has_progress = False
        self._takes_steering = takes_steering
        # Messages that the handler has not taken yet, and ids of those it has. Heartbeats repeat the ids until an answer comes.
        self._offered: dict[str, str] = {}
        self._taken: list[str] = []
        self._named: list[str] = []
        self._stop = threading.Event()

    def progress(self, value: Any) -> None:
        """Publishes the progress, in JSON. Watchers get the newest of several values in quick succession."""
        json.dumps(value, allow_nan=False)
        with self._lock:
            self._progress, self._has_progress = value, True
        self._wake()

    def steered(self) -> list[str]:
        """The messages to the turn since the last call, for handlers that take steering.

        Messages that the handler has not taken when it ends wait for the next turn.
        """
        with self._lock:
            said, self._offered = self._offered, {}
            self._taken.extend(said)
        return list(said.values())

    @property
    def is_cancelled(self) -> bool:
        """Whether the handler must stop. An `async` handler is also cancelled; one in a thread must check this."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises `LeaseLost` if the handler must stop."""
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
        """Takes the offered messages. A message that the server offers again is taken once."""
        with self._lock:
            self._taken = [id for id in self._taken if id not in self._named]
            for message in answer.steering or ():
                if message.id not in self._taken:
                    self._offered.setdefault(message.id, message.text)

    def _unnamed(self) -> Mapping[str, Any]:
        with self._lock:
            return {"steered": list(self._taken)} if self._taken else {}
