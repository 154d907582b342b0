"""The client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncGenerator, Mapping, Optional, Sequence, Union

from .._names import session_lane
from .._options import SlotOptions, TaskOptions, split
from .._running import as_child
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
    ScheduleView,
    SessionStats,
    SessionSummary,
    StatusView,
    TaskView,
    ToolLaneStats,
    WorkerView,
)
from ..errors import NotFound
from ..external import PendingTask, QueueMetrics
from ..retry import Retry
from .agents import AsyncAgent
from .external import AsyncExternal
from .lanes import AsyncLane
from .leases import AsyncLeases
from .schedules import AsyncSchedule
from .sessions import AsyncSession
from .slots import AsyncSlot
from .streams import AsyncEventStream
from .transport import AsyncTransport, given, meaning, path_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

TOOL_LANES = ("control", "query", "execute", "generate")


class AsyncClient:
    """A client of a Laneway server. Close it when you no longer need it, or use it in a `with` block."""

    def __init__(
        self,
        url: Union[str, Sequence[str]],
        *,
        token: Optional[str] = None,
        retry: Retry = Retry(),
        timeout: float = 30.0,
    ) -> None:
        """`url` is the address of a server, or the addresses of several replicas. If one is away, the next takes its place.

        `timeout` is in seconds. It applies to requests that do not wait for a task.
        """
        self.transport = AsyncTransport(url, token, retry, timeout)
        self.leases = AsyncLeases(self.transport)
        self._external = AsyncExternal(self.transport, self.leases)

    @property
    def url(self) -> str:
        """The address in use."""
        return self.transport.url

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections. The server offers claimed tasks again when their leases lapse."""
        await self.leases.close()
        await self.transport.close()

    async def request(
        self, method: str, path: str, *, body: Any = None, query: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Calls any route, in JSON. For routes without their own method."""
        response = await self.transport.send(method, path, body=body, query=query)
        return meaning(object, response) if response.content else None

    # Agents, sessions, lanes, schedules

    def agent(self, name: str) -> AsyncAgent:
        """The agent with a name."""
        return AsyncAgent(self.transport, name)

    def session(self, key: str) -> AsyncSession:
        """The session with a key."""
        return AsyncSession(self.transport, key)

    def lane(self, name: str) -> AsyncLane:
        """The lane with a name."""
        return AsyncLane(self.transport, name)

    def schedule(self, name: str) -> AsyncSchedule:
        """The schedule with a name."""
        return AsyncSchedule(self.transport, name)

    def agents(self) -> AsyncGenerator[AgentView, None]:
        """All agents."""
        return self.transport.pages(AgentView, path_of("agents"))

    def sessions(self) -> AsyncGenerator[SessionSummary, None]:
        """All sessions with a turn, messages or settings."""
        return self.transport.pages(SessionSummary, path_of("sessions"))

    def lanes(self) -> AsyncGenerator[LaneNumbers, None]:
        """All lanes that are in use or configured."""
        return self.transport.pages(LaneNumbers, path_of("lanes"))

    def schedules(self) -> AsyncGenerator[ScheduleView, None]:
        """All schedules, by name."""
        return self.transport.pages(ScheduleView, path_of("schedules"))

    def workers(self) -> AsyncGenerator[WorkerView, None]:
        """All workers with claimed tasks."""
        return self.transport.pages(WorkerView, path_of("workers"))

    async def status(self, *, lane: Optional[str] = None) -> StatusView:
        """The numbers of running and waiting tasks of a lane. Default: of all tasks."""
        return await self.transport.read(StatusView, "GET", path_of("status"), query=given(lane=lane))

    def slot(self, lanes: Sequence[str], **how: Unpack[SlotOptions]) -> AsyncSlot:
        """A slot in each of the lanes, which guards the caller's own code. In a worker's handler it is a child of the task."""
        body, headers = split(how)
        headers = {**as_child(self.transport.urls), **headers}
        return AsyncSlot(self.transport, self.leases, {"lanes": list(lanes), **body}, headers)

    # Tasks

    async def submit(
        self,
        kind: str,
        payload: Any = None,
        *,
        lanes: Sequence[str] = (),
        idempotency_key: Optional[str] = None,
        **how: Unpack[TaskOptions],
    ) -> AcceptedTask:
        """Submits a task without waiting for its end. A repeated idempotency key submits nothing.

        In a worker's handler the new task is a detached child of the handler's task. Pass `parent` to wait for it: then it
        borrows the slots of that task, and ends with it.
        """
        body = {"kind": kind, "payload": payload, "lanes": list(lanes), **how}
        child = as_child(self.transport.urls)
        headers = given(**{"idempotency-key": idempotency_key, **child, "x-detach": "true" if child else None})
        return await self.transport.read(AcceptedTask, "POST", path_of("tasks"), body=body, headers=headers)

    async def batch(
        self, session: str, calls: Sequence[BatchCall], *, group: Optional[str] = None, parent: Optional[str] = None
    ) -> BatchAnswer:
        """Runs the tool calls of one model turn: reads together, others one after another. Results are in the order of the calls.

        The calls are children of `parent`. Default: the task of the worker's handler that makes the call.
        """
        body = given(session=session, calls=list(calls), group=group)
        headers = {**as_child(self.transport.urls), **given(**{"x-laneway-parent": parent})}
        path = path_of("tasks", "batch")
        return await self.transport.read(BatchAnswer, "POST", path, body=body, headers=headers, waits=True)

    async def task(self, task: str) -> TaskView:
        """A task, live or ended."""
        return await self.transport.read(TaskView, "GET", path_of("tasks", task))

    def tasks(
        self,
        *,
        status: Optional[str] = None,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
        group: Optional[str] = None,
    ) -> AsyncGenerator[TaskView, None]:
        """All tasks that match."""
        query = given(status=status, lane=lane, session=session, kind=kind, group=group)
        return self.transport.pages(TaskView, path_of("tasks"), query)

    async def wait(self, task: str) -> TaskView:
        """Waits for the end of a task, also across restarts of the server. Returns the task."""
        while True:
            try:
                async for _ in self.task_events(task):
                    pass
            except NotFound:
                # A task that has just ended may no longer have a stream, so read the task itself.
                pass
            view = await self.task(task)
            if view.ended_at is not None:
                return view

    def task_events(self, task: str, *, after: Optional[str] = None) -> AsyncEventStream:
        """The events of a task, until `done`. Continues after the last event when the connection breaks."""
        return self.transport.follow(path_of("tasks", task, "events"), after=after)

    def events(
        self,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        task: Optional[str] = None,
        after: Optional[str] = None,
    ) -> AsyncEventStream:
        """All events, without end. Continues after the last event when the connection breaks.

        Nothing that happens after it is open is missed: of a `Client` it is open at once, of an `AsyncClient` after `await`.
        """
        query = given(lane=lane, session=session, task=task)
        return self.transport.follow(path_of("events"), query=query, after=after)

    async def cancel(self, task: str) -> CancelAnswer:
        """Cancels a task. The answer has the status in which the task was."""
        return await self.transport.read(CancelAnswer, "DELETE", path_of("tasks", task))

    async def cancel_waiting(
        self,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
        group: Optional[str] = None,
    ) -> int:
        """Cancels the waiting tasks that match all given filters. Returns their number."""
        body = given(lane=lane, session=session, kind=kind, group=group)
        answer = await self.transport.read(CancelManyAnswer, "POST", path_of("tasks", "cancel"), body=body)
        return answer.cancelled

    async def explain(self, task: str) -> ExplainView:
        """Explains why a task waits."""
        return await self.transport.read(ExplainView, "GET", path_of("tasks", task, "explain"))

    async def prioritise(self, task: str, priority: PriorityRequest) -> TaskView:
        """Changes the priority of a waiting task."""
        return await self.transport.read(TaskView, "PATCH", path_of("tasks", task), body={"priority": priority})

    async def group(self, group: str) -> GroupView:
        """The state of the tasks of a group."""
        return await self.transport.read(GroupView, "GET", path_of("groups", group))

    # Tasks of external lanes

    async def set_lane_handler(
        self,
        lane: str,
        mode: str = "external",
        *,
        session: Optional[str] = None,
        timeout_ms: Optional[int] = None,
    ) -> LaneNumbers:
        """Sets what runs the tasks of a lane from now on: `internal`, `external` or `hybrid`.

        A tool lane (`control`, `query`, `execute`, `generate`) means that of `session`, or that of all sessions. The other
        settings of the lane stay. A task of an external tool lane ends when it waits or runs longer than `timeout_ms`
        (60 s by default).
        """
        name = lane
        if session is not None or lane in TOOL_LANES:
            name = f"{session_lane(session) if session is not None else 'session:*'}/{lane}"
        body = given(handler=mode, timeout_ms=timeout_ms)
        return await self.transport.read(LaneNumbers, "PATCH", path_of("lanes", name), body=body)

    async def pending_external_tasks(
        self, *, session: Optional[str] = None, lane: Optional[str] = None
    ) -> list[PendingTask]:
        """The tasks that wait for a worker, in order. Those that this client has claimed come first."""
        return await self._external.pending(session, lane)

    async def complete_external_task(
        self,
        task: str,
        success: bool = True,
        result: Any = None,
        *,
        error: Optional[str] = None,
        retryable: Optional[bool] = None,
    ) -> TaskView:
        """Reports the outcome of an external task. Claims exactly that task first, even if other tasks are ahead of it.

        A failure may have a result too, such as the output of a command. If the report does not reach the server, the client
        keeps its claim, and you can call this again. If the server refuses the report, the attempt ends as a failure.
        """
        return await self._external.complete(task, success, result, error, retryable)

    async def queue_stats(self, session: Optional[str] = None) -> SessionStats:
        """The waiting and running tasks by lane: of one session's tool lanes, or of all lanes."""
        if session is not None:
            return await self.session(session).stats()
        status = await self.status()
        pending = [task async for task in self.transport.pages(ExternalTask, path_of("external-tasks"))]
        lanes = {lane.lane: _stats(lane) async for lane in self.lanes()}
        return SessionStats(
            total_pending=status.waiting, total_active=status.running, external_pending=len(pending), lanes=lanes
        )

    async def queue_metrics(self) -> QueueMetrics:
        """Counters of all lanes, and percentiles of the times of waits and attempts.

        The lanes of many sessions are counted together under their pattern, such as `session:*/query`.
        """
        status = await self.status()
        listed = self.transport.pages(LaneNumbers, path_of("lanes"), {"patterns": "true"})
        lanes = {lane.lane: lane async for lane in listed}
        return QueueMetrics(status.running, status.waiting, status.max_concurrent, lanes)

    async def dead_letters(
        self, *, lane: Optional[str] = None, session: Optional[str] = None, kind: Optional[str] = None
    ) -> list[DeadLetterView]:
        """The dead letters that match, the oldest first. `session` covers its tool lanes."""
        query = given(lane=lane, session=session, kind=kind)
        return [letter async for letter in self.transport.pages(DeadLetterView, path_of("dead-letters"), query)]

    async def redrive(
        self,
        letter: Optional[str] = None,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
    ) -> RedriveAnswer:
        """Redrives a dead letter as a new task, or all dead letters of a lane, session or kind."""
        path = path_of("dead-letters", "redrive") if letter is None else path_of("dead-letters", letter, "redrive")
        body = given(lane=lane, session=session, kind=kind) if letter is None else None
        return await self.transport.read(RedriveAnswer, "POST", path, body=body)

    async def discard(
        self,
        letter: Optional[str] = None,
        *,
        lane: Optional[str] = None,
        session: Optional[str] = None,
        kind: Optional[str] = None,
    ) -> RedriveAnswer:
        """Deletes a dead letter, or all dead letters of a lane, session or kind."""
        path = path_of("dead-letters") if letter is None else path_of("dead-letters", letter)
        query = given(lane=lane, session=session, kind=kind)
        return await self.transport.read(RedriveAnswer, "DELETE", path, query=query)


def _stats(lane: LaneNumbers) -> ToolLaneStats:
    return ToolLaneStats(
        pending=lane.waiting,
        active=lane.running,
        completed=lane.counters.completed,
        failed=lane.counters.failed,
        max_concurrency=lane.max_concurrency,
        handler_mode=str(lane.settings.get("handler", "internal")),
    )
