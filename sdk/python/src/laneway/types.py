"""What goes over the wire. Written by scripts/generate.py from the server's OpenAPI document; not edited by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Union


At = str

ClientEvent = dict[str, Any]

Code = str

PriorityRequest = Union[int, Literal["user", "schedule", "agent", "background"]]

Scope = Literal["read", "submit", "worker", "admin"]


@dataclass(frozen=True)
class AcceptedEvent:
    """A task was accepted."""

    kind: str
    """Its kind."""
    at: Union[At, None] = None
    """When."""
    lanes: Union[list[str], None] = None
    """The lanes that it named."""
    priority: Union[int, None] = None
    """Its own priority."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class AcceptedExecution:
    """How a turn stood when it was accepted."""

    id: str
    """The task."""
    status: str
    """`running`, `queued`, or how it ended already."""
    eta_ms: Union[int, None] = None
    """When it will probably start."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""


@dataclass(frozen=True)
class AcceptedTask:
    """A task that was accepted."""

    durability: str
    """What has become of it: `memory`, `engine`, `disk` or `replicated`."""
    id: str
    """Its id."""
    status: str
    """`running`, `queued`, or how it ended already."""
    eta_ms: Union[int, None] = None
    """When it will probably start."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""
    replayed: Union[bool, None] = None
    """An earlier request under the same key had brought it."""


@dataclass(frozen=True)
class AcceptedTurn:
    """A turn that was accepted and is not waited for."""

    durability: str
    """What has become of it: `memory`, `engine`, `disk` or `replicated`."""
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
    """How many may wait."""
    name: str
    """Its name."""
    runner: str
    """What runs its turns: `command`, `url`, `external` or `echo`."""
    running: int
    """How many turns run."""
    task_lane: str
    """The lane of its stateless tasks."""
    waiting: int
    """How many wait."""
    max_concurrency: Union[int, None] = None
    """How many may run at once."""


@dataclass(frozen=True)
class AlertEvent:
    """The line of a lane has grown over a threshold."""

    lane: str
    """The lane."""
    level: str
    """`warning` or `critical`."""
    waiting: int
    """How many tasks wait in it."""
    at: Union[At, None] = None
    """When."""


@dataclass(frozen=True)
class AttemptView:
    """One attempt at a task."""

    number: int
    """Which one, counted from one."""
    outcome: str
    """`running`, `failed` when another followed it, or how it ended the task."""
    ended_at: Union[At, None] = None
    """When it was over."""
    error: Union[str, None] = None
    """What went wrong."""
    started_at: Union[At, None] = None
    """When it started, where that is known."""
    worker: Union[str, None] = None
    """The worker that had it."""


@dataclass(frozen=True)
class AuditEntry:
    """One line of the audit log."""

    action: str
    """What was done: `clear_queue`, `force_release`, …"""
    actor: str
    """Who."""
    at: str
    """When."""
    details: Any
    """More about it."""
    event_type: str
    """What sort of thing: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config`, `server`."""
    hash: str
    """The hash of this line."""
    id: int
    """Counted from one."""
    prev: str
    """The hash of the line before."""
    severity: str
    """`info`, `warning` or `critical`."""
    target: str
    """To what."""


@dataclass(frozen=True)
class BatchAnswer:
    """What came of the calls, in their order."""

    results: list[BatchResult]
    """One for each call."""


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
    """The conversation."""


class BatchRequest(_BatchRequest, total=False):
    """The tool calls of one model turn."""

    group: Union[str, None]
    """The label of all calls."""


@dataclass(frozen=True)
class BatchResult:
    """What came of one call."""

    success: bool
    """Whether it was done."""
    tool: str
    """The tool."""
    error: Union[Problem, None] = None
    """Why it produced nothing."""
    result: Any = None
    """What it produced."""


@dataclass(frozen=True)
class BlockerView:
    """One thing that holds a task up."""

    detail: str
    """In one sentence."""
    kind: str
    """`not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`, `unclaimed`, `behind`."""
    count: Union[int, None] = None
    """How many."""
    lane: Union[str, None] = None
    """The lane."""
    since: Union[At, None] = None
    """Since when."""
    tasks: Union[list[str], None] = None
    """The tasks in the way."""
    until: Union[At, None] = None
    """Until when."""


