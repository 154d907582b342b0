//! Refusals: understood, nothing changed, and what to do next.

use std::sync::Arc;

use crate::api::ids::{Fence, TaskId};
use crate::api::name::LaneName;
use crate::api::settings_schema::SettingError;
use crate::api::task_spec::{CHAIN_DEPTH_MAX, KEY_BYTES_MAX, LANES_PER_TASK_MAX, TRACE_BYTES_MAX};
use crate::api::time::{Millis, Timestamp};
use crate::decide::dispatch::CLAIM_MAX;
use crate::decide::notes::{NOTE_BYTES_MAX, NOTE_CHANGES_MAX, NOTES_BYTES_MAX};
use crate::decide::submit::BATCH_CALLS_MAX;
use crate::query::estimate::{RETRY_AFTER_MAX, RETRY_AFTER_MIN, RETRY_AFTER_UNKNOWN};
use crate::sessions::message::{BadMessage, MessageId, TEXTS_BYTES_MAX};

/// Why a command was not carried out. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The task would have to wait, and this lane's line is full (or the task may not wait).
    #[error(transparent)]
    LaneFull(Box<LaneFull>),
    /// This lane takes no new work.
    #[error("lane {lane} is draining and takes no new work")]
    LaneDraining {
        /// Which lane.
        lane: LaneName,
        /// Its label for metrics, as in [`LaneFull`].
        label: Arc<str>,
    },
    /// The task would start only after its deadline.
    #[error("it would start in {starts_in}, after its deadline in {deadline}")]
    DeadlineUnmeetable {
        /// When it would probably start.
        starts_in: Millis,
        /// How soon it had to.
        deadline: Millis,
    },
    /// No live task has this id: it has ended or never was.
    #[error("task {task} is not live: it has ended or was never accepted")]
    NotLive {
        /// The id.
        task: TaskId,
    },
    /// The task runs, and this can only be done to one that waits.
    #[error("task {task} runs already")]
    NotWaiting {
        /// The id.
        task: TaskId,
    },
    /// A live task or a dead letter has this id already.
    #[error("the id {task} is in use")]
    IdTaken {
        /// The id.
        task: TaskId,
    },
    /// The attempt lost its lease: whatever it reports counts no more.
    #[error("lease {fence} on {task} is stale")]
    StaleLease {
        /// Which task.
        task: TaskId,
        /// The fence that was shown.
        fence: Fence,
    },
    /// The task that should wait for this one does not run.
    #[error("task {task} does not run, so it cannot wait for another")]
    ParentNotRunning {
        /// The parent.
        task: TaskId,
    },
    /// The task could never start: it needs a slot that is held until it has ended.
    #[error("it would wait for lane {lane}, which {holder} holds until it has ended")]
    WouldDeadlock {
        /// The lane of that slot.
        lane: LaneName,
        /// Its label for metrics, as in [`LaneFull`].
        label: Arc<str>,
        /// Who holds it.
        holder: TaskId,
    },
    /// Too many tasks wait for each other.
    #[error("at most {CHAIN_DEPTH_MAX} tasks can wait for each other in a chain")]
    ChainTooDeep,
    /// The same key was used for another request.
    #[error("the key was used for another request, task {task}")]
    KeyConflict {
        /// The task of that request.
        task: TaskId,
    },
    /// No dead letter has this id.
    #[error("there is no dead letter {dead_letter}")]
    NoSuchDeadLetter {
        /// The id.
        dead_letter: TaskId,
    },
    /// `now` lies before the last step.
    #[error("the clock went back: it is {now}, but the last step was at {last}")]
    ClockWentBack {
        /// The time of this step.
        now: Timestamp,
        /// The time of the last step.
        last: Timestamp,
    },
    /// `now` lies behind [`Timestamp::MAX`].
    #[error("a step can be at {} ms at the latest", Timestamp::MAX)]
    TimeTooLate {
        /// The time of this step.
        now: Timestamp,
    },
    /// A setting makes no sense.
    #[error(transparent)]
    BadSetting(Box<SettingError>),
    /// Something asked of a task makes no sense.
    #[error(transparent)]
    BadTask(BadTask),
    /// The session is busy, and the message's mode says that it is refused then.
    #[error("{session} is busy{}", with_turn(*turn))]
    SessionBusy {
        /// The session's lane.
        session: LaneName,
        /// The turn that is under way.
        turn: Option<TaskId>,
    },
    /// Nothing is under way in the session.
    #[error("nothing is under way in {session}")]
    SessionIdle {
        /// The session's lane.
        session: LaneName,
    },
    /// The turn that a message was meant to steer is over, or takes no steering.
    #[error("turn {turn} is over or takes no steering")]
    TurnOver {
        /// The turn.
        turn: TaskId,
    },
    /// No message has this id: it has ended or never was.
    #[error("message {message} has ended or was never accepted")]
    NoSuchMessage {
        /// The id.
        message: MessageId,
    },
    /// The message is in a turn already: out of reach.
    #[error("message {message} is in a turn already")]
    MessageInTurn {
        /// The id.
        message: MessageId,
    },
    /// A message has this id already.
    #[error("the id {message} is in use")]
    MessageIdTaken {
        /// The id.
        message: MessageId,
    },
    /// The texts of all waiting messages have reached their bound.
    #[error("the waiting messages have {} MiB of text already", TEXTS_BYTES_MAX >> 20)]
    MessagesFull,
    /// Something about a message makes no sense.
    #[error("{0}")]
    BadMessage(BadMessage),
    /// A note is not as the change expects: another caller has changed it.
    #[error("another caller has changed it meanwhile")]
    NoteChanged {
        /// Its key.
        key: Arc<str>,
    },
    /// The notes are as large as they may be.
    #[error("a note has at most {} KiB, all of them {} MiB, and {NOTE_CHANGES_MAX} change at once", NOTE_BYTES_MAX >> 10, NOTES_BYTES_MAX >> 20)]
    NotesFull,
}

