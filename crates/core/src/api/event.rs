//! Everything that can happen in a scheduler. Events are facts: they hold what was decided, not why.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::{Block, Handler};
use crate::api::name::LaneName;
use crate::api::owner::{Owner, ReplicaId};
use crate::api::session_command::SessionEvent;
use crate::api::task_spec::TaskSpec;
use crate::api::time::{Millis, Timestamp};
use crate::decide::notes::Note;
use crate::sessions::queue_mode::MessageSettings;

/// One thing that happened. The state is what [`apply`](crate::Scheduler::apply) makes of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Settings changed.
    Configured {
        /// What changed.
        blocks: Vec<Block>,
    },
    /// A task was accepted. It waits until a `Granted` says otherwise.
    Submitted {
        /// Its id.
        task: TaskId,
        /// What was asked.
        spec: Box<TaskSpec>,
        /// Its own priority.
        priority: u8,
        /// Who runs it.
        handler: Handler,
        /// When it has waited too long. Unknown while the task is held behind another and does not wait yet.
        wait_until: Option<Timestamp>,
        /// When it is too late to start, its parents' deadlines counted in.
        deadline: Option<Timestamp>,
    },
    /// Another caller waits for the same task, under the same key.
    Joined {
        /// Which task.
        task: TaskId,
    },
    /// One of several callers has gone; the others still wait.
    Left {
        /// Which task.
        task: TaskId,
    },
    /// What the task waited for before it could join the line is over: its delay, its back-off or the call
    /// before it.
    Ready {
        /// Which task.
        task: TaskId,
    },
    /// Waiting raised the task's effective priority.
    Aged {
        /// Which task.
        task: TaskId,
        /// Levels above its own priority that it has gained by waiting.
        levels: u8,
    },
    /// Its deadline, coming closer, raised the task's effective priority.
    Boosted {
        /// Which task.
        task: TaskId,
        /// Levels above its own priority that it has gained by the deadline.
        levels: u8,
    },
    /// The priority of a waiting task was changed.
    Reprioritised {
        /// Which task.
        task: TaskId,
        /// The new one.
        priority: u8,
    },
    /// The task has waited for long enough to say so.
    Noticed {
        /// Which task.
        task: TaskId,
        /// For how long.
        waited: Millis,
        /// How many wait before it in its home lane.
        ahead: u32,
    },
    /// The task was passed over too often: the scheduler now keeps the slots free that it needs.
    Reserved {
        /// Which task.
        task: TaskId,
    },
    /// An attempt starts: the task has a slot of each of its lanes, and a lease.
    Granted {
        /// Which task.
        task: TaskId,
        /// Which attempt, counted from one.
        attempt: u32,
        /// Its fence, larger than any before.
        fence: Fence,
        /// When the lease lapses without a heartbeat.
        lease_until: Timestamp,
        /// How long a heartbeat renews it.
        lease: Millis,
        /// When the attempt has taken too long.
        timeout_at: Option<Timestamp>,
        /// Who executes it.
        owner: Owner,
        /// Which of its lanes (by index; `global` comes last) it borrows a parent's slot of.
        borrowed: Vec<u8>,
    },
    /// A heartbeat.
    Renewed {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// When the lease lapses now.
        lease_until: Timestamp,
    },
    /// An attempt has to stop. Its slots are free when it has stopped, or when its grace is over.
    Stopping {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// Why.
        reason: StopReason,
        /// When its grace is over.
        until: Timestamp,
    },
    /// An attempt is over without success, and another follows.
    Retrying {
        /// Which task.
        task: TaskId,
        /// Which attempt is over.
        fence: Fence,
        /// What went wrong, in words.
        error: Arc<str>,
        /// When the task joins the line again, in its old place.
        at: Timestamp,
    },
    /// The lease of an external attempt lapsed; the task is offered again.
    Redelivered {
        /// Which task.
        task: TaskId,
        /// Which attempt is over.
        fence: Fence,
    },
    /// The task came to its one end.
    Ended {
        /// Which task.
        task: TaskId,
        /// Which end.
        end: End,
    },
    /// A task that could not be done is kept as a dead letter.
    DeadLettered {
        /// Which task.
        task: TaskId,
        /// What went wrong last.
        error: Arc<str>,
        /// How many attempts there were.
        attempts: u32,
    },
    /// A dead letter was removed.
    #[serde(alias = "LetterGone")]
    DeadLetterRemoved {
        /// The task that had died.
        dead_letter: TaskId,
        /// Why.
        why: DeadLetterRemoval,
    },
    /// Nothing is granted in this lane until it is resumed.
    Paused {
        /// Which lane.
        lane: LaneName,
    },
    /// A pause or a drain is over.
    Resumed {
        /// Which lane.
        lane: LaneName,
    },
    /// New work is refused in this lane.
    Draining {
        /// Which lane.
        lane: LaneName,
    },
    /// The last task of a draining lane has ended.
    Drained {
        /// Which lane.
        lane: LaneName,
    },
    /// The number of waiting tasks puts the lane under pressure. Emitted once until the lane is idle.
    Pressure {
        /// Which lane.
        lane: LaneName,
        /// How many wait.
        waiting: u32,
    },
    /// No task waits in a lane that was under pressure.
    Idle {
        /// Which lane.
        lane: LaneName,
    },
    /// The line grew over a threshold. Emitted once per crossing.
    Alert {
        /// Which lane.
        lane: LaneName,
        /// Which threshold.
        level: AlertLevel,
        /// How many wait.
        waiting: u32,
    },
    /// The line is below a threshold again, so that the next crossing emits an alert.
    AlertOver {
        /// Which lane.
        lane: LaneName,
        /// Which threshold.
        level: AlertLevel,
    },
    /// The message settings of all sessions were changed.
    MessagesConfigured {
        /// The new settings.
        settings: Box<MessageSettings>,
    },
    /// Something happened in a session.
    Session(Box<SessionEvent>),
    /// A replica ends: any replica may run the tasks of the callers that were connected to it.
    Unbound {
        /// Which replica.
        replica: ReplicaId,
    },
    /// Later fences are above this one, which an attempt had before the log lost events.
    FencesRaised {
        /// The highest known fence.
        to: Fence,
    },
    /// The notes of programs were changed.
    Noted {
        /// The changed notes.
        changes: Vec<Note>,
    },
}