@dataclass(frozen=True)
class BoostedEvent:
    """The priority of a task has changed."""

    by: str
    """Why: `waiting`, `deadline` or `caller`."""
    at: Union[At, None] = None
    """When."""
    levels: Union[int, None] = None
    """By how many levels."""
    priority: Union[int, None] = None
    """Its own priority now."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class CancelAnswer:
    """What a cancellation found."""

    id: str
    """The task."""
    status: str
    """`cancelled_while_queued`, `cancelling`, or `already_<state>`."""


@dataclass(frozen=True)
class CancelManyAnswer:
    """How many tasks were cancelled."""

    cancelled: int
    """So many; of a dry run, so many would be."""


class CancelManyRequest(TypedDict, total=False):
    """Which waiting tasks to cancel: those that fit everything that is given; at least one thing must be."""

    dry_run: bool
    """Only counts them: nothing is cancelled."""
    group: Union[str, None]
    """They carry this label."""
    kind: Union[str, None]
    """They are of this kind."""
    lane: Union[str, None]
    """They name this lane."""
    parent: Union[str, None]
    """This task asked for them."""
    session: Union[str, None]
    """They are turns of this conversation."""


@dataclass(frozen=True)
class CancelledEvent:
    """A task was cancelled."""

    code: str
    """`CANCELLED`."""
    reason: str
    """Why."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ChangedEvent:
    """The numbers of a lane have changed."""

    lane: str
    """The lane."""
    running: int
    """How many tasks run in it."""
    waiting: int
    """How many tasks wait in it."""
    at: Union[At, None] = None
    """When."""
    max_concurrent: Union[int, None] = None
    """How many may run in it; none: any number."""


@dataclass(frozen=True)
class ChatAnswer:
    """What became of a turn that was waited for."""

    execution: ExecutionSummary
    """How it went."""
    response: Any
    """What the agent answered."""


class _ChatRequest(TypedDict):
    message: str
    """What is asked."""


class ChatRequest(_ChatRequest, total=False):
    """One turn of a conversation, or one stateless task, to ask of an agent."""

    deadline_ms: Union[int, None]
    """When it is too late to start, counted from acceptance."""
    metadata: Any
    """Passed on to the agent."""
    model: Union[str, None]
    """Passed on to the agent."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or `user`, `schedule`, `agent`, `background`."""
    session: Union[str, None]
    """The conversation. Default: the agent's own."""
    timeout_ms: Union[int, None]
    """How long an attempt may take."""
    user: Union[UserRef, None]
    """For whom a token speaks that may speak for others."""
    wait_timeout_ms: Union[int, None]
    """How long it may wait; 0: it starts now or is refused."""


@dataclass(frozen=True)
class ClaimAnswer:
    """What a worker got."""

    tasks: list[ClaimedTask]
    """The tasks that are the worker's now."""


class _ClaimBody(TypedDict):
    worker: str
    """Who asks."""


class ClaimBody(_ClaimBody, total=False):
    """What a worker asks for."""

    ids: list[str]
    """These tasks and no others, whoever stands before them: those of them that may run now. At most 1000; without `lanes`, `kinds` and `max`."""
    kinds: list[str]
    """Of which kinds. Default: any."""
    lanes: list[str]
    """From which home lanes: names or patterns. At least one, unless `ids` are given."""
    lease_ms: Union[int, None]
    """For how long without a sign of life. Default: as the lane says."""
    max: Union[int, None]
    """At most so many. Default 1, at most 1000."""
    wait_ms: Union[int, None]
    """How long to wait for work. Default 0, at most 60 000."""


@dataclass(frozen=True)
class ClaimedTask:
    """A task that is a worker's until its lease lapses."""

    attempt: int
    """Which attempt, counted from one."""
    fence: int
    """To be shown with everything that the worker reports."""
    id: str
    """Which task."""
    kind: str
    """What sort of work it is."""
    lane: str
    """Its home lane."""
    lease_until: At
    """When it lapses without a sign of life."""
    payload: Any
    """What to do."""
    remaining_ms: Union[int, None] = None
    """How much of that is left."""
    session: Union[str, None] = None
    """The conversation."""
    timeout_ms: Union[int, None] = None
    """How long the attempt may take."""
    traceparent: Union[str, None] = None
    """The trace that it belongs to."""


@dataclass(frozen=True)
class ClearedQueue:
    """What clearing an agent's line did."""

    agent: str
    """The agent."""
    cleared_count: int
    """How many had waited."""
    status: str
    """`cleared`."""


class _CompleteBody(TypedDict):
    fence: int
    """Which attempt."""
    success: bool
    """Whether it succeeded."""


class CompleteBody(_CompleteBody, total=False):
    """How an attempt went."""

    error: Union[str, None]
    """Why it did not succeed."""
    result: Any
    """What it produced."""
    retryable: Union[bool, None]
    """Whether another attempt could help. Default true."""
    steered: list[str]
    """The ids of messages that the run has taken and not named in a sign of life; those that it never named wait for a turn of their own."""


