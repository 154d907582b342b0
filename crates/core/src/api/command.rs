//! Everything that can be asked of a scheduler, and what it answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::{CancelReason, End, StopReason};
use crate::api::ids::{BlobId, Fence, TaskId};
use crate::api::lane_settings::Block;
use crate::api::name::{LaneName, Name, Pattern};
use crate::api::session_command::{MessageReply, SessionCommand, TurnMessage};
use crate::api::task_spec::{Parent, TaskSpec};
use crate::api::time::{Millis, Timestamp};
use crate::decide::notes::NoteChange;

/// One request to the scheduler. It is carried out whole or rejected whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Look at the clock: end what has timed out, start what may start. Due at
    /// [`next_wakeup`](crate::Scheduler::next_wakeup).
    Tick,
    /// Change the settings of lanes, all of these or none.
    Configure(Vec<Block>),
    /// Change single settings of the block of a lane or pattern, all of these or none. The other settings stay.
    ChangeSettings {
        /// Which lane or pattern.
        lanes: Pattern,
        /// Each setting by its key, with its new value as [`LaneSettings::set`](crate::LaneSettings::set) reads it.
        settings: Vec<(Arc<str>, Arc<str>)>,
    },
    /// Accept a task.
    Submit {
        /// An id that was never used before.
        task: TaskId,
        /// What is asked.
        spec: Box<TaskSpec>,
    },
    /// Accept the tool calls of one model turn, all of them or none: reads side by side, the rest one after
    /// another in their order.
    SubmitBatch(Box<ToolBatch>),
    /// One of the callers that wait for a task has gone. When the last one goes, the task is cancelled.
    Leave {
        /// Which task.
        task: TaskId,
    },
    /// Cancel one task: a waiting one leaves the line, a running one is told to stop.
    Cancel {
        /// Which task.
        task: TaskId,
        /// Told to everybody who waits for it.
        reason: CancelReason,
    },
    /// Cancel everything that waits and fits, touching nothing that runs.
    CancelWaiting {
        /// Which tasks.
        which: Selector,
        /// Told to everybody who waits for them.
        reason: CancelReason,
    },
    /// Change the priority of a task that waits.
    Reprioritise {
        /// Which task.
        task: TaskId,
        /// 0 to 9.
        priority: u8,
    },
    /// Hand the best external tasks that may run now to a worker.
    Claim {
        /// Who asks.
        worker: Name,
        /// From which home lanes.
        lanes: Vec<Pattern>,
        /// Of which kinds; empty: any.
        kinds: Vec<Name>,
        /// At most so many.
        max: u32,
        /// For how long without a sign of life; default: the home lane's lease.
        lease: Option<Millis>,
    },
    /// Hand these external tasks to a worker, whoever stands before them: those of them that may run now.
    ClaimThese {
        /// Who asks.
        worker: Name,
        /// Which tasks, 1 to 1000.
        tasks: Vec<TaskId>,
        /// For how long without a sign of life; default: the home lane's lease.
        lease: Option<Millis>,
    },
    /// A sign of life: renews the lease.
    Heartbeat {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
    },
    /// An attempt is over.
    Finish {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// How it went.
        outcome: Outcome,
    },
    /// Whoever ran an attempt is known to be dead: what would follow when its lease lapses follows now.
    Lapse {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
    },
    /// Every attempt from now on has a fence above this one: somebody knows of attempts that the log has forgotten.
    RaiseFences {
        /// The highest that is known.
        to: Fence,
    },
    /// Somebody knows how a task ended, and the log has lost it, or that end. One that runs is left alone.
    Recount {
        /// Which task.
        task: TaskId,
        /// What it was, for a log that has lost the whole task.
        spec: Option<Box<TaskSpec>>,
        /// How it ended.
        end: End,
    },
    /// Whoever had these callers ends: what waits for its first attempt may be run by anybody, and goes on.
    Unbind {
        /// Who ends.
        home: Name,
    },
    /// Take the slots away from what runs in a lane, at once: its leases are revoked and its fences stale.
    ForceRelease {
        /// Which lane.
        lane: LaneName,
    },
    /// Grant nothing in a lane until it is resumed.
    Pause {
        /// Which lane.
        lane: LaneName,
    },
    /// End a pause and a drain.
    Resume {
        /// Which lane.
        lane: LaneName,
    },
    /// Refuse new work in a lane; what was accepted still runs.
    Drain {
        /// Which lane.
        lane: LaneName,
    },
    /// Run a dead letter again, as a new task.
    Redrive {
        /// The task that died.
        letter: TaskId,
        /// The new task's id.
        task: TaskId,
    },
    /// Throw a dead letter away.
    Discard {
        /// The task that died.
        letter: TaskId,
    },
    /// Something about sessions and their messages.
    Session(Box<SessionCommand>),
    /// Change what programs keep beside the work.
    Note(Box<NoteChange>),
}