/// The numbers of a lane whose line is full.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "lane {lane} is {}: {running}{} running, {waiting}/{max_queued} waiting{}; come back in {} s",
    if *is_busy { "busy" } else { "full" },
    of(*max_concurrency),
    behind(blocked_by.as_ref()),
    retry_after.0.div_ceil(1000)
)]
pub struct LaneFull {
    /// The lane.
    pub lane: LaneName,
    /// How many of its slots are taken.
    pub running: u32,
    /// How many it has; `None`: any number.
    pub max_concurrency: Option<u32>,
    /// How many tasks wait.
    pub waiting: u32,
    /// How many may wait.
    pub max_queued: u32,
    /// The task may not wait, and the lane has no free slot for it. Otherwise there is no room in the line.
    pub is_busy: bool,
    /// The lane that has no free slot for the task, where that is another one.
    pub blocked_by: Option<LaneName>,
    /// The task that has held a slot for longest, if one is held.
    pub current: Option<TaskId>,
    /// When to come back, at most 300 s: from the lane's measured run times, or from how long something has run.
    pub retry_after: Millis,
    /// How much later each further caller should come, see [`ReturnTimes`](crate::ReturnTimes).
    pub every: Millis,
    /// The block or family of defaults that speaks for the lane, for metrics; `None`: there is no such lane yet.
    pub label: Option<Arc<str>>,
}