@dataclass(frozen=True)
class CompletedEvent:
    """A task succeeded."""

    result: Any
    """What it produced."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ConfigValue:
    """One value that holds."""

    block: str
    """The block, as people write it; empty at the top."""
    key: str
    """The key."""
    source: str
    """Where it came from: a file and line, a variable, `api`, `default`, or `replica (… says …)`."""
    value: str
    """The value, without secrets."""


@dataclass(frozen=True)
class ConfigView:
    """What holds, and where each value comes from."""

    values: list[ConfigValue]
    """Every value."""


@dataclass(frozen=True)
class ConfiguredEvent:
    """Settings changed."""

    lanes: list[str]
    """The names and patterns of the lanes."""
    at: Union[At, None] = None
    """When."""


@dataclass(frozen=True)
class CreatedToken:
    """A token that was just made."""

    created_at: At
    """When it was made."""
    id: str
    """The part before the dot."""
    scopes: list[Scope]
    """What it may do."""
    speaks_for_others: bool
    """Whether it may say for whom it asks."""
    subject: str
    """Who uses it."""
    token: str
    """The token: `id.secret`. It is told this once; only a hash of the secret is kept."""


@dataclass(frozen=True)
class DeadLetterView:
    """A task that could not be done."""

    at: At
    """When it died."""
    attempts: int
    """How many attempts there were."""
    error: str
    """What went wrong last."""
    id: str
    """The task."""
    kind: str
    """What sort of work it was."""
    lane: str
    """Its home lane."""
    payload: Any
    """What was to be done."""


@dataclass(frozen=True)
class DeadLetteredEvent:
    """A task failed for good."""

    attempts: int
    """How many attempts it had."""
    error: str
    """What went wrong."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class DeltaEvent:
    """More of the text that an attempt produces."""

    text: str
    """The text."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class EndedEvent:
    """A task ended by the clock."""

    code: str
    """Why: `RUN_TIMED_OUT`, `WAIT_TIMEOUT` or `EXPIRED`."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class Execution:
    """One turn in an agent's line."""

    effective_priority: int
    """With what waiting and its deadline have added."""
    id: str
    """The task."""
    message: str
    """What was asked."""
    priority: int
    """Its own priority."""
    queued_at: At
    """When it was accepted."""
    source: str
    """Who asked: `user`, `schedule`, `agent`, `background`."""
    status: str
    """`queued`, `running` or `retrying`."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""
    source_agent: Union[str, None] = None
    """Which agent asked."""
    source_user_email: Union[str, None] = None
    """Their address."""
    source_user_id: Union[str, None] = None
    """Who asked."""
    started_at: Union[At, None] = None
    """When it started."""


@dataclass(frozen=True)
class ExecutionSummary:
    """How a turn went."""

    attempt: int
    """Which attempt that was."""
    id: str
    """The task."""
    queue_status: str
    """How it stood when it was accepted: `running` or `queued:N`."""
    run_ms: int
    """How long the last attempt took."""
    wait_ms: int
    """From acceptance to the start of the last attempt."""
    was_queued: bool
    """Whether it had to wait."""


@dataclass(frozen=True)
class ExplainView:
    """Why a task waits."""

    blockers: list[BlockerView]
    """What holds it up, the most certain first."""
    id: str
    """The task."""
    status: str
    """`queued`, `running`, `retrying`."""
    eta_ms: Union[int, None] = None
    """When it will probably start."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""


@dataclass(frozen=True)
class ExternalCompletedEvent:
    """A worker has finished a task."""

    success: bool
    """Whether it succeeded."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ExternalPendingEvent:
    """A task waits for a worker."""

    kind: str
    """Its kind."""
    lane: str
    """Its home lane."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ExternalTask:
    """A task that waits for a worker."""

    attempt: int
    """Which attempt comes next, counted from one."""
    id: str
    """Which task."""
    kind: str
    """What sort of work it is."""
    lane: str
    """Its home lane."""
    payload: Any
    """What to do."""
    remaining_ms: Union[int, None] = None
    """How long it may still wait."""
    session: Union[str, None] = None
    """The conversation."""
    timeout_ms: Union[int, None] = None
    """How long an attempt may take."""


@dataclass(frozen=True)
class FailedEvent:
    """A task failed."""

    code: str
    """`RUN_FAILED`, or `LOST` if its owner died."""
    error: str
    """What went wrong."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class GapEvent:
    """Events are missing here."""

    missed: Union[int, None] = None
    """How many; `null` if the server does not know."""


@dataclass(frozen=True)
class GroupEvent:
    """A task of a group was accepted or has ended."""

    done: int
    """How many of its tasks have ended, failed ones counted."""
    failed: int
    """How many ended otherwise than completed."""
    group: str
    """The group."""
    total: int
    """How many tasks it has."""
    at: Union[At, None] = None
    """When."""


@dataclass(frozen=True)
class GroupView:
    """How tasks with one label stand."""

    done: int
    """How many have ended, failed ones counted."""
    failed: int
    """How many ended otherwise than completed."""
    total: int
    """How many there are."""


@dataclass(frozen=True)
class Health:
    """Whether the server is alive."""

    running: int
    """How many tasks run."""
    status: str
    """`ok`."""
    waiting: int
    """How many wait."""
    limit: Union[int, None] = None
    """How many may run at once; `null`: any number."""


@dataclass(frozen=True)
class HeartbeatAnswer:
    """What a sign of life is answered with."""

    cancel_requested: bool
    """Whether to stop."""
    lease_until: At
    """When the lease lapses now."""
    steer: list[str]
    """What was said to the run since the last sign of life; to one that names what it has `steered`, all that it has not."""
    steering: Union[list[SteeringView], None] = None
    """The same with the messages' ids."""


