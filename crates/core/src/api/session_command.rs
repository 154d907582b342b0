//! What can be asked of sessions, what can happen in them, and what is answered.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::CancelReason;
use crate::api::ids::{Fence, TaskId};
use crate::api::name::LaneName;
use crate::api::time::Timestamp;
use crate::sessions::message::{Address, Dropped, Incoming, Message, MessageEnd, MessageId, Place};
use crate::sessions::queue_mode::{MessageSettings, QueueOverrides};

/// One request about sessions and their messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionCommand {
    /// Accept a message. Answers [`Reply::Message`](crate::Reply::Message).
    Send(Box<Incoming>),
    /// Change how messages are queued in all sessions, also for those that wait already.
    ConfigureMessages(Box<MessageSettings>),
    /// Replace the settings by which messages of one session are queued.
    Configure {
        /// The session's key.
        session: Arc<str>,
        /// The new settings.
        queue: QueueOverrides,
    },
    /// Change some settings by which messages of one session are queued. The others stay.
    Amend {
        /// The session's key.
        session: Arc<str>,
        /// What changes.
        queue: QueueOverrides,
    },
    /// Take a waiting message back, or throw away a parked one.
    Withdraw {
        /// Which one.
        message: MessageId,
    },
    /// Give a waiting message another place in line.
    Move {
        /// Which one.
        message: MessageId,
        /// Before which one; none: to the end.
        before: Option<MessageId>,
    },
    /// Send a waiting message next, without waiting for quiet or the end of a back-off.
    SendNow {
        /// Which one.
        message: MessageId,
    },
    /// Pass a waiting message into the running turn. Answers [`Reply::Message`](crate::Reply::Message).
    Promote {
        /// Which one.
        message: MessageId,
    },
    /// Send a parked message once more, as a new one. Answers [`Reply::Message`](crate::Reply::Message).
    Resend {
        /// Which one.
        message: MessageId,
        /// The new one's id, never used before.
        again: MessageId,
    },
    /// Cancel the messages of a session that wait, alone or in turns that have not started.
    Clear {
        /// The session's key.
        session: Arc<str>,
    },
    /// Cancel the turn that is under way; what waits goes on.
    Interrupt {
        /// The session's key.
        session: Arc<str>,
    },
    /// Cancel the turn and everything that waits.
    Stop {
        /// The session's key.
        session: Arc<str>,
    },
    /// A running turn says whether it takes steering from now on.
    Steering {
        /// Which turn.
        turn: TaskId,
        /// Which attempt.
        fence: Fence,
        /// Whether it does.
        open: bool,
    },
    /// A running turn takes the messages that were accepted for it. Answers
    /// [`Reply::Steering`](crate::Reply::Steering).
    TakeSteering {
        /// Which turn.
        turn: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The messages to take, `None`: all. A worker confirms the messages that
        /// [`offered_steering`](crate::Scheduler::offered_steering) showed it.
        only: Option<Vec<MessageId>>,
    },
    /// A worker reports that a turn still runs. This renews the lease, opens or closes steering, and hands over the
    /// messages for the turn. Answers [`Reply::TurnRenewed`](crate::Reply::TurnRenewed).
    HeartbeatOfTurn {
        /// Which turn.
        turn: TaskId,
        /// Which attempt.
        fence: Fence,
        /// Whether the turn takes steering from now on. With `None` that stays as it is, and no message is handed over.
        takes_steering: Option<bool>,
        /// The messages that the worker has received. Messages stay on offer in each answer until a worker names them. With
        /// `None` they count as taken with the answer.
        taken: Option<Vec<MessageId>>,
    },
}

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// The session's lane.
    pub session: LaneName,
    /// What.
    pub change: SessionDelta,
}

