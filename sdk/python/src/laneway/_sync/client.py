"""The client: the way in to everything."""

# Written by scripts/unasync.py from _async/client.py; not edited by hand.

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generator, Mapping, Optional, Sequence

from .._names import session_lane
from .._options import SlotOptions, TaskOptions
from ..types import (
    AcceptedTask,
    AgentView,
    BatchAnswer,
    BatchCall,
    CancelAnswer,
    CancelManyAnswer,
    DeadLetterView,
    ExplainView,
    ExternalTask,
    GroupView,
    LaneNumbers,
    PriorityRequest,
    RedriveAnswer,
    SessionStats,
    SessionSummary,
    StatusView,
    TaskView,
    ToolLaneStats,
    WorkerView,
)
from ..errors import NotFound
from ..events import Event
from ..external import PendingTask, QueueMetrics
from ..retry import Retry
from .agents import Agent
from .external import External
from .lanes import Lane
from .leases import Leases
from .sessions import Session
from .slots import Slot
from .transport import Transport, given, meaning, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

TOOL_LANES = ("control", "query", "execute", "generate")


class Client:
    """A Laneway server. Close it when it is no longer needed, or use it in a `with` block."""

    def __init__(
        self, url: str, *, token: Optional[str] = None, retry: Retry = Retry(), timeout: float = 30.0
    ) -> None:
        """`timeout` is in seconds and counts for requests that do not wait for work."""
        self.transport = Transport(url, token, retry, timeout)
        self.url = self.transport.url
        self.leases = Leases(self.transport)
        self._external = External(self.transport, self.leases)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of all connections. What was claimed and not completed is offered again when its lease is over."""
        self.leases.close()
        self.transport.close()

    def request(
        self, method: str, path: str, *, body: Any = None, query: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Any route that has no method of its own here, in JSON."""
        response = self.transport.send(method, path, body=body, query=query)
        return meaning(object, response) if response.content else None

    # Agents, sessions, lanes

    def agent(self, name: str) -> Agent:
        """The agent of this name."""
        return Agent(self.transport, name)

    def session(self, key: str) -> Session:
        """The conversation of this key."""
        return Session(self.transport, key)

    def lane(self, name: str) -> Lane:
        """The lane of this name."""
        return Lane(self.transport, name)

    def agents(self) -> Generator[AgentView, None, None]:
        """Every agent."""
        return self.transport.pages(AgentView, path_of("agents"))

    def sessions(self) -> Generator[SessionSummary, None, None]:
        """Every session in which something is."""
        return self.transport.pages(SessionSummary, path_of("sessions"))

    def lanes(self) -> Generator[LaneNumbers, None, None]:
        """Every lane in which something is, and those that are configured."""
        return self.transport.pages(LaneNumbers, path_of("lanes"))

    def workers(self) -> Generator[WorkerView, None, None]:
        """Every worker that has work."""
        return self.transport.pages(WorkerView, path_of("workers"))

    def status(self) -> StatusView:
        """How everything stands."""
        return self.transport.read(StatusView, "GET", path_of("status"))

    def slot(self, lanes: Sequence[str], **how: Unpack[SlotOptions]) -> Slot:
        """A slot of each of these lanes, to guard code of the caller's own."""
        return Slot(self.transport, self.leases, {"lanes": list(lanes), **how})

    # Tasks

    def submit(
        self,
        kind: str,
        payload: Any = None,
        *,
        lanes: Sequence[str] = (),
        idempotency_key: Optional[str] = None,
        **how: Unpack[TaskOptions],
    ) -> AcceptedTask:
        """A task, which is not waited for. With an idempotency key asking twice is asking once."""
        body = {"kind": kind, "payload": payload, "lanes": list(lanes), **how}
        headers = given(**{"idempotency-key": idempotency_key})
        return self.transport.read(AcceptedTask, "POST", path_of("tasks"), body=body, headers=headers)

    def batch(
        self, session: str, calls: Sequence[BatchCall], *, group: Optional[str] = None
    ) -> BatchAnswer:
        """The tool calls of one model turn: reads side by side, all else in order; results in the order of the calls."""
        body = given(session=session, calls=list(calls), group=group)
        return self.transport.read(BatchAnswer, "POST", path_of("tasks", "batch"), body=body, waits=True)

    def task(self, task: str) -> TaskView:
        """A task, live or over."""
        return self.transport.read(TaskView, "GET", path_of("tasks", task))

    def tasks(
        self,
        *,
        status: Optional[str] = None,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
        group: Optional[str] = None,
    ) -> Generator[TaskView, None, None]:
        """Every task that fits."""
        query = given(status=status, lane=lane, session=session, kind=kind, group=group)
        return self.transport.pages(TaskView, path_of("tasks"), query)

    def wait(self, task: str) -> TaskView:
        """Waits for the end of a task, also across restarts of the server, and returns it."""
        while True:
            try:
                for _ in self.task_events(task):
                    pass
            except NotFound:
                # A task that just ended may no longer have a stream; the task itself has the last word.
                pass
            view = self.task(task)
            if view.ended_at is not None:
                return view

    def task_events(self, task: str, *, after: Optional[str] = None) -> Generator[Event, None, None]:
        """What happens to a task, until `done`; goes on where it was when the connection breaks."""
        return self.transport.follow(path_of("tasks", task, "events"), after=after)

    def events(
        self,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        task: Optional[str] = None,
        after: Optional[str] = None,
    ) -> Generator[Event, None, None]:
        """Everything that happens, without end; goes on where it was when the connection breaks."""
        query = given(lane=lane, session=session, task=task)
        return self.transport.follow(path_of("events"), query=query, after=after)

    def cancel(self, task: str) -> CancelAnswer:
        """Cancels a task; the answer says what was found."""
        return self.transport.read(CancelAnswer, "DELETE", path_of("tasks", task))

    def cancel_waiting(
        self,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
        group: Optional[str] = None,
    ) -> int:
        """Cancels the waiting tasks that fit everything that is given; returns how many."""
        body = given(lane=lane, session=session, kind=kind, group=group)
        answer = self.transport.read(CancelManyAnswer, "POST", path_of("tasks", "cancel"), body=body)
        return answer.cancelled

    def explain(self, task: str) -> ExplainView:
        """Why a task waits."""
        return self.transport.read(ExplainView, "GET", path_of("tasks", task, "explain"))

    def prioritise(self, task: str, priority: PriorityRequest) -> TaskView:
        """Changes the priority of a waiting task."""
        return self.transport.read(TaskView, "PATCH", path_of("tasks", task), body={"priority": priority})

    def group(self, group: str) -> GroupView:
        """How the tasks with one label stand."""
        return self.transport.read(GroupView, "GET", path_of("groups", group))

    # Tasks that are done outside

    def set_lane_handler(
        self,
        lane: str,
        mode: str = "external",
        *,
        session: Optional[str] = None,
        timeout_ms: Optional[int] = None,
    ) -> LaneNumbers:
        """Who runs the tasks of a lane from now on: `internal`, `external` or `hybrid`.

        One of the four tool lanes (`control`, `query`, `execute`, `generate`) is meant in this session, or else in all of them.
        """
        name = lane
        if session is not None or lane in TOOL_LANES:
            name = f"{session_lane(session) if session is not None else 'session:*'}/{lane}"
        body = given(handler=mode, timeout_ms=timeout_ms)
        return self.transport.read(LaneNumbers, "PATCH", path_of("lanes", name), body=body)

    def pending_external_tasks(
        self, *, session: Optional[str] = None, lane: Optional[str] = None
    ) -> list[PendingTask]:
        """The tasks that wait for a worker, in order; first those that this client has claimed."""
        return self._external.pending(session, lane)

    def complete_external_task(
        self,
        task: str,
        success: bool = True,
        result: Any = None,
        *,
        error: Optional[str] = None,
        retryable: Optional[bool] = None,
    ) -> TaskView:
        """Says how a task went that was done outside. Claims it first, and no other, even if other tasks are ahead of it.

        When the server could not be reached to hear of it, the task stays this client's, and saying it again does.
        """
        return self._external.complete(task, success, result, error, retryable)

    def queue_stats(self, session: Optional[str] = None) -> SessionStats:
        """What waits and runs, lane by lane: of one session's tool lanes, or of all lanes."""
        if session is not None:
            return self.session(session).stats()
        status = self.status()
        pending = [task for task in self.transport.pages(ExternalTask, path_of("external-tasks"))]
        lanes = {lane.lane: _stats(lane) for lane in self.lanes()}
        return SessionStats(
            total_pending=status.waiting, total_active=status.running, external_pending=len(pending), lanes=lanes
        )

    def queue_metrics(self) -> QueueMetrics:
        """What all lanes have seen: counters, and percentiles of waits and runs."""
        status = self.status()
        lanes = {lane.lane: lane for lane in self.lanes()}
        return QueueMetrics(status.running, status.waiting, status.max_concurrent, lanes)

    def dead_letters(self) -> list[DeadLetterView]:
        """The tasks that could not be done, the oldest first."""
        return [letter for letter in self.transport.pages(DeadLetterView, path_of("dead-letters"))]

    def redrive(
        self, letter: Optional[str] = None, *, lane: Optional[str] = None, kind: Optional[str] = None
    ) -> RedriveAnswer:
        """Runs a dead letter again as a new task, or all of a lane or kind."""
        path = path_of("dead-letters", "redrive") if letter is None else path_of("dead-letters", letter, "redrive")
        body = given(lane=lane, kind=kind) if letter is None else None
        return self.transport.read(RedriveAnswer, "POST", path, body=body)

    def discard(
        self, letter: Optional[str] = None, *, lane: Optional[str] = None, kind: Optional[str] = None
    ) -> RedriveAnswer:
        """Throws a dead letter away, or all of a lane or kind."""
        path = path_of("dead-letters") if letter is None else path_of("dead-letters", letter)
        return self.transport.read(RedriveAnswer, "DELETE", path, query=given(lane=lane, kind=kind))


def _stats(lane: LaneNumbers) -> ToolLaneStats:
    return ToolLaneStats(
        pending=lane.waiting,
        active=lane.running,
        completed=lane.counters.completed,
        failed=lane.counters.failed,
        max_concurrency=lane.max_concurrency,
        handler_mode=str(lane.settings.get("handler", "internal")),
    )
