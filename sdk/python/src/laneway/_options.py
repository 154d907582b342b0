"""Keyword arguments of calls."""

from __future__ import annotations

from typing import Any, Mapping, Optional, TypedDict

from .types import PriorityRequest, RetryRequest, UserRef

_HEADERS = {
    "source_agent": "x-source-agent",
    "parent": "x-laneway-parent",
    "idempotency_key": "idempotency-key",
}


class TurnOptions(TypedDict, total=False):
    """Options of a turn or a stateless task of an agent."""

    session: str
    """The session, whose turns run one after another. Default: none, so only the lanes of the agent limit such turns."""
    priority: PriorityRequest
    """0 to 9, or `user`, `schedule`, `agent`, `background`."""
    wait_timeout_ms: int
    """How long it may wait. With 0 it starts now or is refused."""
    timeout_ms: int
    """How long an attempt may take."""
    deadline_ms: int
    """The deadline, counted from acceptance. No attempt starts after it."""
    model: str
    """Passed on to the agent."""
    metadata: Any
    """Passed on to the agent."""
    system_prompt: str
    """Passed on to the agent."""
    allowed_tools: list[str]
    """Passed on to the agent."""
    timeout_seconds: float
    """How long an attempt may take, unless `timeout_ms` says. Passed on to the agent."""
    stream: bool
    """Passed on to the agent. `chat` and `stream` decide how this client gets the answer."""
    user: UserRef
    """The user of the request, if the token may send requests on behalf of other people."""
    source_agent: str
    """The agent that sends the request."""
    parent: str
    """The id of the parent, which lends its slots while it waits. Default: the task of the worker's handler that asks."""
    detach: bool
    """The turn continues when this caller disconnects."""
    idempotency_key: str
    """The idempotency key. With it, a repeated request starts nothing, and the client repeats the request where that helps."""


class TaskOptions(TypedDict, total=False):
    """Options of a task."""

    priority: PriorityRequest
    """0 to 9, or the name of a source."""
    source: str
    """The source: `user`, `schedule`, `agent` or `background`."""
    fair_key: str
    """The fair key."""
    parent: str
    """The id of the parent."""
    group: str
    """A label that related tasks share."""
    wait_timeout_ms: int
    """How long it may wait. With 0 it starts now or is refused."""
    timeout_ms: int
    """How long an attempt may take."""
    deadline_ms: int
    """The deadline, counted from acceptance. No attempt starts after it."""
    run_after_ms: int
    """How long to wait before it may start."""
    retry: RetryRequest
    """The retry rule."""


class MessageOptions(TypedDict, total=False):
    """Options of a message to a session."""

    message_id: str
    """The channel's own id of the message. A repeated id is one message."""
    channel: str
    """The channel it came from."""
    to: str
    """The recipient of the answer."""
    account: str
    """The account of the channel."""
    thread: str | int
    """The thread of the channel."""
    metadata: Any
    """Passed on to the agent."""
    attachments: list[Any]
    """Passed on to the agent. A message with attachments may have an empty text."""
    sender: str
    """The id of the sender."""
    sender_name: str
    """The name of the sender."""
    permissions: list[str]
    """What the sender may do."""
    mode: str
    """The queue mode, for a busy session."""
    debounce_ms: int
    """How long no message must arrive before the turn starts."""
    cap: int
    """How many messages may wait."""
    drop: str
    """Which messages are dropped above the maximum."""
    max_wait_ms: int
    """After how long the turn starts although messages still arrive."""
    heartbeat: bool
    """The message is dropped when the session is busy or has waiting messages."""
    turn_id: str
    """The turn to steer."""
    otherwise: str
    """What to do if that turn has ended or takes no steering: `followup` (the default), `reject` or `drop`."""


class SlotOptions(TypedDict, total=False):
    """Options of a slot."""

    id: str
    """The id of the slot's task, a new UUID. With it, you can look at the slot and cancel it while it waits."""
    label: str
    """A name for people who look at the queue."""
    source: str
    """The source: `user`, `schedule`, `agent` or `background`. Default: the priority, if it is one of these."""
    parent: str
    """The id of the parent, which lends its slots. Default: the task of the worker's handler that asks."""
    session: str
    """The session, which runs one turn at a time."""
    wait_ms: int
    """How long to wait. With 0 the slot is granted now or refused. Default: the home lane's setting."""
    lease_ms: int
    """The lease. Default: the home lane's setting."""
    priority: PriorityRequest
    """0 to 9, or the name of a source."""


class ScheduleOptions(TypedDict, total=False):
    """Options of a new schedule."""

    timezone: str
    """The time zone. Default: `UTC`."""
    session: str
    """The session. Default: none."""
    user: UserRef
    """The person on whose behalf its turns run. Default: the subject of the token."""
    enabled: bool
    """Whether the schedule fires. Default: true."""
    catch_up: str
    """What follows firings that were missed while the server was down: `skip` (the default) or `one`."""


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


class AgentOptions(LaneOptions, total=False):
    """What runs an agent's turns, and the settings of its lane."""

    url: Optional[str]
    """The HTTP service that answers."""
    external: bool
    """Workers answer."""
    echo: bool
    """The agent answers with the message."""
    lanes: Optional[list[str]]
    """Further lanes that its turns need."""


def split(how: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Splits the options of a turn or slot into fields of the body and headers."""
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