/// What can happen in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionDelta {
    /// A message was accepted: from now on the sender sees typing.
    Accepted {
        /// The message.
        message: Message,
        /// Where it went.
        way: Way,
    },
    /// Messages became a turn, which was submitted just before.
    TurnBegan {
        /// The task.
        turn: TaskId,
        /// The messages, in order; none: the turn is a summary of what was dropped.
        messages: Vec<MessageId>,
        /// The address whose dropped messages this turn reports.
        summary: Option<Arc<Address>>,
    },
    /// A running turn says whether it takes steering.
    SteeringSet {
        /// Which turn.
        turn: TaskId,
        /// Which attempt.
        fence: Fence,
        /// Whether it does.
        open: bool,
    },
    /// A running turn took these messages.
    Taken {
        /// Which turn.
        turn: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The messages.
        messages: Vec<MessageId>,
    },
    /// These messages were meant for a turn that did not take them: they wait, in their places.
    Returned {
        /// Which turn.
        turn: TaskId,
        /// The messages.
        messages: Vec<MessageId>,
    },
    /// A turn did not succeed: its messages wait again, in their places.
    Retrying {
        /// Which turn.
        turn: TaskId,
        /// When they may be tried again.
        at: Timestamp,
        /// Each in a turn of its own, to find out which one it is.
        alone: bool,
        /// The turn was lost and may have done something already.
        redelivered: bool,
        /// The turn timed out: other messages come first.
        yields: bool,
    },
    /// An attempt of this turn failed and said that no other attempt helps.
    GaveUp {
        /// Which turn.
        turn: TaskId,
    },
    /// A message came to its one end.
    Ended {
        /// Which one.
        message: MessageId,
        /// How.
        end: MessageEnd,
    },
    /// A turn has ended. Its messages have ended too, or wait again.
    TurnOver {
        /// Which turn.
        turn: TaskId,
    },
    /// How this session's messages are queued was changed.
    Configured {
        /// What holds now.
        queue: QueueOverrides,
    },
    /// A waiting message has another place in line.
    Moved {
        /// Which one.
        message: MessageId,
        /// Before which one; none: to the end.
        before: Option<MessageId>,
    },
    /// A waiting message is sent next.
    Hastened {
        /// Which one.
        message: MessageId,
    },
    /// The next turn starts a fresh conversation.
    Renewed,
    /// Dropped messages go unreported, because the messages around them were cancelled.
    SummaryDropped,
    /// A directive with an id of its sender's own was answered, and is not obeyed again.
    Answered {
        /// Its id.
        message: MessageId,
        /// The sender's own id of it.
        message_id: Arc<str>,
        /// Where it came from.
        place: Place,
        /// What was answered.
        reply: Arc<str>,
    },
    /// A parked message is no longer kept.
    TakenUp {
        /// Which one.
        message: MessageId,
        /// The new message with its text; none: it was thrown away.
        again: Option<MessageId>,
    },
    /// A waiting message is for the running turn instead.
    Promoted {
        /// Which one.
        message: MessageId,
        /// Which turn.
        turn: TaskId,
    },
}

/// Where an accepted message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// Into the line of its session.
    Line,
    /// To a running turn.
    Steer {
        /// Which one.
        turn: TaskId,
    },
    /// Both: into the line, and a copy to a running turn.
    Both {
        /// Which one.
        turn: TaskId,
    },
}

/// The answer to the sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageReply {
    /// The message.
    pub message: MessageId,
    /// What has become of it.
    pub outcome: SendOutcome,
    /// The turn that it started, or was put into, or interrupted.
    pub turn: Option<TaskId>,
    /// Its place in the session's line, counted from one, while it waits.
    pub position: Option<u32>,
    /// Whether the sender should see typing, because an answer follows.
    pub typing: bool,
    /// What a directive answers.
    pub reply: Option<String>,
}

/// What became of a message when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOutcome {
    /// It became a turn, which runs.
    Started,
    /// It waits for its session. Or it became a turn that waits for its slots or a worker.
    Queued,
    /// It goes into the running turn.
    Steered,
    /// It goes into the running turn and waits, too.
    SteeredAndQueued,
    /// The work of its session was cancelled, and it is next.
    Interrupted,
    /// It was dropped.
    Dropped(Dropped),
    /// It is the same as this one.
    Duplicate(MessageId),
    /// It was a directive, or one that makes no sense; the reply says which.
    Directive,
}

impl SendOutcome {
    /// The word for it, the same on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            SendOutcome::Started => "started",
            SendOutcome::Queued => "queued",
            SendOutcome::Steered => "steered",
            SendOutcome::SteeredAndQueued => "steered_and_queued",
            SendOutcome::Interrupted => "interrupted",
            SendOutcome::Dropped(_) => "dropped",
            SendOutcome::Duplicate(_) => "duplicate",
            SendOutcome::Directive => "directive",
        }
    }
}

/// A message as a turn gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMessage {
    /// Its id.
    pub id: MessageId,
    /// What is said.
    pub text: Arc<str>,
    /// Who wrote it.
    pub sender: Option<Arc<str>>,
    /// The name to show.
    pub sender_name: Option<Arc<str>>,
    /// The sender's own id of it.
    pub message_id: Option<Arc<str>>,
    /// It was in a turn that was lost, or in an attempt whose worker fell silent: it may have had effects already.
    pub redelivered: bool,
    /// JSON of the sender's.
    pub metadata: Option<Arc<str>>,
    /// A JSON array of the sender's.
    pub attachments: Option<Arc<str>>,
}

impl From<&Message> for TurnMessage {
    fn from(message: &Message) -> TurnMessage {
        let from = message.from.as_deref().cloned().unwrap_or_default();
        TurnMessage {
            id: message.id,
            text: Arc::clone(&message.text),
            sender: from.id,
            sender_name: from.name,
            message_id: message.message_id().cloned(),
            redelivered: message.redelivered,
            metadata: message.metadata().cloned(),
            attachments: message.attachments().cloned(),
        }
    }
}

/// Why everything in a session is cancelled at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// A newer message interrupted it.
    Interrupted,
    /// A person or program said stop.
    Stopped,
}

impl Sweep {
    pub(crate) fn reason(self) -> CancelReason {
        match self {
            Sweep::Interrupted => CancelReason::Interrupted,
            Sweep::Stopped => CancelReason::Caller,
        }
    }
}
