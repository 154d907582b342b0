"""Typed events of tasks, lanes and sessions."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, cast

from .errors import Refusal, refusal


@dataclass(frozen=True)
class Event:
    """An event. An event that this package does not know is a plain `Event`."""

    name: str
    """Its name on the wire."""
    data: Mapping[str, Any] = field(repr=False)
    """All its fields."""
    event_id: Optional[str] = field(default=None, repr=False)
    """Its id in the stream."""
    task_id: Optional[str] = None
    at: Optional[str] = None


@dataclass(frozen=True)
class Accepted(Event):
    """The server accepted a task."""

    kind: str = ""
    lanes: tuple[str, ...] = ()
    priority: Optional[int] = None


@dataclass(frozen=True)
class Queued(Event):
    """The task waits."""

    position: Optional[int] = None
    eta_ms: Optional[int] = None


@dataclass(frozen=True)
class Position(Event):
    """The position of the task changed."""

    position: Optional[int] = None
    eta_ms: Optional[int] = None


@dataclass(frozen=True)
class Notice(Event):
    """The task has waited for a while."""

    waited_ms: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class Typing(Event):
    """A message was accepted; an answer will follow."""


@dataclass(frozen=True)
class Started(Event):
    """An attempt starts."""

    attempt: int = 1
    worker: Optional[str] = None


@dataclass(frozen=True)
class Delta(Event):
    """A part of the task's output."""

    text: str = ""


@dataclass(frozen=True)
class Progress(Event):
    """The progress of the task."""

    progress: Any = None


@dataclass(frozen=True)
class Usage(Event):
    """What the attempt has used so far."""

    usage: Any = None


@dataclass(frozen=True)
class Steered(Event):
    """The running turn got a message."""


@dataclass(frozen=True)
class Boosted(Event):
    """Ageing, a boost or an operator raised the priority of the task."""

    levels: Optional[int] = None
    priority: Optional[int] = None
    by: str = ""


@dataclass(frozen=True)
class Retrying(Event):
    """Another attempt follows."""

    delay_ms: int = 0
    error: str = ""
    attempt: Optional[int] = None


@dataclass(frozen=True)
class Completed(Event):
    """The task succeeded."""

    result: Any = None


@dataclass(frozen=True)
class Failed(Event):
    """The task did not succeed."""

    error: str = ""
    code: str = "RUN_FAILED"


@dataclass(frozen=True)
class TimedOut(Event):
    """The task reached its timeout or its wait timeout: `code` says which."""

    code: str = "RUN_TIMED_OUT"


@dataclass(frozen=True)
class Cancelled(Event):
    """The task was cancelled."""

    reason: str = ""


@dataclass(frozen=True)
class Expired(Event):
    """The task's deadline passed while it waited."""


@dataclass(frozen=True)
class Done(Event):
    """The last event of a task."""


@dataclass(frozen=True)
class Changed(Event):
    """The numbers of a lane changed."""

    lane: str = ""
    running: int = 0
    waiting: int = 0
    max_concurrent: Optional[int] = None


@dataclass(frozen=True)
class LaneEvent(Event):
    """The state of a lane: `pressure`, `idle`, `alert`, `paused`, `resumed`, `draining` or `drained`."""

    lane: str = ""
    waiting: Optional[int] = None
    level: Optional[str] = None


@dataclass(frozen=True)
class DeadLettered(Event):
    """A task failed for good and is kept as a dead letter."""

    error: str = ""
    attempts: int = 0


@dataclass(frozen=True)
class ExternalTaskPending(Event):
    """A task of an external or hybrid lane was accepted."""

    kind: str = ""
    lane: str = ""
    session: Optional[str] = None
    payload: Any = None
    timeout_ms: Optional[int] = None
    remaining_ms: Optional[int] = None


@dataclass(frozen=True)
class ExternalTaskCompleted(Event):
    """A task of an external or hybrid lane has ended."""

    success: bool = False
    kind: str = ""
    lane: str = ""
    session: Optional[str] = None


@dataclass(frozen=True)
class Message(Event):
    """A message to a session."""

    outcome: str = ""


@dataclass(frozen=True)
class Group(Event):
    """The tasks of a group changed."""

    group: str = ""
    done: int = 0
    total: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Gap(Event):
    """Events are missing here; `missed` is `None` when the number is unknown."""

    missed: Optional[int] = None


@dataclass(frozen=True)
class Error(Event):
    """The server refused something."""

    refusal: Optional[Refusal] = None


_KINDS: Mapping[str, type[Event]] = {
    "accepted": Accepted,
    "queued": Queued,
    "position": Position,
    "notice": Notice,
    "typing": Typing,
    "started": Started,
    "delta": Delta,
    "progress": Progress,
    "usage": Usage,
    "steered": Steered,
    "boosted": Boosted,
    "retrying": Retrying,
    "completed": Completed,
    "failed": Failed,
    "timed_out": TimedOut,
    "cancelled": Cancelled,
    "expired": Expired,
    "done": Done,
    "changed": Changed,
    "pressure": LaneEvent,
    "idle": LaneEvent,
    "alert": LaneEvent,
    "paused": LaneEvent,
    "resumed": LaneEvent,
    "draining": LaneEvent,
    "drained": LaneEvent,
    "dead_lettered": DeadLettered,
    "external_task_pending": ExternalTaskPending,
    "external_task_completed": ExternalTaskCompleted,
    "message": Message,
    "group": Group,
    "gap": Gap,
    "error": Error,
}
_ALL: set[type[Event]] = {Event, *_KINDS.values()}
_FIELDS = {kind: {part.name for part in dataclasses.fields(kind)} for kind in _ALL}
_OWN = {"name", "data", "event_id"}


def event(name: str, text: str, event_id: Optional[str]) -> Event:
    """The typed event of a name and its fields."""
    told: Any = json.loads(text) if text else {}
    data = cast("dict[str, Any]", told) if isinstance(told, dict) else {"value": told}
    kind = _KINDS.get(name, Event)
    known: dict[str, Any] = {key: value for key, value in data.items() if key in _FIELDS[kind] and key not in _OWN}
    if kind is Accepted:
        known["lanes"] = tuple(known.get("lanes", ()))
    if kind is Error:
        known = {"refusal": refusal(data)}
    return kind(name=name, data=data, event_id=event_id or None, **known)