/// What makes no sense about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTask {
    /// More than [`LANES_PER_TASK_MAX`] lanes; holds how many.
    #[error("a task names at most {LANES_PER_TASK_MAX} lanes, this one names {0}")]
    TooManyLanes(usize),
    /// A priority above 9.
    #[error("a priority is a whole number from 0 to 9")]
    Priority,
    /// A duration longer than [`Millis::MAX`]; holds the field.
    #[error("{0} is at most ten years")]
    TooLong(&'static str),
    /// A duration of zero where there must be some time; holds the field.
    #[error("{0} is at least one millisecond")]
    Zero(&'static str),
    /// A key that is empty or longer than [`KEY_BYTES_MAX`].
    #[error("an idempotency key has 1 to {KEY_BYTES_MAX} bytes")]
    Key,
    /// A trace that is longer than [`TRACE_BYTES_MAX`].
    #[error("a trace has at most {TRACE_BYTES_MAX} bytes")]
    Trace,
    /// No calls, or more than a batch may have.
    #[error("a batch has 1 to {BATCH_CALLS_MAX} calls")]
    BatchSize,
    /// The session's key makes no lane name.
    #[error("the session's key makes no lane: {0}")]
    Session(crate::api::name::NameError),
    /// It waits for a task that is not live.
    #[error("the task to start after is not live")]
    After,
    /// A claim names no lane or asks for no task.
    #[error("a claim names at least one lane and asks for at least one task")]
    EmptyClaim,
    /// A claim names more tasks than one may take; holds how many.
    #[error("a claim takes at most {CLAIM_MAX} tasks, this one names {0}")]
    TooManyClaimed(usize),
}

impl Rejection {
    /// A stable name of the kind of refusal, the same on every surface.
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::LaneFull(_) | Rejection::MessagesFull | Rejection::NotesFull => "AT_CAPACITY",
            Rejection::SessionBusy { .. } => "SESSION_BUSY",
            Rejection::BadMessage(BadMessage::TooLong) => "TOO_LARGE",
            Rejection::LaneDraining { .. } => "DRAINING",
            Rejection::DeadlineUnmeetable { .. } => "DEADLINE_UNMEETABLE",
            Rejection::NotLive { .. }
            | Rejection::NoSuchDeadLetter { .. }
            | Rejection::SessionIdle { .. }
            | Rejection::TurnOver { .. }
            | Rejection::NoSuchMessage { .. } => "NOT_FOUND",
            Rejection::StaleLease { .. } => "STALE_LEASE",
            Rejection::WouldDeadlock { .. } => "WOULD_DEADLOCK",
            Rejection::ChainTooDeep => "CHAIN_TOO_DEEP",
            Rejection::KeyConflict { .. } => "IDEMPOTENCY_CONFLICT",
            Rejection::NotWaiting { .. }
            | Rejection::IdTaken { .. }
            | Rejection::ParentNotRunning { .. }
            | Rejection::ClockWentBack { .. }
            | Rejection::TimeTooLate { .. }
            | Rejection::BadSetting(_)
            | Rejection::BadTask(_)
            | Rejection::MessageInTurn { .. }
            | Rejection::MessageIdTaken { .. }
            | Rejection::NoteChanged { .. }
            | Rejection::BadMessage(_) => "INVALID",
        }
    }

    /// When asking again could help. A deadline that cannot be met could be as soon as the lanes have caught up
    /// by as much as the task would be late.
    pub fn retry_after(&self) -> Option<Millis> {
        match self {
            Rejection::LaneFull(full) => Some(full.retry_after),
            Rejection::LaneDraining { .. } | Rejection::MessagesFull => Some(RETRY_AFTER_UNKNOWN),
            Rejection::DeadlineUnmeetable { starts_in, deadline } => {
                let too_late = Millis(starts_in.0.saturating_sub(deadline.0));
                Some(too_late.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX))
            }
            _ => None,
        }
    }
}

fn with_turn(turn: Option<TaskId>) -> String {
    turn.map_or(String::new(), |turn| format!(" with turn {turn}"))
}

fn behind(blocked_by: Option<&LaneName>) -> String {
    blocked_by.map_or(String::new(), |lane| format!(", and lane {lane} has no free slot"))
}

fn of(slots: Option<u32>) -> String {
    slots.map_or(String::new(), |slots| format!("/{slots}"))
}
