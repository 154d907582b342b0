"""One attempt at a task, as its handler sees it."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Mapping

from .errors import LeaseLost
from .types import ClaimedTask, HeartbeatAnswer, TurnMessageView


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
        # What the handler says to watchers, and what of it was sent without an answer yet.
        self._output: dict[str, Any] = {}
        self._sent: dict[str, Any] = {}
        self._takes_steering = takes_steering
        # Messages that the handler has not taken yet, and ids of those it has. Heartbeats repeat the ids until an answer comes.
        self._offered: dict[str, TurnMessageView] = {}
        self._taken: list[str] = []
        self._named: list[str] = []
        self._stop = threading.Event()

    def progress(self, value: Any) -> None:
        """Publishes the progress, in JSON. Watchers get the newest of several values in quick succession."""
        json.dumps(value, allow_nan=False)
        self._add({"progress": value})

    def delta(self, text: str) -> None:
        """Publishes more of the text that the attempt produces. Pieces in quick succession are sent together."""
        self._add({"delta": text})

    def usage(self, value: Any) -> None:
        """Publishes what the attempt has used so far, such as tokens, in JSON. Watchers get the newest value."""
        json.dumps(value, allow_nan=False)
        self._add({"usage": value})

    def _add(self, output: Mapping[str, Any]) -> None:
        with self._lock:
            self._output = _joined(self._output, output)
        self._wake()

    def steered(self) -> list[TurnMessageView]:
        """The messages to the turn since the last call, with their ids and senders, for handlers that take steering.

        Messages that the handler has not taken when it ends wait for the next turn.
        """
        with self._lock:
            said, self._offered = self._offered, {}
            self._taken.extend(said)
        if said:
            # After the next heartbeat, the server refuses to withdraw them.
            self._wake()
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
            # Output of a heartbeat that got no answer goes out again.
            self._sent, self._output = _joined(self._sent, self._output), {}
            self._named = list(self._taken)
            steering = {"takes_steering": True, "steered": self._named} if self._takes_steering else {}
            return {**self._sent, **steering}

    def _hear(self, answer: HeartbeatAnswer) -> None:
        """Takes the offered messages. A message that the server offers again is taken once."""
        with self._lock:
            self._sent = {}
            self._taken = [id for id in self._taken if id not in self._named]
            for message in answer.steering or ():
                if message.id not in self._taken:
                    self._offered.setdefault(message.id, message)

    def _has_output(self) -> bool:
        with self._lock:
            return bool(self._output or self._sent)

    def _unnamed(self) -> Mapping[str, Any]:
        with self._lock:
            return {"steered": list(self._taken)} if self._taken else {}


def _joined(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Output of two moments: the text of both, and the newest of everything else."""
    text = earlier.get("delta", "") + later.get("delta", "")
    return {**earlier, **later, **({"delta": text} if text else {})}