class _HeartbeatBody(TypedDict):
    fence: int
    """Which attempt."""


class HeartbeatBody(_HeartbeatBody, total=False):
    """A sign of life."""

    progress: Any
    """How far it is; told to whoever watches."""
    steered: Union[list[str], None]
    """The ids of messages in `steering` that the run has taken, or an empty list: what is not named stays on offer, so that a lost answer loses nothing. Without it what is handed over counts as taken."""
    takes_steering: Union[bool, None]
    """Whether the turn takes steering from now on; without it nothing is handed over. Only of turns of a conversation."""


@dataclass(frozen=True)
class HistoryPoint:
    """One point of a chart."""

    at: At
    """When."""
    value: float
    """How much."""


@dataclass(frozen=True)
class HistoryPoints:
    """Points of a chart."""

    lane: str
    """Of which lane."""
    metric: str
    """What was measured."""
    points: list[HistoryPoint]
    """The points, the oldest first."""
    range: str
    """How far back: `5m`, `1h` or `24h`."""
    step_ms: int
    """How far points are apart; the newest may be nearer."""
    by_code: Union[dict[str, list[HistoryPoint]], None] = None
    """Of `refused`: the points of each code by itself."""


@dataclass(frozen=True)
class LaneCounters:
    """What lanes have seen."""

    accepted: int
    """Tasks accepted."""
    cancelled: int
    """Tasks that were cancelled."""
    completed: int
    """Tasks that ended well."""
    failed: int
    """Tasks that failed or took too long."""
    lost: int
    """Tasks whose lease lapsed and that did not run again."""
    retried: int
    """Attempts that were followed by another."""
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
    """When."""


@dataclass(frozen=True)
class LaneNumbers:
    """How a lane stands."""

    counters: LaneCounters
    """What the lanes of its block have seen together."""
    draining: bool
    """Nothing new is accepted."""
    label: str
    """The block or pattern that speaks for it, under which it is counted."""
    lane: str
    """Its name."""
    max_queued: int
    """How many may wait."""
    paused: bool
    """Nothing starts."""
    retrying: int
    """How many wait for their next attempt's time."""
    run: Percentiles
    """Of each attempt."""
    running: int
    """How many of its slots are taken."""
    settings: dict[str, Any]
    """Everything that is set, by name."""
    wait: Percentiles
    """From joining the line to each start."""
    waiting: int
    """How many tasks wait."""
    alert: Union[str, None] = None
    """The worst alert about its line that is not over: `warning` or `critical`."""
    max_concurrency: Union[int, None] = None
    """How many slots it has."""


@dataclass(frozen=True)
class LeaseView:
    """What a worker has of one task."""

    kind: str
    """What sort of work it is."""
    last_heartbeat: At
    """When the worker last said that it is at it."""
    lease_until: At
    """When the lease lapses."""
    started_at: At
    """Since when the worker has it."""
    task: str
    """Which task."""


class LettersSelector(TypedDict, total=False):
    """Which dead letters are meant: those that fit everything that is given; at least one thing must be."""

    dry_run: bool
    """Only counts them: nothing becomes of them."""
    kind: Union[str, None]
    """Of this kind."""
    lane: Union[str, None]
    """Of tasks with this home lane."""


@dataclass(frozen=True)
class Me:
    """Who asks, as the server sees it."""

    scopes: list[Scope]
    """What the caller may do, everything that a wider scope brings included."""
    subject: str
    """Who uses the token; `local` where there are no tokens."""


@dataclass(frozen=True)
class MessageAnswer:
    """What became of a message when it was sent."""

    id: str
    """The message; of a `duplicate`, the one that was taken."""
    outcome: str
    """`started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`."""
    typing: bool
    """Whether the sender should see typing."""
    position: Union[int, None] = None
    """Its place in the session's line, counted from one."""
    reply: Union[str, None] = None
    """What a directive answers; of a `duplicate`, what was answered then."""
    task_id: Union[str, None] = None
    """The turn that it started, was put into, or interrupted."""


