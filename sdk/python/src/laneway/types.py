"""What goes over the wire. Written by scripts/generate.py from the server's OpenAPI document; not edited by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union


At = str

ClientEvent = dict[str, Any]

Code = str

PriorityRequest = Union[int, Literal["user", "schedule", "agent", "background"]]

Scope = Literal["read", "submit", "worker", "admin"]

ThreadId = Union[str, int]


@dataclass(frozen=True)
class AcceptedEvent:
    """A task was accepted."""

    kind: str
    """The kind."""
    at: Union[At, None] = None
    """When the event happened."""
    lanes: Union[list[str], None] = None
    """The lanes, the home lane first."""
    priority: Union[int, None] = None
    """The priority without boosts."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class AcceptedExecution:
    """The state of a turn at acceptance."""

    id: str
    """The task."""
    status: str
    """`running`, `queued`, or the end if the task has ended."""
    eta_ms: Union[int, None] = None
    """The estimated time until the start."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""


@dataclass(frozen=True)
class AcceptedTask:
    """A task that was accepted."""

    durability: str
    """How safely the task is stored: `memory`, `engine`, `disk` or `replicated`."""
    id: str
    """The id."""
    status: str
    """`running`, `queued`, or the end if the task has ended."""
    eta_ms: Union[int, None] = None
    """The estimated time until the start."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""
    replayed: Union[bool, None] = None
    """Whether an earlier request with the same key submitted the task."""


@dataclass(frozen=True)
class AcceptedTurn:
    """A turn that was accepted, for a caller that does not wait."""

    durability: str
    """How safely the task is stored: `memory`, `engine`, `disk` or `replicated`."""
    execution: AcceptedExecution
    """The task."""


@dataclass(frozen=True)
class AgentView:
    """An agent."""

    is_busy: bool
    """Whether a turn runs."""
    lane: str
    """The lane of its turns."""
    lanes: list[str]
    """Further lanes that its turns need."""
    max_queued: int
    """The largest number of waiting tasks."""
    name: str
    """Its name."""
    runner: str
    """What answers its turns: `command`, `url`, `external` or `echo`."""
    running: int
    """The number of running turns."""
    task_lane: str
    """The lane of its stateless tasks."""
    waiting: int
    """The number of waiting tasks."""
    max_concurrency: Union[int, None] = None
    """The largest number of tasks that run at once."""
    origin: Union[str, None] = None
    """Where it comes from: `file` or `api`."""


