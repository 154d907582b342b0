//! Everything that can be asked of a scheduler, and what it answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::{CancelReason, End, StopReason};
use crate::api::held_settings::SettingsChange;
use crate::api::ids::{BlobId, Fence, TaskId};
use crate::api::lane_settings::Block;
use crate::api::name::{LaneName, Name, Pattern};
use crate::api::owner::ReplicaId;
use crate::api::session_command::{MessageReply, SessionCommand, TurnMessage};
use crate::api::task_spec::{Parent, TaskSpec};
use crate::api::time::{Millis, Timestamp};
use crate::decide::notes::NoteChange;
use crate::sessions::message::MessageId;

/// One request to the scheduler. It is carried out whole or rejected whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Look at the clock: end what has timed out, start what may start. Due at
    /// [`next_wakeup`](crate::Scheduler::next_wakeup).
    Tick,
    /// Change the settings of lanes, all of these or none.
    Configure(Vec<Block>),
    /// Change single settings of the block of a lane or pattern, all of these or none. The other settings stay.
    ChangeSettings(Box<SettingsChange>),
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
    /// Cancel one task: a waiting task leaves the line, a running attempt has to stop.
    Cancel {
        /// Which task.
        task: TaskId,
        /// The reason that waiting callers get.
        reason: CancelReason,
    },
    /// Cancel the selected tasks that wait. Running tasks go on.
    CancelWaiting {
        /// Which tasks.
        which: Selector,
        /// The reason that waiting callers get.
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
        /// The most tasks to hand out.
        max: u32,
        /// How long the worker may go unheard; default: the home lane's lease.
        lease: Option<Millis>,
    },
    /// Hand those of these external tasks that may run now to a worker, whatever their places in line.
    ClaimThese {
        /// Who asks.
        worker: Name,
        /// Which tasks, 1 to 1000.
        tasks: Vec<TaskId>,
        /// How long the worker may go unheard; default: the home lane's lease.
        lease: Option<Millis>,
    },
    /// A heartbeat: renews the lease.
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
        /// The messages that a turn has taken last. What it has not taken goes back to the line.
        taken: Vec<MessageId>,
        /// How it went.
        outcome: Outcome,
    },
    /// The owner of an attempt is dead: end its lease now.
    Lapse {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
    },
    /// The store was away until now, so no heartbeat could be stored. Renew leases as if each attempt sent a heartbeat now.
    RenewLeases {
        /// Only those of this replica's attempts, because others could store theirs.
        replica: Option<ReplicaId>,
    },
    /// Give every later attempt a fence above this one, because the log has lost attempts.
    RaiseFences {
        /// The highest known fence.
        to: Fence,
    },
    /// Restore the end of a task, where the log has lost the end or the whole task. Refused while the task runs.
    RestoreOutcome {
        /// Which task.
        task: TaskId,
        /// What it was, for a log that has lost the whole task.
        spec: Option<Box<TaskSpec>>,
        /// How it ended.
        end: End,
    },
    /// A replica begins to end: from now on, any replica may run the tasks of the callers that are connected to it.
    Unbind {
        /// Which replica.
        replica: ReplicaId,
    },
    /// A replica has ended or died, and its callers are gone. This cancels the tasks that they alone wait for, and its slots. The
    /// leases of its other attempts end now.
    ReplicaGone {
        /// Which replica.
        replica: ReplicaId,
    },
    /// Take the slots away from all attempts in a lane at once: their leases end and their fences are stale.
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
        dead_letter: TaskId,
        /// The new task's id.
        task: TaskId,
    },
    /// Throw a dead letter away.
    Discard {
        /// The task that died.
        dead_letter: TaskId,
    },
    /// Something about sessions and their messages.
    Session(Box<SessionCommand>),
    /// Change the notes of programs.
    Note(Box<NoteChange>),
}

/// The tool calls of one model turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolBatch {
    /// The session; call number n runs in its lane `session:<key>/<lane of the tool>`.
    pub session: Arc<str>,
    /// The calls, in the order in which the model made them.
    pub calls: Vec<ToolCall>,
    /// The running task that asked.
    pub parent: Option<Parent>,
    /// The label of all calls.
    pub group: Option<Name>,
    /// A further lane that each call needs, such as the lane of the caller's token.
    #[serde(default)]
    pub asker: Option<LaneName>,
    /// The caller's token, where callers have tokens.
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

    /// The default lane of a tool.
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

/// Selects the waiting tasks that match every field that is set.
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

/// How an attempt went, as its owner reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It succeeded.
    Success,
    /// It failed.
    Failure {
        /// In words.
        error: Arc<str>,
        /// Whether another attempt could help.
        retryable: bool,
    },
    /// It stopped because the scheduler asked it to.
    Stopped,
}

/// The answer to a command that was carried out. Its events say the rest.
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
    /// The task runs and has to stop.
    Stopping,
    /// How many tasks were cancelled.
    Cancelled(usize),
    /// These tasks are the worker's now; the events say under which fence.
    Claimed(Vec<TaskId>),
    /// The lease was renewed.
    Renewed {
        /// When it lapses now.
        until: Timestamp,
        /// Why the attempt should stop, if it should.
        stopping: Option<StopReason>,
    },
    /// The attempts of these tasks lost their slots. An attempt may go on, but its reports are refused.
    Released(Vec<TaskId>),
    /// The lease of a turn was renewed.
    TurnRenewed {
        /// When it lapses now.
        until: Timestamp,
        /// Why the attempt should stop, if it should.
        stopping: Option<StopReason>,
        /// The messages that were accepted for the turn and are the worker's now, or on offer to it.
        steering: Vec<TurnMessage>,
    },
    /// What became of a message.
    Message(Box<MessageReply>),
    /// The messages that a running turn took.
    Steering(Vec<TurnMessage>),
}