@dataclass(frozen=True)
class MessageEvent:
    """A message to a session was accepted or has come to its end."""

    message_id: str
    """The message."""
    outcome: str
    """What became of it."""
    session: str
    """The key of the session."""
    at: Union[At, None] = None
    """When."""
    detail: Union[str, None] = None
    """More about its end."""
    task_id: Union[str, None] = None
    """The turn that answered it."""
    typing: Union[bool, None] = None
    """An answer is on its way."""


class _MessageRequest(TypedDict):
    agent: str
    """Who answers."""
    text: str
    """What is said."""


class MessageRequest(_MessageRequest, total=False):
    """A message to a session."""

    account: Union[str, None]
    """By which account."""
    cap: Union[int, None]
    """How many messages may wait."""
    channel: Union[str, None]
    """Where it came from."""
    debounce_ms: Union[int, None]
    """How long it must have been quiet."""
    drop: Union[str, None]
    """Which go when there are more."""
    heartbeat: Union[bool, None]
    """It is worth nothing later: dropped when the session is busy."""
    max_wait_ms: Union[int, None]
    """After how long the turn starts although it is not quiet."""
    message_id: Union[str, None]
    """The channel's own id of the message: the same one twice is one message."""
    mode: Union[str, None]
    """What happens if the session is busy."""
    otherwise: Union[str, None]
    """What becomes of it if that turn is over or takes no steering: `followup` (the default), `reject` or `drop`."""
    permissions: Union[list[str], None]
    """What the sender may do."""
    sender: Union[str, None]
    """Who said it."""
    sender_name: Union[str, None]
    """As people know them."""
    thread: Union[str, None]
    """In which thread."""
    to: Union[str, None]
    """Where the answer goes."""
    turn_id: Union[str, None]
    """The turn that it means to steer."""


@dataclass(frozen=True)
class MessageView:
    """A message that waits."""

    agent: str
    """Who answers."""
    at: At
    """When it was accepted."""
    id: str
    """Its id."""
    text: str
    """What is said."""
    channel: Union[str, None] = None
    """Where it came from."""
    error: Union[str, None] = None
    """Why it was set aside."""
    sender_name: Union[str, None] = None
    """The name to show."""


class MoveRequest(TypedDict, total=False):
    """Another place in line for a message."""

    before: Union[str, None]
    """Before which message; `null`: to the end."""


class _NewSchedule(TypedDict):
    agent: str
    """Who is asked."""
    cron: str
    """When: five or six fields of cron, or `@daily` and the like."""
    message: str
    """What is asked."""
    name: str
    """Its name."""


class NewSchedule(_NewSchedule, total=False):
    """A schedule to make."""

    catch_up: Union[str, None]
    """What happens about firings that were missed while the server was down: `skip` (the default) or `one`."""
    enabled: Union[bool, None]
    """Whether it fires. Default true."""
    session: Union[str, None]
    """In which conversation. Default: the agent's own."""
    timezone: Union[str, None]
    """In which time zone. Default `UTC`."""


class _NewToken(TypedDict):
    scopes: list[Scope]
    """What it may do."""
    subject: str
    """Who uses it: stands in the audit log and in the tasks that it asks for."""


class NewToken(_NewToken, total=False):
    """A token to make."""

    speaks_for_others: bool
    """Whether it may say for whom it asks."""


@dataclass(frozen=True)
class NoticeEvent:
    """A task has waited for a while."""

    ahead: int
    """How many tasks are ahead of it."""
    waited_ms: int
    """How long."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class Percentiles:
    """Durations, in milliseconds."""

    count: int
    """How many were measured."""
    p50_ms: Union[int, None] = None
    """Half are not longer."""
    p90_ms: Union[int, None] = None
    """90 % are not longer."""
    p99_ms: Union[int, None] = None
    """99 % are not longer."""


@dataclass(frozen=True)
class PlaceEvent:
    """Where a task stands in line."""

    at: Union[At, None] = None
    """When."""
    eta_ms: Union[int, None] = None
    """When it will probably start."""
    position: Union[int, None] = None
    """Its place in the line of its home lane, counted from one."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class PressureEvent:
    """A lane is under pressure."""

    lane: str
    """The lane."""
    waiting: int
    """How many tasks wait in it."""
    at: Union[At, None] = None
    """When."""