/// How a task ended. An end never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// An attempt succeeded.
    Completed,
    /// The last attempt failed.
    Failed {
        /// In words.
        error: Arc<str>,
    },
    /// The last attempt took too long.
    TimedOut,
    /// It was cancelled.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// Its deadline passed while it waited.
    Expired,
    /// It waited for longer than it was allowed to.
    WaitTimeout,
    /// Its lease lapsed, and it may not run again.
    Lost,
}

/// Why a task was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelReason {
    /// A caller asked, or the last one has gone.
    Caller,
    /// The line was cleared.
    Cleared,
    /// Its slot was taken away by force.
    Released,
    /// The task that asked for it ended.
    Parent,
    /// A newer message interrupted it.
    Interrupted,
    /// A message for the turn that asked for it came first.
    Steered,
    /// Its agent was removed.
    AgentRemoved,
}

/// Why a running attempt has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// It took too long.
    Timeout,
    /// Its task was cancelled.
    Cancelled(CancelReason),
}

/// Why a dead letter was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeadLetterRemoval {
    /// It was the oldest, and there was no room.
    Overflow,
    /// It runs again, as this task.
    Redriven(TaskId),
    /// A caller threw it away.
    Discarded,
}

/// How bad a crossing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AlertLevel {
    /// Worth a look.
    Warning,
    /// Worth getting up for.
    Critical,
}

/// A lane's numbers after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneChange {
    /// Which lane.
    pub lane: LaneName,
    /// How many of its slots are taken.
    pub running: u32,
    /// How many tasks wait in it.
    pub waiting: u32,
    /// How many slots it has; `None`: any number.
    pub max_concurrency: Option<u32>,
}
