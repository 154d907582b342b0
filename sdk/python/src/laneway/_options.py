"""What can be said along with a call, by name."""

from __future__ import annotations

from typing import Any, Mapping, TypedDict

from .types import PriorityRequest, RetryRequest, UserRef

_HEADERS = {
    "source_agent": "x-source-agent",
    "parent": "x-laneway-parent",
    "idempotency_key": "idempotency-key",
}


class TurnOptions(TypedDict, total=False):
    """What can be said about a turn or a stateless task of an agent."""

    session: str
    """The conversation. Default: the agent's own."""
    priority: PriorityRequest
    """0 to 9, or `user`, `schedule`, `agent`, `background`."""
    wait_timeout_ms: int
    """How long it may wait; 0: it starts now or is refused."""
    timeout_ms: int
    """How long an attempt may take."""
    deadline_ms: int
    """When it is too late to start, counted from acceptance."""
    model: str
    """Passed on to the agent."""
    metadata: Any
    """Passed on to the agent."""
    user: UserRef
    """For whom a token speaks that may speak for others."""
    source_agent: str
    """The agent that asks."""
    parent: str
    """The id of the running task that asks and waits: it lends its slots."""
    detach: bool
    """The run goes on when this caller has gone."""
    idempotency_key: str
    """Asking twice is asking once, and the request is repeated by itself where that helps."""


class TaskOptions(TypedDict, total=False):
    """What can be said about a task."""

    priority: PriorityRequest
    """0 to 9, or the name of a source."""
    source: str
    """Who asked: `user`, `schedule`, `agent`, `background`."""
    fair_key: str
    """With whom it shares turns."""
    parent: str
    """The running task that asks."""
    group: str
    """A label that tasks which belong together share."""
    wait_timeout_ms: int
    """How long it may wait; 0: it starts now or is refused."""
    timeout_ms: int
    """How long an attempt may take."""
    deadline_ms: int
    """When it is too late to start, counted from acceptance."""
    run_after_ms: int
    """How long it must wait before it may start."""
    retry: RetryRequest
    """What follows a failure."""


class MessageOptions(TypedDict, total=False):
    """What can be said about a message to a session."""

    message_id: str
    """The channel's own id of the message: the same one twice is one message."""
    channel: str
    """Where it came from."""
    to: str
    """Where the answer goes."""
    account: str
    """By which account."""
    thread: str
    """In which thread."""
    sender: str
    """Who said it."""
    sender_name: str
    """As people know them."""
    permissions: list[str]
    """What the sender may do."""
    mode: str
    """What happens if the session is busy."""
    debounce_ms: int
    """How long it must have been quiet."""
    cap: int
    """How many messages may wait."""
    drop: str
    """Which go when there are more."""
    max_wait_ms: int
    """After how long the turn starts although it is not quiet."""
    heartbeat: bool
    """It is worth nothing later: dropped when the session is busy."""
    turn_id: str
    """The turn that it means to steer."""
    otherwise: str
    """What becomes of it if that turn is over or takes no steering: `followup` (the default), `reject` or `drop`."""


class SlotOptions(TypedDict, total=False):
    """What can be said about a slot."""

    session: str
    """The conversation: one turn of it at a time."""
    wait_ms: int
    """How long to wait; 0: now or never. Default: as the home lane says."""
    lease_ms: int
    """How long without a sign of life. Default: as the home lane says."""
    priority: PriorityRequest
    """0 to 9, or the name of a source."""


class LaneOptions(TypedDict, total=False):
    """Settings of a lane; durations are milliseconds or texts such as `"2s"`."""

    max_concurrency: int | str
    max_queued: int
    order: str
    priority: int | str
    weight: int
    wait_timeout: int | str
    wait_timeout_ms: int
    timeout: int | str
    timeout_ms: int
    lease: int | str
    lease_ms: int
    max_redelivery: int
    retry: Mapping[str, Any] | str
    rate_limit: Mapping[str, Any] | str
    ageing: Mapping[str, Any] | str
    boost: Mapping[str, Any] | str
    pressure_threshold: int
    alerts: Mapping[str, int]
    dead_letters_max: int
    notice_after: int | str
    handler: str


def split(how: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The options of a turn as what stands in the body, and what in the headers."""
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for key, value in how.items():
        if key == "detach":
            headers["x-detach"] = "true" if value else "false"
        elif key in _HEADERS:
            headers[_HEADERS[key]] = value
        else:
            body[key] = value
    return body, headers