@dataclass(frozen=True)
class Problem:
    """Why something was refused or did not succeed, and what to do next. `reason`, `taskId`, `error`, `agent` and `message` say the same things under names that clients of other servers know."""

    code: Code
    """What sort of refusal it is."""
    detail: str
    """One sentence about this refusal."""
    error: str
    """The title, in the words of the refusal."""
    message: str
    """As `detail`."""
    phase: str
    """`setup` before it ran, `run` after."""
    reason: str
    """The code, or why a task was cancelled."""
    retryable: bool
    """Whether asking again, unchanged, could help."""
    status: int
    """The status of the HTTP answer."""
    title: str
    """A few words, the same for every refusal with this code."""
    type: str
    """`urn:laneway:problem:<slug>`."""
    agent: Union[str, None] = None
    """The agent that was asked."""
    current_task_id: Union[str, None] = None
    """The task that has held a slot of the lane for longest."""
    lane: Union[str, None] = None
    """The lane that refused."""
    max_concurrency: Union[int, None] = None
    """How many it has."""
    max_queued: Union[int, None] = None
    """How many may."""
    queue_length: Union[int, None] = None
    """How many tasks wait in it."""
    retry_after: Union[int, None] = None
    """When to come back, in whole seconds, rounded up."""
    retry_after_ms: Union[int, None] = None
    """When to come back, in milliseconds."""
    running: Union[int, None] = None
    """How many of its slots are taken."""
    taskId: Union[str, None] = None
    """As `task_id`."""
    task_id: Union[str, None] = None
    """The task that this is about."""


@dataclass(frozen=True)
class ProgressEvent:
    """The progress that an attempt reports, or what a request to cancel found."""

    at: Union[At, None] = None
    """When."""
    cancel: Union[str, None] = None
    """What a request to cancel found, on a WebSocket."""
    progress: Any = None
    """The report."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class QueueView:
    """How the line of an agent stands."""

    agent_name: str
    """The agent."""
    is_busy: bool
    """Whether a turn runs."""
    queue_length: int
    """How many wait."""
    queued_executions: list[Execution]
    """Those that wait, in order."""
    current_execution: Union[Execution, None] = None
    """The turn that has run for longest."""
    running_executions: Union[list[Execution], None] = None
    """All that run, the longest first."""


@dataclass(frozen=True)
class Readiness:
    """Whether the server takes work."""

    status: str
    """`ready`, `draining`, `full` or `store_unavailable`."""


@dataclass(frozen=True)
class Receipt:
    """What became of a message."""

    ended: bool
    """Whether that is its end, which never changes. One that was `steered` has not ended before its turn has."""
    id: str
    """The message."""
    status: str
    """`waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`."""
    detail: Union[str, None] = None
    """By which rule, for which reason, with which error."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""
    task_id: Union[str, None] = None
    """In which turn."""


@dataclass(frozen=True)
class RedriveAnswer:
    """What became of dead letters."""

    count: int
    """How many."""
    tasks: list[str]
    """The new tasks, where some were made."""


@dataclass(frozen=True)
class ReleasedQueue:
    """What releasing an agent by force did."""

    agent: str
    """The agent."""
    released: list[str]
    """The tasks that lost their slots."""
    status: str
    """`released`."""
    warning: str
    """That the old runs may still be going."""
    was_running: bool
    """Whether something ran."""


class RetryRequest(TypedDict, total=False):
    """What follows a failure."""

    fixed_delay_ms: Union[int, None]
    """Fixed: before each retry. Default 1000."""
    initial_delay_ms: Union[int, None]
    """Exponential: before the first retry; it doubles each time. Default 100."""
    jitter: Union[bool, None]
    """Spreads each delay over its upper half. Default false."""
    max_delay_ms: Union[int, None]
    """No delay is longer. Default 30 000."""
    max_retries: Union[int, None]
    """How many attempts may follow the first. Default 3."""
    strategy: Union[str, None]
    """`none`, `fixed` or `exponential` (the default)."""


@dataclass(frozen=True)
class RetryingEvent:
    """An attempt is over and another follows."""

    delay_ms: int
    """How long the task rests before it waits again."""
    error: str
    """What went wrong."""
    at: Union[At, None] = None
    """When."""
    attempt: Union[int, None] = None
    """The attempt that is over."""
    task_id: Union[str, None] = None
    """The task."""


class ScheduleChange(TypedDict, total=False):
    """A change of a schedule; what is left out stays."""

    agent: Union[str, None]
    """Who is asked."""
    catch_up: Union[str, None]
    """`skip` or `one`."""
    cron: Union[str, None]
    """When."""
    enabled: Union[bool, None]
    """Whether it fires."""
    message: Union[str, None]
    """What is asked."""
    session: Union[str, None]
    """In which conversation."""
    timezone: Union[str, None]
    """In which time zone."""


