"""Lanes for agent work: they decide which tasks run and which wait."""

from . import errors, events, types
from ._async.agents import AsyncAgent, AsyncTurn
from ._async.client import AsyncClient
from ._async.lanes import AsyncLane
from ._async.schedules import AsyncSchedule
from ._async.sessions import AsyncSession
from ._async.slots import AsyncSlot
from ._async.streams import AsyncEventStream
from ._sync.agents import Agent
from ._sync.client import Client
from ._sync.lanes import Lane
from ._sync.schedules import Schedule
from ._sync.sessions import Session
from ._sync.slots import Slot
from ._sync.streams import EventStream
from .errors import AttemptFailed, DoNotRetry, LanewayError, LeaseLost, NotClaimable, Refusal, UnexpectedAnswer, Unreachable
from .events import Event
from .external import PendingTask, QueueMetrics
from .local import Laneway, Local, LocalFailed
from .retry import Retry
from .task_run import TaskRun
from .tracing import traceparent
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AsyncAgent",
    "AsyncClient",
    "AsyncEventStream",
    "AsyncLane",
    "AsyncSchedule",
    "AsyncSession",
    "AsyncSlot",
    "AsyncTurn",
    "AttemptFailed",
    "Client",
    "DoNotRetry",
    "Event",
    "EventStream",
    "Lane",
    "Laneway",
    "LanewayError",
    "LeaseLost",
    "Local",
    "LocalFailed",
    "NotClaimable",
    "PendingTask",
    "QueueMetrics",
    "Refusal",
    "Retry",
    "Schedule",
    "Session",
    "Slot",
    "TaskRun",
    "UnexpectedAnswer",
    "Unreachable",
    "Worker",
    "errors",
    "events",
    "traceparent",
    "types",
]