/// The tool calls of one model turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolBatch {
    /// The conversation; call number n runs in its lane `session:<key>/<lane of the tool>`.
    pub session: Arc<str>,
    /// The calls, in the order in which the model made them.
    pub calls: Vec<ToolCall>,
    /// The running task that asked.
    pub parent: Option<Parent>,
    /// The label of all calls.
    pub group: Option<Name>,
    /// A further lane that each call needs: that of whoever asks, say.
    #[serde(default)]
    pub asker: Option<LaneName>,
    /// The token that asks for the calls, where callers have tokens.
    #[serde(default)]
    pub caller: Option<Name>,
    /// The trace that the calls belong to.
    #[serde(default)]
    pub trace: Option<Arc<str>>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The new task's id.
    pub task: TaskId,
    /// The tool's name: becomes the task's kind.
    pub tool: Name,
    /// Which tool lane it belongs to.
    pub lane: ToolLane,
    /// Where its arguments are.
    pub payload: Option<BlobId>,
}

/// The four lanes of an agent's tool calls, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ToolLane {
    /// Pausing, resuming, cancelling.
    Control,
    /// Reading: calls run side by side.
    Query,
    /// Everything that changes something, and every unknown tool.
    Execute,
    /// Calls of a model.
    Generate,
}

impl ToolLane {
    /// The last part of the lane's name.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolLane::Control => "control",
            ToolLane::Query => "query",
            ToolLane::Execute => "execute",
            ToolLane::Generate => "generate",
        }
    }

    /// Where a tool belongs as long as nobody configured otherwise.
    pub fn of_tool(tool: &str) -> ToolLane {
        match tool {
            "pause" | "resume" | "cancel" => ToolLane::Control,
            "read" | "glob" | "grep" | "ls" | "search" | "list_files" | "web_fetch" | "web_search" => {
                ToolLane::Query
            }
            "generate" | "model" | "llm" | "complete" | "completion" => ToolLane::Generate,
            _ => ToolLane::Execute,
        }
    }
}

/// Which waiting tasks are meant: those that fit everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// They name this lane.
    pub lane: Option<LaneName>,
    /// They are of this kind.
    pub kind: Option<Name>,
    /// They carry this label.
    pub group: Option<Name>,
    /// This task asked for them.
    #[serde(default)]
    pub parent: Option<TaskId>,
}

/// How an attempt went, as told by whoever ran it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It did what it should.
    Success,
    /// It did not.
    Failure {
        /// In words.
        error: Arc<str>,
        /// Whether another attempt could help.
        retryable: bool,
    },
    /// It was told to stop, and has.
    Stopped,
}

/// What a command that was carried out answers, beside its events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing more to say.
    Done,
    /// The task was accepted, or an earlier one under the same key is the answer.
    Accepted {
        /// The task to wait for.
        task: TaskId,
        /// It had been accepted before.
        joined: bool,
    },
    /// The task left the line and never runs.
    CancelledWhileWaiting,
    /// The task was told to stop.
    Stopping,
    /// So many tasks were cancelled.
    Cancelled(usize),
    /// These tasks are the worker's now; the events say under which fence.
    Claimed(Vec<TaskId>),
    /// The lease was renewed.
    Renewed {
        /// Until then.
        until: Timestamp,
        /// The run should stop, and why.
        stopping: Option<StopReason>,
    },
    /// These runs lost their slots. They may still be going, and whatever they report is refused.
    Released(Vec<TaskId>),
    /// The lease of a turn was renewed.
    TurnRenewed {
        /// Until then.
        until: Timestamp,
        /// Whether the attempt should stop, and why.
        stopping: Option<StopReason>,
        /// The messages that were accepted for the turn and are the worker's now, or on offer to it.
        steering: Vec<TurnMessage>,
    },
    /// What became of a message.
    Message(Box<MessageReply>),
    /// The messages that a running turn took.
    Steering(Vec<TurnMessage>),
}