@dataclass(frozen=True)
class ScheduleFiredEvent:
    """A schedule fired."""

    due_at: str
    """For which moment."""
    schedule: str
    """The name of the schedule."""
    status: str
    """`running`, or `failed` if the task was refused."""
    at: Union[At, None] = None
    """When."""
    error: Union[str, None] = None
    """Why it was refused."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ScheduleRun:
    """One firing of a schedule."""

    due_at: str
    """For which moment."""
    fired_at: str
    """When it fired."""
    status: str
    """`running`, how the task ended, or `failed` when it was refused."""
    trigger: str
    """By the clock, to make up for missed ones, or because somebody asked: `clock`, `catch_up`, `manual`."""
    error: Union[str, None] = None
    """Why it was refused or did not succeed."""
    task_id: Union[str, None] = None
    """The task."""


@dataclass(frozen=True)
class ScheduleView:
    """A schedule."""

    agent: str
    """Who is asked."""
    catch_up: str
    """`skip` or `one`."""
    cron: str
    """When."""
    enabled: bool
    """Whether it fires."""
    message: str
    """What is asked."""
    name: str
    """Its name."""
    next_runs: list[At]
    """The next firings."""
    origin: str
    """Whether it comes from the configuration file or from the API."""
    timezone: str
    """In which time zone."""
    last_run: Union[ScheduleRun, None] = None
    """The last firing."""
    session: Union[str, None] = None
    """In which conversation."""
    words: Union[str, None] = None
    """When, in words."""


class SessionChange(TypedDict, total=False):
    """How messages of one session are queued; what is left out stays."""

    cap: Union[int, None]
    """How many messages may wait."""
    debounce_ms: Union[int, None]
    """How long it must have been quiet."""
    drop: Union[str, None]
    """Which go when there are more."""
    max_wait_ms: Union[int, None]
    """After how long a turn starts although it is not quiet."""
    mode: Union[str, None]
    """What happens to messages while it is busy."""


@dataclass(frozen=True)
class SessionStats:
    """How the tool lanes of a session stand."""

    external_pending: int
    """How many of those that wait, wait for a worker."""
    lanes: dict[str, ToolLaneStats]
    """By tool lane."""
    total_active: int
    """How many run."""
    total_pending: int
    """How many calls wait."""
    settings: Union[dict[str, Any], None] = None
    """How its messages are queued, each value with where it comes from; also of a session of which nothing is remembered."""


@dataclass(frozen=True)
class SessionSummary:
    """A session."""

    dropped: int
    """How many messages were dropped that the next turn will tell of."""
    is_busy: bool
    """Whether a turn was accepted and has not ended."""
    key: str
    """The conversation's key."""
    messages: list[MessageView]
    """The messages that wait, in order."""
    settings: dict[str, Any]
    """How messages are queued, each value with where it came from."""
    typing: bool
    """Whether the people in it should see typing."""
    current_turn: Any = None
    """The turn that is under way: `task_id`, the ids of its `messages`, of those `pending` for it and those `steered` into it, whether it `takes_steering`, and what was `said` in all of these."""
    retry_at: Union[At, None] = None
    """Nothing is tried again before."""
    set_aside: Union[list[MessageView], None] = None
    """The messages that were set aside, the oldest first: they can be sent again or thrown away."""


@dataclass(frozen=True)
class SlotAnswer:
    """A slot that is the caller's until its lease lapses."""

    fence: int
    """To be shown with them."""
    id: str
    """The task that holds it: for its heartbeat and its completion."""
    lease_until: At
    """When it lapses without a sign of life."""


class _SlotRequest(TypedDict):
    lanes: list[str]
    """The lanes; the first is the home lane."""


class SlotRequest(_SlotRequest, total=False):
    """A slot of each of some lanes, for work of the caller's own."""

    lease_ms: Union[int, None]
    """How long without a sign of life. Default: as the home lane says."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or the name of a source."""
    session: Union[str, None]
    """The conversation."""
    wait_ms: Union[int, None]
    """How long to wait; 0: now or never. Default: as the home lane says."""


@dataclass(frozen=True)
class StartedEvent:
    """An attempt starts."""

    attempt: int
    """Which attempt, counted from one."""
    fence: int
    """Its fence."""
    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""
    worker: Union[str, None] = None
    """The worker that has it."""


@dataclass(frozen=True)
class StatusView:
    """How everything stands."""

    line: str
    """`Agent: 2/3`, or `Agent: 3/3 (2 queued)`."""
    running: int
    """How many tasks run."""
    waiting: int
    """How many wait."""
    dead_letters: Union[int, None] = None
    """How many tasks could not be done and are kept."""
    max_concurrent: Union[int, None] = None
    """How many may run at once; `null`: any number."""


class SteerRequest(TypedDict):
    """Something to say to a running turn."""

    text: str
    """What."""


@dataclass(frozen=True)
class SteeringView:
    """Something that was said to a run."""

    id: str
    """The message, to be named when the run has taken it."""
    text: str
    """What was said."""
    sender_name: Union[str, None] = None
    """Who said it, as people know them."""


class TaskChange(TypedDict):
    """A change of a waiting task."""

    priority: PriorityRequest
    """0 to 9, or the name of a source."""


@dataclass(frozen=True)
class TaskEvent:
    """An event of a task."""

    at: Union[At, None] = None
    """When."""
    task_id: Union[str, None] = None
    """The task."""


class _TaskRequest(TypedDict):
    kind: str
    """What sort of work it is: decides who runs it."""


