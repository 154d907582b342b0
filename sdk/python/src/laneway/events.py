"""What happens to tasks, lanes and sessions, as typed events."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, cast

from .errors import Refusal, refusal


@dataclass(frozen=True)
class Event:
    """Something that happened. An event that this package does not know is a plain `Event`."""

    name: str
    """As it is called on the wire."""
    data: Mapping[str, Any] = field(repr=False)
    """All that was told."""
    event_id: Optional[str] = field(default=None, repr=False)
    """Where it stands in its stream."""
    task_id: Optional[str] = None
    at: Optional[str] = None


@dataclass(frozen=True)
class Accepted(Event):
    """A task was accepted."""

    kind: str = ""
    lanes: tuple[str, ...] = ()
    priority: Optional[int] = None


@dataclass(frozen=True)
class Queued(Event):
    """It waits."""

    position: Optional[int] = None
    eta_ms: Optional[int] = None


@dataclass(frozen=True)
class Position(Event):
    """Its place in line changed."""

    position: Optional[int] = None
    eta_ms: Optional[int] = None


@dataclass(frozen=True)
class Notice(Event):
    """It has waited for a while."""

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
    """More of what it says."""

    text: str = ""


@dataclass(frozen=True)
class Progress(Event):
    """How far it is."""

    progress: Any = None


@dataclass(frozen=True)
class Steered(Event):
    """Something was said to the running turn."""


@dataclass(frozen=True)
class Boosted(Event):
    """Waiting, its deadline or an operator raised its priority."""

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
    """It succeeded."""

    result: Any = None


@dataclass(frozen=True)
class Failed(Event):
    """It did not succeed."""

    error: str = ""
    code: str = "RUN_FAILED"


@dataclass(frozen=True)
class TimedOut(Event):
    """It took too long, or waited too long: `code` says which."""

    code: str = "RUN_TIMED_OUT"


@dataclass(frozen=True)
class Cancelled(Event):
    """It was cancelled."""

    reason: str = ""


@dataclass(frozen=True)
class Expired(Event):
    """Its deadline passed while it waited."""


@dataclass(frozen=True)
class Done(Event):
    """The last event of a task."""


@dataclass(frozen=True)
class Changed(Event):
    """A lane's numbers."""

    lane: str = ""
    running: int = 0
    waiting: int = 0
    max_concurrent: Optional[int] = None


@dataclass(frozen=True)
class LaneEvent(Event):
    """A lane: `pressure`, `idle`, `alert`, `paused`, `resumed`, `draining`, `drained`."""

    lane: str = ""
    waiting: Optional[int] = None
    level: Optional[str] = None


@dataclass(frozen=True)
class DeadLettered(Event):
    """A task could not be done and is kept as a dead letter."""

    error: str = ""
    attempts: int = 0


@dataclass(frozen=True)
class Message(Event):
    """A message to a session."""

    outcome: str = ""


@dataclass(frozen=True)
class Group(Event):
    """Tasks that belong together moved."""

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
    """Something was refused."""

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
    "message": Message,
    "group": Group,
    "gap": Gap,
    "error": Error,
}
_ALL: set[type[Event]] = {Event, *_KINDS.values()}
_FIELDS = {kind: {part.name for part in dataclasses.fields(kind)} for kind in _ALL}
_OWN = {"name", "data", "event_id"}


def event(name: str, text: str, event_id: Optional[str]) -> Event:
    """The event that was told in these words."""
    told: Any = json.loads(text) if text else {}
    data = cast("dict[str, Any]", told) if isinstance(told, dict) else {"value": told}
    kind = _KINDS.get(name, Event)
    known: dict[str, Any] = {key: value for key, value in data.items() if key in _FIELDS[kind] and key not in _OWN}
    if kind is Accepted:
        known["lanes"] = tuple(known.get("lanes", ()))
    if kind is Error:
        known = {"refusal": refusal(data)}
    return kind(name=name, data=data, event_id=event_id or None, **known)