@dataclass(frozen=True)
class AlertEvent:
    """The number of waiting tasks in a lane exceeds a threshold."""

    lane: str
    """The lane."""
    level: str
    """`warning` or `critical`."""
    waiting: int
    """The number of tasks that wait in the lane."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class AttemptView:
    """One attempt at a task."""

    number: int
    """The number, counted from one."""
    outcome: str
    """`running`, `failed` if another attempt followed, or the end of the task."""
    ended_at: Union[At, None] = None
    """When the attempt ended."""
    error: Union[str, None] = None
    """The error."""
    started_at: Union[At, None] = None
    """When the attempt started, if known."""
    worker: Union[str, None] = None
    """The worker."""


@dataclass(frozen=True)
class AuditEntry:
    """One line of the audit log."""

    action: str
    """What was done, such as `clear_queue` or `force_release`."""
    actor: str
    """The id of the person."""
    at: str
    """When."""
    details: Any
    """Details."""
    event_type: str
    """What was changed: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config` or `server`."""
    hash: str
    """The hash of this line."""
    id: int
    """The number, counted from one."""
    prev: str
    """The hash of the previous line."""
    severity: str
    """`info`, `warning` or `critical`."""
    target: str
    """The name of what was changed."""


@dataclass(frozen=True)
class BatchAnswer:
    """The results of the calls, in their order."""

    results: list[BatchResult]
    """One result for each call."""


class _BatchCall(TypedDict):
    tool: str
    """The tool."""


class BatchCall(_BatchCall, total=False):
    """One call of a tool."""

    payload: Any
    """Its arguments."""


class _BatchRequest(TypedDict):
    calls: list[BatchCall]
    """The calls, in the order in which the model made them."""
    session: str
    """The session."""


class BatchRequest(_BatchRequest, total=False):
    """The tool calls of one model turn."""

    group: Union[str, None]
    """The label of all calls."""


@dataclass(frozen=True)
class BatchResult:
    """The result of one call."""

    success: bool
    """Whether the call completed."""
    tool: str
    """The tool."""
    error: Union[Problem, None] = None
    """The error."""
    result: Any = None
    """The result. A call that failed may have one too: its output."""


@dataclass(frozen=True)
class BlockerView:
    """One reason why a task waits."""

    detail: str
    """The reason in one sentence."""
    kind: str
    """`not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`, `unclaimed`, `behind`."""
    count: Union[int, None] = None
    """The number."""
    lane: Union[str, None] = None
    """The lane."""
    since: Union[At, None] = None
    """Since when."""
    tasks: Union[list[str], None] = None
    """The tasks that hold the slots."""
    until: Union[At, None] = None
    """Until when."""


@dataclass(frozen=True)
class BoostedEvent:
    """The priority of a task has changed."""

    by: str
    """The cause: `waiting`, `deadline` or `caller`."""
    at: Union[At, None] = None
    """When the event happened."""
    levels: Union[int, None] = None
    """The number of levels."""
    priority: Union[int, None] = None
    """The new priority without boosts."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class CancelAnswer:
    """The result of a cancellation."""

    id: str
    """The task."""
    status: str
    """`cancelled_while_queued`, `cancelling`, or `already_<state>`."""


@dataclass(frozen=True)
class CancelManyAnswer:
    """The number of cancelled tasks."""

    cancelled: int
    """The number of tasks; for a dry run, the number that would be cancelled."""


class CancelManyRequest(TypedDict, total=False):
    """Which waiting tasks to cancel: those that match all fields. At least one field must be set."""

    dry_run: bool
    """Only counts the tasks."""
    group: Union[str, None]
    """Tasks with this label."""
    kind: Union[str, None]
    """Tasks of this kind."""
    lane: Union[str, None]
    """Tasks that name this lane."""
    parent: Union[str, None]
    """Tasks that this task submitted."""
    session: Union[str, None]
    """Turns of this session."""


@dataclass(frozen=True)
class CancelledEvent:
    """A task was cancelled."""

    code: str
    """`CANCELLED`."""
    reason: str
    """The reason."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ChangedEvent:
    """The numbers of a lane have changed."""

    lane: str
    """The lane."""
    running: int
    """The number of running tasks."""
    waiting: int
    """The number of tasks that wait in the lane."""
    at: Union[At, None] = None
    """When the event happened."""
    max_concurrent: Union[int, None] = None
    """The largest number of tasks that run at once; `null` if there is no limit."""


@dataclass(frozen=True)
class ChatAnswer:
    """The answer to a request that waited for the end of its turn."""

    execution: ExecutionSummary
    """The course of the turn."""
    response: Any
    """The agent's answer: its text, if the agent answered with more fields."""
    more: dict[str, Any] = field(default_factory=dict[str, Any], metadata={"rest": True})
    """All further fields."""


class _ChatRequest(TypedDict):
    message: str
    """The message to the agent."""


class ChatRequest(_ChatRequest, total=False):
    """A request to an agent: a turn of a session, or a stateless task."""

    allowed_tools: Union[list[str], None]
    """The server passes it on to the agent."""
    deadline_ms: Union[int, None]
    """The latest start, counted from acceptance."""
    metadata: Any
    """The server passes it on to the agent."""
    model: Union[str, None]
    """The server passes it on to the agent."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or `user`, `schedule`, `agent`, `background`."""
    session: Union[str, None]
    """The session, whose turns run one after another. Default: none, so only the lanes of the agent limit such turns."""
    stream: Union[bool, None]
    """The server passes it on to the agent. The header `Accept` decides whether the server streams."""
    system_prompt: Union[str, None]
    """The server passes it on to the agent."""
    timeout_ms: Union[int, None]
    """The longest time of one attempt."""
    timeout_seconds: Union[float, None]
    """The longest time of one attempt, in seconds, unless `timeout_ms` gives it. The server passes it on to the agent."""
    user: Union[UserRef, None]
    """The person on whose behalf the token sends the request. The token must be allowed to speak for others."""
    wait_timeout_ms: Union[int, None]
    """The longest time in the queue. With 0 the task starts at once or is refused."""


@dataclass(frozen=True)
class ClaimAnswer:
    """The tasks that a worker claimed."""

    tasks: list[ClaimedTask]
    """The claimed tasks."""


class _ClaimBody(TypedDict):
    worker: str
    """The name of the worker."""


class ClaimBody(_ClaimBody, total=False):
    """A worker's request for tasks."""

    ids: list[str]
    """Only those of these tasks that may run now, regardless of the order. At most 1000; without `lanes`, `kinds` and `max`."""
    kinds: list[str]
    """The kinds. Default: any."""
    lanes: list[str]
    """The home lanes: names or patterns. At least one, unless `ids` are set."""
    lease_ms: Union[int, None]
    """The lease without a heartbeat. Default: the setting of the lane."""
    max: Union[int, None]
    """The largest number of tasks. Default 1, at most 1000."""
    wait_ms: Union[int, None]
    """The longest wait for a task. Default 0, at most 60 000."""


@dataclass(frozen=True)
class ClaimedTask:
    """A task that a worker holds until the lease lapses."""

    attempt: int
    """The number of the attempt, counted from one."""
    fence: int
    """The fence, for every report of the worker."""
    id: str
    """The task."""
    kind: str
    """The kind."""
    lane: str
    """Its home lane."""
    lease_until: At
    """When the lease lapses without a heartbeat."""
    payload: Any
    """The payload."""
    remaining_ms: Union[int, None] = None
    """The time that is left."""
    session: Union[str, None] = None
    """The session."""
    timeout_ms: Union[int, None] = None
    """How long the attempt may take."""
    traceparent: Union[str, None] = None
    """The trace of the task."""


@dataclass(frozen=True)
class ClearedQueue:
    """The result of clearing an agent's queue."""

    agent: str
    """The agent."""
    cleared_count: int
    """The number of cancelled tasks."""
    status: str
    """`cleared`."""


class _CompleteBody(TypedDict):
    fence: int
    """The fence of the attempt."""
    success: bool
    """Whether the attempt succeeded."""


class CompleteBody(_CompleteBody, total=False):
    """The end of an attempt."""

    error: Union[str, None]
    """The error of a failure."""
    result: Any
    """The result. A failure may have one too, such as the output of a command that failed. The task keeps it with the error."""
    retryable: Union[bool, None]
    """Whether a retry may help. Default true."""
    steered: list[str]
    """The ids of messages that the attempt has taken and not sent with a heartbeat. Messages that it never names wait for a turn of their own."""


@dataclass(frozen=True)
class CompletedEvent:
    """A task succeeded."""

    result: Any
    """The result."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ConfigValue:
    """A value in force."""

    block: str
    """The block, as in the file; empty at the top level."""
    key: str
    """The key."""
    source: str
    """The origin: a file and line, a variable, `api`, `default`, or `replica (… says …)`."""
    value: str
    """The value, without secrets."""
    configured: Union[str, None] = None
    """What the configuration says, for a value that a caller has changed: `laneway.hcl:3 says 4`."""


@dataclass(frozen=True)
class ConfigView:
    """The configuration in force, and where each value comes from."""

    values: list[ConfigValue]
    """Every value."""


@dataclass(frozen=True)
class ConfiguredEvent:
    """Settings changed."""

    lanes: list[str]
    """The names and patterns of the lanes."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class CreatedToken:
    """A new token."""

    created_at: At
    """When the token was created."""
    id: str
    """The part of the token before the dot."""
    scopes: list[Scope]
    """The scopes."""
    speaks_for_others: bool
    """Whether the token may send requests on behalf of other people."""
    subject: str
    """The user of the token."""
    token: str
    """The token: `id.secret`. Only this answer holds it; the server keeps a hash of the secret."""


@dataclass(frozen=True)
class CurrentTurn:
    """The turn that is under way in a session."""

    messages: list[str]
    """The ids of its messages."""
    pending: list[str]
    """The ids of the messages that wait for the turn to take them."""
    said: list[MessageView]
    """The texts of all of these messages; of a turn without messages, its request."""
    steered: list[str]
    """The ids of the messages that the turn has taken while it ran."""
    takes_steering: bool
    """Whether messages can steer it."""
    task_id: str
    """The task."""


@dataclass(frozen=True)
class DeadLetterView:
    """A dead letter: a task that failed for good."""

    at: At
    """When the task failed for good."""
    attempts: int
    """The number of attempts."""
    error: str
    """The last error."""
    id: str
    """The task."""
    kind: str
    """The kind."""
    lane: str
    """Its home lane."""
    payload: Any
    """The payload."""
    result: Any = None
    """What the last attempt produced all the same, while the history has the task."""
    session: Union[str, None] = None
    """The session."""


@dataclass(frozen=True)
class DeadLetteredEvent:
    """A task failed for good."""

    attempts: int
    """The number of attempts."""
    error: str
    """The error."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class DeltaEvent:
    """More of the text that an attempt produces."""

    text: str
    """The text."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class EndedEvent:
    """A task ended by the clock."""

    code: str
    """The cause: `RUN_TIMED_OUT`, `WAIT_TIMEOUT` or `EXPIRED`."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class Execution:
    """A turn in an agent's queue."""

    effective_priority: int
    """The priority with the boosts of waiting and of the deadline."""
    id: str
    """The task."""
    message: str
    """The message."""
    priority: int
    """The priority without boosts."""
    queued_at: At
    """When the task was accepted."""
    source: str
    """The source of the task: `user`, `schedule`, `agent` or `background`."""
    status: str
    """`queued`, `running` or `retrying`."""
    agent_name: Union[str, None] = None
    """The agent."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""
    source_agent: Union[str, None] = None
    """The agent that sent the request."""
    source_user_email: Union[str, None] = None
    """The email address."""
    source_user_id: Union[str, None] = None
    """The source of the request."""
    started_at: Union[At, None] = None
    """When it started."""


@dataclass(frozen=True)
class ExecutionSummary:
    """The course of a turn."""

    attempt: int
    """The number of the last attempt."""
    id: str
    """The task."""
    queue_status: str
    """The state at acceptance: `running` or `queued:N`."""
    run_ms: int
    """The duration of the last attempt."""
    wait_ms: int
    """The time from acceptance to the start of the last attempt."""
    was_queued: bool
    """Whether the task waited."""


@dataclass(frozen=True)
class ExplainView:
    """Why a task waits."""

    blockers: list[BlockerView]
    """The blockers, the most certain first."""
    id: str
    """The task."""
    status: str
    """`queued`, `running`, `retrying`."""
    eta_ms: Union[int, None] = None
    """The estimated time until the start."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""


@dataclass(frozen=True)
class ExternalCompletedEvent:
    """A task of an external or hybrid lane has ended."""

    success: bool
    """Whether the attempt succeeded."""
    at: Union[At, None] = None
    """When the event happened."""
    kind: Union[str, None] = None
    """The kind."""
    lane: Union[str, None] = None
    """The home lane."""
    session: Union[str, None] = None
    """The session."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ExternalPendingEvent:
    """A task of an external or hybrid lane was accepted."""

    kind: str
    """The kind."""
    lane: str
    """The home lane."""
    at: Union[At, None] = None
    """When the event happened."""
    payload: Any = None
    """The payload."""
    remaining_ms: Union[int, None] = None
    """How long the task may wait for a worker."""
    session: Union[str, None] = None
    """The session."""
    task_id: Union[str, None] = None
    """The task."""
    timeout_ms: Union[int, None] = None
    """How long an attempt may take."""


@dataclass(frozen=True)
class ExternalTask:
    """A task that waits for a worker."""

    attempt: int
    """The number of the next attempt, counted from one."""
    id: str
    """The task."""
    kind: str
    """The kind."""
    lane: str
    """Its home lane."""
    payload: Any
    """The payload."""
    remaining_ms: Union[int, None] = None
    """The time until the wait times out."""
    session: Union[str, None] = None
    """The session."""
    timeout_ms: Union[int, None] = None
    """The longest time of one attempt."""


@dataclass(frozen=True)
class FailedEvent:
    """A task failed."""

    code: str
    """`RUN_FAILED`, or `LOST` if its owner died."""
    error: str
    """The error."""
    at: Union[At, None] = None
    """When the event happened."""
    result: Any = None
    """What the task produced all the same."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class GapEvent:
    """Events are missing here."""

    missed: Union[int, None] = None
    """The number of missing events; `null` if the server does not know."""


@dataclass(frozen=True)
class GroupEvent:
    """A task of a group was accepted or has ended."""

    done: int
    """The number of tasks that have ended, failed ones included."""
    failed: int
    """The number of tasks that ended without completing."""
    group: str
    """The group."""
    total: int
    """The number of tasks."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class GroupView:
    """The tasks with one label."""

    done: int
    """The number of tasks that have ended, failed ones included."""
    failed: int
    """The number of tasks that ended without completing."""
    total: int
    """The number of tasks."""


@dataclass(frozen=True)
class Health:
    """Whether the server is alive."""

    running: int
    """The number of running tasks."""
    status: str
    """`ok`."""
    waiting: int
    """The number of waiting tasks."""
    limit: Union[int, None] = None
    """The largest number of tasks that run at once; `null` if there is no limit."""


@dataclass(frozen=True)
class HeartbeatAnswer:
    """The answer to a heartbeat."""

    cancel_requested: bool
    """Whether the worker must stop."""
    lease_until: At
    """When the lease lapses now."""
    steer: list[str]
    """The texts of steering messages since the last heartbeat. For a worker that sends `steered`, all that it has not taken."""
    steering: Union[list[TurnMessageView], None] = None
    """The same messages with their ids."""


class _HeartbeatBody(TypedDict):
    fence: int
    """The fence of the attempt."""


class HeartbeatBody(_HeartbeatBody, total=False):
    """A heartbeat."""

    delta: Union[str, None]
    """More of the text that the attempt produces, for clients that watch the task."""
    progress: Any
    """The progress, for clients that watch the task."""
    steered: Union[list[str], None]
    """The ids of messages in `steering` that the attempt has taken, or an empty list. Other messages stay on offer, so that a lost answer loses nothing. Without this field all messages in the answer count as taken."""
    takes_steering: Union[bool, None]
    """Whether the turn takes steering from now on. Only for turns of a session."""
    usage: Any
    """What the attempt has used so far, such as tokens, for clients that watch the task."""


@dataclass(frozen=True)
class HistoryPoint:
    """One point of a chart."""

    at: At
    """When."""
    value: float
    """The value."""


@dataclass(frozen=True)
class HistoryPoints:
    """Points of a chart."""

    lane: str
    """The lane."""
    metric: str
    """The metric."""
    points: list[HistoryPoint]
    """The points, the oldest first."""
    range: str
    """The range: `5m`, `1h` or `24h`."""
    step_ms: int
    """The time between two points. The newest point may come sooner."""
    by_code: Union[dict[str, list[HistoryPoint]], None] = None
    """For the metric `refused`: the points of each code."""


@dataclass(frozen=True)
class LaneCounters:
    """The counters of lanes."""

    accepted: int
    """Tasks accepted."""
    cancelled: int
    """Tasks that were cancelled."""
    completed: int
    """Tasks that completed."""
    failed: int
    """Tasks that failed or took too long."""
    lost: int
    """Tasks whose lease lapsed and that did not run again."""
    retried: int
    """Attempts that were followed by another attempt."""
    started: int
    """Attempts started."""
    timed_out_waiting: int
    """Tasks that waited too long."""


@dataclass(frozen=True)
class LaneEvent:
    """An event of a lane."""

    lane: str
    """The lane."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class LaneNumbers:
    """The state of a lane."""

    counters: LaneCounters
    """The counters of all lanes with this label."""
    draining: bool
    """Whether the lane accepts no tasks."""
    label: str
    """The block or pattern with its settings. Metrics count the lane under this label."""
    lane: str
    """Its name."""
    max_queued: int
    """The largest number of waiting tasks."""
    paused: bool
    """Whether the lane starts no tasks."""
    retrying: int
    """The number of tasks that wait for the time of their next attempt."""
    run: Percentiles
    """The durations of attempts."""
    running: int
    """The number of taken slots."""
    settings: dict[str, Any]
    """All settings, by name."""
    wait: Percentiles
    """The waiting times before each start."""
    waiting: int
    """The number of waiting tasks."""
    alert: Union[str, None] = None
    """The alert in force: `warning` or `critical`."""
    max_concurrency: Union[int, None] = None
    """The number of slots."""


@dataclass(frozen=True)
class LeaseView:
    """The lease of a worker on one task."""

    kind: str
    """The kind."""
    last_heartbeat: At
    """The last heartbeat for this task."""
    lease_until: At
    """When the lease lapses."""
    started_at: At
    """When the worker claimed the task."""
    task: str
    """The task."""


class LettersSelector(TypedDict, total=False):
    """Which dead letters: those that match all fields. At least one field must be set."""

    dry_run: bool
    """Only counts the dead letters."""
    kind: Union[str, None]
    """Tasks of this kind."""
    lane: Union[str, None]
    """Tasks with this home lane."""
    session: Union[str, None]
    """Tasks of this session, also of its tool lanes."""


@dataclass(frozen=True)
class Me:
    """The caller, as the server sees it."""

    scopes: list[Scope]
    """The scopes of the caller, with those that a wider scope includes."""
    subject: str
    """The user of the token; `local` if the server has no tokens."""


@dataclass(frozen=True)
class MessageAnswer:
    """The outcome of sending a message."""

    id: str
    """The message; for a `duplicate`, the accepted one."""
    outcome: str
    """`started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`."""
    typing: bool
    """Whether the sender should see typing."""
    position: Union[int, None] = None
    """The position among the waiting messages, counted from one."""
    reply: Union[str, None] = None
    """The answer to a directive; for a `duplicate`, the answer to the accepted message."""
    task_id: Union[str, None] = None
    """The turn that the message started, steers or interrupted."""


@dataclass(frozen=True)
class MessageEvent:
    """A message to a session was accepted or has ended."""

    message_id: str
    """The message."""
    outcome: str
    """The outcome."""
    session: str
    """The key of the session."""
    at: Union[At, None] = None
    """When the event happened."""
    detail: Union[str, None] = None
    """The rule, reason or error of the end."""
    task_id: Union[str, None] = None
    """The turn that answered it."""
    typing: Union[bool, None] = None
    """Whether the sender should see typing."""


class _MessageRequest(TypedDict):
    agent: str
    """The agent that answers."""


class MessageRequest(_MessageRequest, total=False):
    """A message to a session."""

    account: Union[str, None]
    """The account on the channel."""
    attachments: Union[list[Any], None]
    """What the message has attached, as JSON that the server passes on to the agent. The text, the metadata and the attachments have at most 256 KiB together."""
    cap: Union[int, None]
    """The largest number of waiting messages."""
    channel: Union[str, None]
    """The channel that the message came from."""
    debounce_ms: Union[int, None]
    """How long the session must be quiet before the turn starts."""
    drop: Union[str, None]
    """Which messages the server drops if there are more."""
    heartbeat: Union[bool, None]
    """Whether the server drops the message if the session is busy."""
    max_wait_ms: Union[int, None]
    """The longest wait for a quiet session."""
    message_id: Union[str, None]
    """The channel's own id of the message. The server accepts each id once."""
    metadata: Any
    """JSON that the server passes on to the agent with the message."""
    mode: Union[str, None]
    """The mode: what happens if the session is busy."""
    otherwise: Union[str, None]
    """What happens if that turn has ended or takes no steering: `followup` (the default), `reject` or `drop`."""
    permissions: Union[list[str], None]
    """The permissions of the sender. Directives such as `/stop` count only with `queue` among them. Without this field, the token decides: it needs the scope `admin`."""
    sender: Union[str, None]
    """The id of the sender."""
    sender_name: Union[str, None]
    """The name of the sender."""
    text: str
    """The text. A message with attachments needs none."""
    thread: Union[ThreadId, None]
    """The thread on the channel. A number is the same as its digits."""
    to: Union[str, None]
    """The recipient of the answer."""
    turn_id: Union[str, None]
    """The turn that the message steers."""


@dataclass(frozen=True)
class MessageView:
    """A message."""

    agent: str
    """The agent that answers."""
    at: At
    """When the task was accepted."""
    id: str
    """The id."""
    text: str
    """The text."""
    channel: Union[str, None] = None
    """The channel that the message came from."""
    error: Union[str, None] = None
    """Why the message was parked."""
    sender_name: Union[str, None] = None
    """The name of the sender."""


class MoveRequest(TypedDict, total=False):
    """Another place in line for a message."""

    before: Union[str, None]
    """Before which message; `null`: to the end."""


class _NewSchedule(TypedDict):
    agent: str
    """The agent."""
    cron: str
    """Five or six fields of cron, or a word such as `@daily`."""
    message: str
    """The message to the agent."""
    name: str
    """Its name."""


class NewSchedule(_NewSchedule, total=False):
    """A schedule to create."""

    catch_up: Union[str, None]
    """What follows firings that were missed while the server was down: `skip` (the default) or `one`."""
    enabled: Union[bool, None]
    """Whether the schedule fires. Default true."""
    session: Union[str, None]
    """The session. Default: none."""
    timezone: Union[str, None]
    """The time zone. Default `UTC`."""
    user: Union[UserRef, None]
    """The person on whose behalf its turns run. Default: the subject of the token. Another person needs a token that may speak for others."""


class _NewToken(TypedDict):
    scopes: list[Scope]
    """The scopes."""
    subject: str
    """The user of the token. The audit log and the tasks of the token name it."""


class NewToken(_NewToken, total=False):
    """A token to create."""

    speaks_for_others: bool
    """Whether the token may send requests on behalf of other people."""


@dataclass(frozen=True)
class NoticeEvent:
    """A task has waited for a while."""

    ahead: int
    """The number of tasks before it."""
    waited_ms: int
    """How long the task has waited."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class Percentiles:
    """Durations, in milliseconds."""

    count: int
    """The number of measurements."""
    p50_ms: Union[int, None] = None
    """The median."""
    p90_ms: Union[int, None] = None
    """The 90th percentile."""
    p95_ms: Union[int, None] = None
    """95 %."""
    p99_ms: Union[int, None] = None
    """The 99th percentile."""


@dataclass(frozen=True)
class PlaceEvent:
    """The position of a waiting task."""

    at: Union[At, None] = None
    """When the event happened."""
    eta_ms: Union[int, None] = None
    """The estimated time until the start."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class PressureEvent:
    """A lane is under pressure."""

    lane: str
    """The lane."""
    waiting: int
    """The number of tasks that wait in the lane."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class Problem:
    """Why a request was refused or a task failed, and what to do next. `reason`, `taskId`, `error`, `agent` and `message` repeat other fields under names that clients of other servers know."""

    code: Code
    """The code of the refusal."""
    detail: str
    """One sentence about this refusal."""
    error: str
    """The title of this refusal."""
    message: str
    """The same as `detail`."""
    phase: str
    """`setup` before the task ran, `run` after."""
    reason: str
    """The code, why a task was cancelled, or `BUSY`: all slots are taken, and the request may not wait."""
    retryable: bool
    """Whether the same request may succeed later."""
    status: int
    """The status of the HTTP answer."""
    title: str
    """A title, the same for every refusal with this code."""
    type: str
    """`urn:laneway:problem:<slug>`."""
    agent: Union[str, None] = None
    """The agent."""
    blocked_by: Union[str, None] = None
    """The lane without a free slot, where that is not the lane that refused."""
    current_task_id: Union[str, None] = None
    """The longest-running task in the lane."""
    lane: Union[str, None] = None
    """The lane that refused."""
    max_concurrency: Union[int, None] = None
    """The number of slots of the lane."""
    max_queued: Union[int, None] = None
    """The largest number of tasks that may wait in the lane."""
    queue_length: Union[int, None] = None
    """The number of tasks that wait in the lane."""
    retry_after: Union[int, None] = None
    """The time until the next try, in whole seconds, rounded up."""
    retry_after_ms: Union[int, None] = None
    """The time until the next try, in milliseconds."""
    running: Union[int, None] = None
    """The number of taken slots."""
    taskId: Union[str, None] = None
    """The same as `task_id`."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ProgressEvent:
    """The progress that an attempt reports, or what a request to cancel found."""

    at: Union[At, None] = None
    """When the event happened."""
    cancel: Union[str, None] = None
    """What a request to cancel found, on a WebSocket."""
    event: Union[str, None] = None
    """The name that the agent gave the event, if it is also the name of an event of Laneway."""
    progress: Any = None
    """The report."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class QueueView:
    """The queue of an agent."""

    agent_name: str
    """The agent."""
    is_busy: bool
    """Whether a turn runs."""
    queue_length: int
    """The number of waiting tasks."""
    queued_executions: list[Execution]
    """The waiting turns, in order."""
    current_execution: Union[Execution, None] = None
    """The longest-running turn."""
    running_executions: Union[list[Execution], None] = None
    """All running turns, the longest-running first."""


@dataclass(frozen=True)
class Readiness:
    """Whether the server takes work."""

    status: str
    """`ready`, `draining`, `full` or `store_unavailable`."""
    store_warning: Union[str, None] = None
    """What to repair in the store before it loses something; absent if nothing."""


@dataclass(frozen=True)
class Receipt:
    """The state of a message."""

    ended: bool
    """Whether the message has ended. A `steered` message ends with its turn."""
    id: str
    """The message."""
    status: str
    """`waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`."""
    detail: Union[str, None] = None
    """The rule, reason or error of the end."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""
    task_id: Union[str, None] = None
    """The turn."""


@dataclass(frozen=True)
class RedriveAnswer:
    """The result for dead letters."""

    count: int
    """The number."""
    tasks: list[str]
    """The new tasks of a redrive."""


@dataclass(frozen=True)
class ReleasedLane:
    """The result of releasing a lane by force."""

    lane: str
    """The lane."""
    released: list[str]
    """The tasks that lost their slots."""
    warning: str
    """A warning that the old attempts may still run."""
    was_running: bool
    """Whether a task was running."""


@dataclass(frozen=True)
class ReleasedQueue:
    """The result of releasing an agent by force."""

    agent: str
    """The agent."""
    released: list[str]
    """The tasks that lost their slots."""
    status: str
    """`released`."""
    warning: str
    """A warning that the old attempts may still run."""
    was_running: bool
    """Whether a task was running."""


class RetryRequest(TypedDict, total=False):
    """The retries after a failure."""

    fixed_delay_ms: Union[int, None]
    """Fixed: the delay before each retry. Default 1000."""
    initial_delay_ms: Union[int, None]
    """Exponential: the delay before the first retry, which doubles each time. Default 100."""
    jitter: Union[bool, None]
    """Chooses each delay at random from its upper half. Default false."""
    max_delay_ms: Union[int, None]
    """The longest delay. Default 30 000."""
    max_retries: Union[int, None]
    """The largest number of retries. Default 3."""
    strategy: Union[str, None]
    """`none`, `fixed` or `exponential` (the default)."""


@dataclass(frozen=True)
class RetryingEvent:
    """An attempt is over and another follows."""

    delay_ms: int
    """The delay before the next attempt."""
    error: str
    """The error."""
    at: Union[At, None] = None
    """When the event happened."""
    attempt: Union[int, None] = None
    """The attempt that is over."""
    task_id: Union[str, None] = None
    """The task."""


class ScheduleChange(TypedDict, total=False):
    """A change of a schedule. Fields that the body leaves out stay."""

    agent: Union[str, None]
    """The agent."""
    catch_up: Union[str, None]
    """`skip` or `one`."""
    cron: Union[str, None]
    """When."""
    enabled: Union[bool, None]
    """Whether the schedule fires."""
    message: Union[str, None]
    """The message to the agent."""
    session: Union[str, None]
    """The session."""
    timezone: Union[str, None]
    """The time zone."""
    user: Union[UserRef, None]
    """The person on whose behalf its turns run."""


@dataclass(frozen=True)
class ScheduleFiredEvent:
    """A schedule fired."""

    due_at: str
    """The moment of the firing."""
    schedule: str
    """The name of the schedule."""
    status: str
    """`running`, or `failed` if the task was refused."""
    at: Union[At, None] = None
    """When the event happened."""
    error: Union[str, None] = None
    """Why the task was refused."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ScheduleRun:
    """One firing of a schedule."""

    due_at: str
    """The moment of the firing."""
    fired_at: str
    """When it fired."""
    status: str
    """`running`, the end of the task, or `failed` if it was refused."""
    trigger: str
    """The cause: `clock`, `catch_up` for missed firings, or `manual`."""
    error: Union[str, None] = None
    """Why the task was refused or failed."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ScheduleView:
    """A schedule."""

    agent: str
    """The agent."""
    catch_up: str
    """`skip` or `one`."""
    cron: str
    """When."""
    enabled: bool
    """Whether the schedule fires."""
    message: str
    """The message to the agent."""
    name: str
    """Its name."""
    next_runs: list[At]
    """The next firings."""
    origin: str
    """The origin: `file` or `api`."""
    timezone: str
    """The time zone."""
    last_run: Union[ScheduleRun, None] = None
    """The last firing."""
    session: Union[str, None] = None
    """The session."""
    user: Union[UserRef, None] = None
    """The person on whose behalf its turns run."""
    words: Union[str, None] = None
    """The times in words."""


class SessionChange(TypedDict, total=False):
    """A change of the settings of a session. Fields that the body leaves out stay."""

    cap: Union[int, None]
    """The largest number of waiting messages."""
    debounce_ms: Union[int, None]
    """How long the session must be quiet before the turn starts."""
    drop: Union[str, None]
    """Which messages the server drops if there are more."""
    max_wait_ms: Union[int, None]
    """The longest wait for a quiet session."""
    mode: Union[str, None]
    """The mode: what happens to messages while the session is busy."""


@dataclass(frozen=True)
class SessionSetting:
    """A setting for messages and its origin."""

    from_: str
    """The origin: `message`, `session`, `channel`, `global` or `default`."""
    value: str
    """The value as text."""


@dataclass(frozen=True)
class SessionSettings:
    """How the messages of a session are queued."""

    cap: SessionSetting
    """The largest number of waiting messages."""
    debounce_ms: SessionSetting
    """How long the session must be quiet before the turn starts."""
    drop: SessionSetting
    """Which messages the server drops if there are more."""
    max_wait_ms: SessionSetting
    """The longest wait for a quiet session."""
    mode: SessionSetting
    """The mode: what happens to messages while the session is busy."""


@dataclass(frozen=True)
class SessionStats:
    """The tool lanes of a session."""

    external_pending: int
    """The number of calls that wait for a worker."""
    lanes: dict[str, ToolLaneStats]
    """The tool lanes, by name."""
    total_active: int
    """The number of running calls."""
    total_pending: int
    """The number of waiting calls."""
    settings: Union[SessionSettings, None] = None
    """The settings for messages, each with its origin. A session without messages has them too."""


@dataclass(frozen=True)
class SessionSummary:
    """A session."""

    dropped: int
    """The number of dropped messages that the next turn will mention."""
    is_busy: bool
    """Whether the session has a turn."""
    key: str
    """The key of the session."""
    messages: list[MessageView]
    """The waiting messages, in order."""
    settings: SessionSettings
    """How messages are queued, each value with where it came from."""
    typing: bool
    """Whether the people in the session should see typing."""
    current_turn: Union[CurrentTurn, None] = None
    """The turn that is under way."""
    retry_at: Union[At, None] = None
    """The earliest time of the next try."""
    set_aside: Union[list[MessageView], None] = None
    """The parked messages, the oldest first. They can be sent again or deleted."""


@dataclass(frozen=True)
class SlotAnswer:
    """A slot that the caller holds until the lease lapses."""

    fence: int
    """The fence, for heartbeats and completion."""
    id: str
    """The task that holds the slot, for heartbeats and completion."""
    lease_until: At
    """When the lease lapses without a heartbeat."""


class _SlotRequest(TypedDict):
    lanes: list[str]
    """The lanes; the first is the home lane."""


class SlotRequest(_SlotRequest, total=False):
    """A slot in each lane, for work of the caller's own."""

    id: Union[str, None]
    """The id of the slot's task, a UUID that was never used. With it, the caller can look at the slot and cancel it while it waits. Default: the server chooses."""
    label: Union[str, None]
    """A name for people who look at the queue."""
    lease_ms: Union[int, None]
    """The lease without a heartbeat. Default: the setting of the home lane."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or the name of a source."""
    session: Union[str, None]
    """The session."""
    source: Union[str, None]
    """`user`, `schedule`, `agent` or `background`. Default: the priority, if it is one of these, else `agent` for a child and `user` for any other slot."""
    wait_ms: Union[int, None]
    """The longest wait; with 0 the server answers at once. Default: the setting of the home lane."""
    worker: Union[str, None]
    """The worker that holds the slot, as `GET /api/workers/{worker}/events` knows it."""


@dataclass(frozen=True)
class StartedEvent:
    """An attempt starts."""

    attempt: int
    """The number of the attempt, counted from one."""
    fence: int
    """The fence."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""
    worker: Union[str, None] = None
    """The worker that has the task."""


@dataclass(frozen=True)
class StatusView:
    """The state of the server."""

    line: str
    """`Agent: 2/3`, or `Agent: 3/3 (2 queued)`."""
    running: int
    """The number of running tasks."""
    waiting: int
    """The number of waiting tasks."""
    dead_letters: Union[int, None] = None
    """The number of dead letters."""
    max_concurrent: Union[int, None] = None
    """The largest number of tasks that run at once; `null` if there is no limit."""
    store_warning: Union[str, None] = None
    """What to repair in the store before it loses something; absent if nothing."""


class SteerRequest(TypedDict):
    """A text for a running turn."""

    text: str
    """The text."""


class TaskChange(TypedDict):
    """A change of a waiting task."""

    priority: PriorityRequest
    """0 to 9, or the name of a source."""


@dataclass(frozen=True)
class TaskEvent:
    """An event of a task."""

    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


class _TaskRequest(TypedDict):
    kind: str
    """The kind of the task, which decides its handler."""


class TaskRequest(_TaskRequest, total=False):
    """A task to submit."""

    deadline_ms: Union[int, None]
    """The latest start, counted from acceptance."""
    fair_key: Union[str, None]
    """The key for fair sharing."""
    group: Union[str, None]
    """The label of tasks that belong together."""
    lanes: list[str]
    """The lanes of the task, the home lane first. Default: `main`, or `external` if the server has no handler for the kind."""
    parent: Union[str, None]
    """The running task that submits this one."""
    payload: Any
    """The input of the handler or worker."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or the name of a source."""
    retry: Union[RetryRequest, None]
    """The retries after a failure."""
    run_after_ms: Union[int, None]
    """The delay before the task may start."""
    source: Union[str, None]
    """The source of the task: `user`, `schedule`, `agent` or `background`."""
    timeout_ms: Union[int, None]
    """The longest time of one attempt."""
    wait_timeout_ms: Union[int, None]
    """The longest time in the queue. With 0 the task starts at once or is refused."""


@dataclass(frozen=True)
class TaskView:
    """A task, live or ended."""

    attempts: int
    """The number of attempts that have started."""
    id: str
    """The id."""
    kind: str
    """The kind."""
    lanes: list[str]
    """The lanes, the home lane first."""
    priority: int
    """The priority without boosts."""
    source: str
    """The source of the request."""
    status: str
    """`queued`, `running`, `retrying`, or the end."""
    submitted_at: At
    """When the task was accepted."""
    attempt_list: Union[list[AttemptView], None] = None
    """The newest attempts, in order. Lists leave them out."""
    cancel_requested: Union[bool, None] = None
    """Whether the attempt has a stop signal."""
    deadline_at: Union[At, None] = None
    """The latest start."""
    effective_priority: Union[int, None] = None
    """The priority with the boosts of waiting and of the deadline."""
    ended_at: Union[At, None] = None
    """When the task ended."""
    error: Union[str, None] = None
    """The error."""
    eta_ms: Union[int, None] = None
    """The estimated time until the start."""
    group: Union[str, None] = None
    """The label that the task shares with others."""
    label: Union[str, None] = None
    """The name of a slot, as its holder gave it."""
    lane_position: Union[int, None] = None
    """The position among the tasks that wait in the requested lane, counted from one."""
    lease_until: Union[At, None] = None
    """When the lease lapses."""
    owner: Union[str, None] = None
    """The token that submitted the task."""
    parent: Union[str, None] = None
    """The task that submitted this one."""
    payload: Any = None
    """The input of the handler or worker. The history keeps it if an attempt ended the task and it is no longer than 16 KiB."""
    position: Union[int, None] = None
    """The position in the home lane, counted from one."""
    reason: Union[str, None] = None
    """The reason of a cancellation."""
    result: Any = None
    """The result."""
    session: Union[str, None] = None
    """The session of a turn."""
    started_at: Union[At, None] = None
    """When the last attempt started."""
    timeout_ms: Union[int, None] = None
    """The longest time of one attempt."""
    traceparent: Union[str, None] = None
    """The trace of the task."""
    wait_until: Union[At, None] = None
    """When the wait times out."""
    worker: Union[str, None] = None
    """The worker that has the task or had it last."""


@dataclass(frozen=True)
class TokenView:
    """A token, without its secret."""

    created_at: At
    """When the token was created."""
    id: str
    """The part of the token before the dot."""
    scopes: list[Scope]
    """The scopes."""
    speaks_for_others: bool
    """Whether the token may send requests on behalf of other people."""
    subject: str
    """The user of the token."""


@dataclass(frozen=True)
class ToolLaneStats:
    """A tool lane of a session. The counters are those of all sessions with the same settings."""

    active: int
    """The number of running calls."""
    completed: int
    """The number of calls that completed."""
    failed: int
    """The number of calls that failed."""
    handler_mode: str
    """`internal`, `external` or `hybrid`."""
    pending: int
    """The number of waiting calls."""
    max_concurrency: Union[int, None] = None
    """The largest number of tasks that run at once."""


@dataclass(frozen=True)
class TurnEvent:
    """The turn of a session takes messages."""

    messages: list[str]
    """The ids of the messages."""
    session: str
    """The key of the session."""
    at: Union[At, None] = None
    """When the event happened."""


@dataclass(frozen=True)
class TurnMessageView:
    """One message of a turn."""

    id: str
    """The id."""
    text: str
    """The text."""
    attachments: Union[list[Any], None] = None
    """The attachments of the message."""
    message_id: Union[str, None] = None
    """The channel's own id of the message."""
    metadata: Any = None
    """The metadata of the message."""
    redelivered: Union[bool, None] = None
    """Whether the message was in a turn that was lost."""
    sender: Union[str, None] = None
    """The id of the sender."""
    sender_name: Union[str, None] = None
    """The name of the sender."""


@dataclass(frozen=True)
class TurnPayloadView:
    """A turn as its agent gets it: the body of the request to an upstream, the first line of a `jsonl` program, and the payload of a worker's task. A field that is missing has no value."""

    agent: str
    """The agent."""
    message: str
    """Everything that is said, as one text."""
    account: Union[str, None] = None
    """The account on the channel."""
    allowed_tools: Union[list[str], None] = None
    """The tools that the agent may use."""
    channel: Union[str, None] = None
    """The channel that the messages came from and the answer goes to."""
    dropped: Union[int, None] = None
    """The number of messages that were dropped before these."""
    fresh: Union[bool, None] = None
    """Whether the session starts afresh."""
    messages: Union[list[TurnMessageView], None] = None
    """The messages of the session one by one. Empty for a chat or a schedule."""
    metadata: Any = None
    """The metadata of the request."""
    model: Union[str, None] = None
    """The model."""
    permissions: Union[list[str], None] = None
    """The permissions of the senders."""
    redelivered: Union[bool, None] = None
    """Whether a turn with some of this was lost, which may have done something already."""
    schedule: Union[str, None] = None
    """The schedule that asked."""
    session: Union[str, None] = None
    """The session. Missing for the agent's own session."""
    source_agent: Union[str, None] = None
    """The agent that sent the request."""
    stateless: Union[bool, None] = None
    """Whether this is a stateless task, which belongs to no session."""
    stream: Union[bool, None] = None
    """Whether the caller asked for a stream."""
    system_prompt: Union[str, None] = None
    """The system prompt."""
    text: Union[str, None] = None
    """The same text."""
    thread: Union[str, None] = None
    """The thread on the channel."""
    timeout_seconds: Union[float, None] = None
    """The timeout of the request, in seconds."""
    to: Union[str, None] = None
    """The recipient of the answer."""
    user: Union[UserRef, None] = None
    """The person that the request is for."""


@dataclass(frozen=True)
class UsageEvent:
    """What an attempt has used so far."""

    usage: Any
    """The report."""
    at: Union[At, None] = None
    """When the event happened."""
    task_id: Union[str, None] = None
    """The task."""


class _UserRef(TypedDict):
    id: str
    """The id of the person."""


class UserRef(_UserRef, total=False):
    """A person on whose behalf a token sends a request."""

    email: Union[str, None]
    """The email address."""


@dataclass(frozen=True)
class WorkerView:
    """A worker that holds tasks."""

    last_heartbeat: At
    """The last heartbeat."""
    lease_until: At
    """When its first lease lapses."""
    leases: list[LeaseView]
    """The leases, one for each task."""
    tasks: list[str]
    """The tasks of the worker."""
    worker: str
    """The id of the person."""