class TaskRequest(_TaskRequest, total=False):
    """A task to ask for."""

    deadline_ms: Union[int, None]
    """When it is too late to start, counted from acceptance."""
    fair_key: Union[str, None]
    """With whom it shares turns."""
    group: Union[str, None]
    """A label that tasks which belong together share."""
    lanes: list[str]
    """The lanes it needs; the first is its home lane. None: `main`, or `external` for a kind that nothing here runs."""
    parent: Union[str, None]
    """The running task that asks."""
    payload: Any
    """What whoever runs it gets."""
    priority: Union[PriorityRequest, None]
    """0 to 9, or the name of a source."""
    retry: Union[RetryRequest, None]
    """What follows a failure."""
    run_after_ms: Union[int, None]
    """How long it must wait before it may start."""
    source: Union[str, None]
    """Who asked: `user`, `schedule`, `agent`, `background`."""
    timeout_ms: Union[int, None]
    """How long an attempt may take."""
    wait_timeout_ms: Union[int, None]
    """How long it may wait; 0: it starts now or is refused."""


@dataclass(frozen=True)
class TaskView:
    """A task, live or over."""

    attempts: int
    """How many attempts have started."""
    id: str
    """Its id."""
    kind: str
    """What sort of work it is."""
    lanes: list[str]
    """The lanes that it named, the home lane first."""
    priority: int
    """Its own priority."""
    source: str
    """Who asked."""
    status: str
    """`queued`, `running`, `retrying`, or how it ended."""
    submitted_at: At
    """When it was accepted."""
    attempt_list: Union[list[AttemptView], None] = None
    """The newest of them, the last one included, in order. Lists leave it out."""
    cancel_requested: Union[bool, None] = None
    """Whether it was told to stop."""
    deadline_at: Union[At, None] = None
    """When it is too late to start."""
    effective_priority: Union[int, None] = None
    """With what waiting and its deadline have added."""
    ended_at: Union[At, None] = None
    """When it ended."""
    error: Union[str, None] = None
    """Why it produced nothing."""
    eta_ms: Union[int, None] = None
    """When it will probably start."""
    group: Union[str, None] = None
    """Its label."""
    lane_position: Union[int, None] = None
    """Its place among all that wait in the lane that was asked for, counted from one."""
    lease_until: Union[At, None] = None
    """When its lease lapses."""
    owner: Union[str, None] = None
    """Whose token asked."""
    parent: Union[str, None] = None
    """The task that asked for it."""
    payload: Any = None
    """What whoever runs it gets: while it is live, and as long as it is remembered once an attempt has ended it, if it is no longer than 16 KiB."""
    position: Union[int, None] = None
    """Its place in line, counted from one."""
    reason: Union[str, None] = None
    """Why it was cancelled."""
    result: Any = None
    """What it produced."""
    session: Union[str, None] = None
    """The conversation that it is a turn of."""
    started_at: Union[At, None] = None
    """When its last attempt started."""
    timeout_ms: Union[int, None] = None
    """How long an attempt may take."""
    traceparent: Union[str, None] = None
    """The trace that it belongs to."""
    wait_until: Union[At, None] = None
    """When it has waited too long."""
    worker: Union[str, None] = None
    """Which worker has it, or had it last."""


@dataclass(frozen=True)
class TokenView:
    """A token, without its secret."""

    created_at: At
    """When it was made."""
    id: str
    """The part before the dot."""
    scopes: list[Scope]
    """What it may do."""
    speaks_for_others: bool
    """Whether it may say for whom it asks."""
    subject: str
    """Who uses it."""


@dataclass(frozen=True)
class ToolLaneStats:
    """How one tool lane of a session stands; the counts are those of all sessions under the same settings."""

    active: int
    """How many run."""
    completed: int
    """How many ended well."""
    failed: int
    """How many did not."""
    handler_mode: str
    """`internal`, `external` or `hybrid`."""
    pending: int
    """How many calls wait."""
    max_concurrency: Union[int, None] = None
    """How many may run at once."""


@dataclass(frozen=True)
class TurnEvent:
    """The turn of a session takes up messages."""

    messages: list[str]
    """The ids of the messages."""
    session: str
    """The key of the session."""
    at: Union[At, None] = None
    """When."""


class _UserRef(TypedDict):
    id: str
    """Who."""


class UserRef(_UserRef, total=False):
    """Somebody for whom a token speaks."""

    email: Union[str, None]
    """Their address."""


@dataclass(frozen=True)
class WorkerView:
    """A worker that has work."""

    last_heartbeat: At
    """When it was last heard of."""
    lease_until: At
    """When the first of its leases lapses."""
    leases: list[LeaseView]
    """Its leases, one for each task."""
    tasks: list[str]
    """What it has."""
    worker: str
    """Who."""
