//! What a caller asks for when it submits a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::ids::{BlobId, TaskId};
use crate::api::lane_settings::{PRIORITY_MAX, Source};
use crate::api::name::{LaneName, Name};
use crate::api::owner::{Owner, ReplicaId};
use crate::api::rejection::BadTask;
use crate::api::retry::Retry;
use crate::api::time::Millis;

/// The most lanes that one task may name, `global` not counted.
pub const LANES_PER_TASK_MAX: usize = 64;
/// The longest chain of tasks that wait for each other, the first one counted.
pub const CHAIN_DEPTH_MAX: u8 = 8;
/// The longest idempotency key, in bytes, with whatever the caller adds to tell routes apart.
pub const KEY_BYTES_MAX: usize = 1024;
/// The longest trace, in bytes: a `traceparent` has 55.
pub const TRACE_BYTES_MAX: usize = 512;

/// One piece of work as it is asked for. What is `None` comes from the settings of its home lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// What sort of work it is: decides who can run it.
    pub kind: Name,
    /// The lanes it needs a slot of; the first is its home lane. None named means `main`.
    pub lanes: Vec<LaneName>,
    /// Where its payload is.
    pub payload: Option<BlobId>,
    /// Who asked.
    pub source: Source,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// The fair key, such as the name of a tenant or user. Default: its home lane.
    pub fair_key: Option<LaneName>,
    /// How long it may wait in line, and again each time it joins it; zero: it starts now or is refused.
    pub wait_timeout: Option<Millis>,
    /// How long an attempt may take.
    pub timeout: Option<Millis>,
    /// When it is too late to start, counted from acceptance.
    pub deadline: Option<Millis>,
    /// How long it must wait before it may start.
    pub run_after: Option<Millis>,
    /// What follows a failure.
    pub retry: Option<Retry>,
    /// The running task that asked for it.
    pub parent: Option<Parent>,
    /// It may start only when this task has ended, however that ended.
    pub after: Option<TaskId>,
    /// A label that tasks which belong together share.
    pub group: Option<Name>,
    /// Makes asking twice the same as asking once.
    pub idempotency: Option<Idempotency>,
    /// The replica that its caller is connected to. It owns the first attempt, whichever replica grants it, unless
    /// `owner` is set. See [`run_as`](crate::Scheduler::run_as).
    #[serde(default)]
    pub caller_at: Option<ReplicaId>,
    /// The owner of its attempts, where that is known beforehand: the replica whose program asked for a slot, or a worker
    /// that waits for this task. The scheduler grants it directly, when its turn comes; a claim does not hand it out.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// How long its owner may go unheard. Default: the lease of the home lane.
    #[serde(default)]
    pub lease: Option<Millis>,
    /// The token that asked, where callers have tokens.
    #[serde(default)]
    pub caller: Option<Name>,
    /// The trace that the task belongs to, as the caller's `traceparent` names it.
    #[serde(default)]
    pub trace: Option<Arc<str>>,
    /// The name of this task for people who look at the queue.
    #[serde(default)]
    pub label: Option<Name>,
}

/// The running task that asked for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Which one.
    pub task: TaskId,
    /// The parent does not wait for the child: it lends it nothing, and its end does not end the child.
    pub detached: bool,
}

/// A caller's key for a request, remembered for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The key, which the submitter makes unique per caller and route.
    pub key: Arc<str>,
    /// A digest of the request, to tell a repetition from another request under the same key.
    pub fingerprint: u64,
    /// The key is free as soon as the task has ended in any way, and not before. Only repetitions until then join it.
    #[serde(default)]
    pub until_end: bool,
}

impl TaskSpec {
    /// A task of this kind in these lanes, everything else left to the settings.
    pub fn new(kind: Name, lanes: Vec<LaneName>) -> TaskSpec {
        TaskSpec {
            kind,
            lanes,
            payload: None,
            source: Source::default(),
            priority: None,
            fair_key: None,
            wait_timeout: None,
            timeout: None,
            deadline: None,
            run_after: None,
            retry: None,
            parent: None,
            after: None,
            group: None,
            idempotency: None,
            caller_at: None,
            owner: None,
            lease: None,
            caller: None,
            trace: None,
            label: None,
        }
    }

    /// Whether it is a slot or closure of a program, which no handler runs.
    pub fn is_slot(&self) -> bool {
        matches!(self.owner, Some(Owner::Replica(_)))
    }

    /// Whether what is asked makes sense by itself.
    pub(crate) fn check(&self) -> Result<(), BadTask> {
        if self.lanes.len() > LANES_PER_TASK_MAX {
            return Err(BadTask::TooManyLanes(self.lanes.len()));
        }
        if self.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
            return Err(BadTask::Priority);
        }
        check_length("wait_timeout", self.wait_timeout, true)?;
        check_length("timeout", self.timeout, false)?;
        check_length("deadline", self.deadline, true)?;
        check_length("run_after", self.run_after, true)?;
        check_length("lease", self.lease, false)?;
        if let Some(retry) = self.retry {
            check_length("retry.initial_delay", Some(retry.initial_delay), true)?;
            check_length("retry.fixed_delay", Some(retry.fixed_delay), true)?;
            check_length("retry.max_delay", Some(retry.max_delay), true)?;
        }
        if self.trace.as_ref().is_some_and(|trace| trace.len() > TRACE_BYTES_MAX) {
            return Err(BadTask::Trace);
        }
        match &self.idempotency {
            Some(asked) if !(1..=KEY_BYTES_MAX).contains(&asked.key.len()) => Err(BadTask::Key),
            _ => Ok(()),
        }
    }
}

fn check_length(field: &'static str, length: Option<Millis>, may_be_zero: bool) -> Result<(), BadTask> {
    match length {
        Some(length) if length > Millis::MAX => Err(BadTask::TooLong(field)),
        Some(Millis(0)) if !may_be_zero => Err(BadTask::Zero(field)),
        _ => Ok(()),
    }
}
