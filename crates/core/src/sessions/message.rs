//! A message to a session: what its sender says, what is kept of it, and how it ends.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::CancelReason;
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::Source;
use crate::api::name::{LaneName, Name, NameError};
use crate::api::retry::mix;
use crate::api::time::Timestamp;
use crate::sessions::queue_mode::QueueOverrides;

/// The longest text of a message, its metadata and attachments counted in, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// The texts of all messages that have not ended, with their metadata and attachments, together, in bytes: more are refused until some have.
pub const TEXTS_BYTES_MAX: u64 = 1 << 30;
/// The longest of the short texts around a message (a channel, a sender, an id), in bytes.
pub const LABEL_BYTES_MAX: usize = 512;
/// The most permissions that a message may carry.
pub const PERMISSIONS_MAX: usize = 64;
/// The most lanes that an agent may name in addition to its own and the session's.
pub const AGENT_LANES_MAX: usize = 32;

/// Identifies a message for ever. The caller chooses it (a UUIDv7, say).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u128);

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {:x}", self.0)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TaskId(self.0).fmt(f)
    }
}

impl TaskId {
    /// The id of the turn number `number` (counted from one) that answers `first`, the first of its messages. A
    /// UUIDv7 gives a UUIDv7 of the same millisecond.
    pub fn of_turn(first: MessageId, number: u32) -> TaskId {
        const LOW: u128 = (1 << 62) - 1;
        TaskId(first.0 & !LOW | u128::from(mix((first.0 & LOW) as u64, number)) & LOW)
    }
}

/// Where a message came from and where its answer goes. All four are plain texts; a thread's id too.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The channel, as `discord`.
    pub channel: Option<Arc<str>>,
    /// The recipient in it.
    pub to: Option<Arc<str>>,
    /// The account that speaks there.
    pub account: Option<Arc<str>>,
    /// The thread.
    pub thread: Option<Arc<str>>,
}

impl Place {
    /// Whether no part is set: such a message goes where the messages around it go.
    pub fn is_empty(&self) -> bool {
        *self == Place::default()
    }
}

/// Who answers, and with which lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name; its lane is `agent:<name>`, the home lane of its turns.
    pub name: Name,
    /// The kind of its turns: decides who can run them.
    pub kind: Name,
    /// Further lanes that its turns need. None named: `main`; `cron` when a schedule asks, `subagent` when an
    /// agent does. Its own, which they need anyway: no further one.
    pub lanes: Vec<LaneName>,
}

impl Agent {
    /// An agent whose turns are of the kind of its name.
    pub fn new(name: Name) -> Agent {
        Agent { kind: name.clone(), name, lanes: vec![] }
    }

    /// The agent's own lane, the home lane of its turns.
    pub fn lane(&self) -> Result<LaneName, NameError> {
        LaneName::agent(self.name.as_str())
    }

    /// The lanes that a turn needs besides the agent's own and the session's.
    pub fn further_lanes(&self, source: Source) -> Result<Vec<LaneName>, NameError> {
        if self.lanes.is_empty() {
            let usual = LaneName::new(match source {
                Source::Schedule => "cron",
                Source::Agent => "subagent",
                Source::User | Source::Background => "main",
            });
            return Ok(vec![usual?]);
        }
        let own = self.lane()?;
        Ok(self.lanes.iter().filter(|lane| **lane != own).cloned().collect())
    }

    /// The lanes of a turn: the agent's own, those that it needs, and that of its session, if it has one.
    pub fn turn_lanes(&self, session: Option<&LaneName>, source: Source) -> Result<Vec<LaneName>, NameError> {
        let mut lanes = vec![self.lane()?];
        lanes.extend(self.further_lanes(source)?);
        lanes.extend(session.cloned());
        Ok(lanes)
    }
}

/// Which turn a message means to steer, and what becomes of it if that is not the one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    /// The turn.
    pub turn: TaskId,
    /// What follows if it is over.
    pub otherwise: Otherwise,
}

/// What becomes of a message that comes too late for the turn that it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Otherwise {
    /// It becomes a turn of its own.
    #[default]
    Followup,
    /// It is refused.
    Reject,
    /// It is dropped.
    Drop,
}

/// A message as its sender gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// An id that was never used before.
    pub id: MessageId,
    /// The session's key; its lane is `session:<key>`.
    pub session: Arc<str>,
    /// Who should answer.
    pub agent: Agent,
    /// What is said. May be empty if there are attachments. With the metadata and the attachments at most [`TEXT_BYTES_MAX`]
    /// bytes.
    pub text: Arc<str>,
    /// Where it came from and where the answer goes.
    pub place: Place,
    /// Who wrote it.
    pub sender: Option<Arc<str>>,
    /// The sender's name to show.
    pub sender_name: Option<Arc<str>>,
    /// What the sender may do: only messages with the same permissions are answered together.
    pub permissions: Vec<Name>,
    /// The sender's own id of the message: the same one to the same place is taken once.
    pub message_id: Option<Arc<str>>,
    /// What holds for this message alone.
    pub queue: QueueOverrides,
    /// It is worth nothing later: dropped when the session is busy.
    pub heartbeat: bool,
    /// The sender may change settings: directives in the text count.
    pub may_configure: bool,
    /// Which turn it means to steer.
    pub steer: Option<Steer>,
    /// Who asks; gives the priority of the turn.
    pub source: Source,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// A further lane that a turn needs if this message begins it, such as the lane of the caller's token. It does not
    /// affect which other messages the turn answers.
    #[serde(default)]
    pub asker: Option<LaneName>,
    /// JSON of the sender's, which goes to the agent as it is.
    #[serde(default)]
    pub metadata: Option<Arc<str>>,
    /// A JSON array of the sender's, which goes to the agent as it is.
    #[serde(default)]
    pub attachments: Option<Arc<str>>,
}

impl Incoming {
    /// A plain message.
    pub fn new(
        id: MessageId,
        session: impl Into<Arc<str>>,
        agent: Agent,
        text: impl Into<Arc<str>>,
    ) -> Incoming {
        Incoming {
            id,
            session: session.into(),
            agent,
            text: text.into(),
            place: Place::default(),
            sender: None,
            sender_name: None,
            permissions: vec![],
            message_id: None,
            queue: QueueOverrides::default(),
            heartbeat: false,
            may_configure: false,
            steer: None,
            source: Source::default(),
            priority: None,
            asker: None,
            metadata: None,
            attachments: None,
        }
    }

    /// The text with the metadata and the attachments, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + bytes_of(&self.metadata) + bytes_of(&self.attachments)
    }
}

fn bytes_of(text: &Option<Arc<str>>) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}

/// What messages that are answered together share: who answers, where to, and what the senders may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Who answers.
    pub agent: Arc<Agent>,
    /// Where to.
    pub place: Place,
    /// What the senders may do, in the order of their names.
    pub permissions: Vec<Name>,
    /// Who asks.
    pub source: Source,
    /// The priority of the turn, if one was asked for.
    pub priority: Option<u8>,
}

impl Address {
    /// Whether a message to `other` can be answered in a turn to this one.
    pub(super) fn takes(&self, other: &Address) -> bool {
        let one_place = self.place == other.place || self.place.is_empty() || other.place.is_empty();
        one_place && self.is_kin(other)
    }

    /// Whether a message to `other` can be answered in a turn to this one, their places aside.
    pub(super) fn is_kin(&self, other: &Address) -> bool {
        let key = |this: &Address| (this.source, this.priority);
        key(self) == key(other) && self.permissions == other.permissions && self.agent == other.agent
    }
}

/// A message that was accepted and has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// What is said.
    pub text: Arc<str>,
    /// Who answers, where to.
    pub address: Arc<Address>,
    /// Who wrote it, if that is known.
    pub from: Option<Box<Sender>>,
    /// When it was accepted.
    pub at: Timestamp,
    /// Its number in the session, counted from one.
    pub number: u64,
    /// What most messages do not have.
    pub extras: Option<Box<Extras>>,
    /// How many failed turns it was in.
    pub tries: u8,
    /// How many turns it was the first message of.
    pub turns: u8,
    /// It gets a turn of its own, to find out whether it causes the failures.
    pub alone: bool,
    /// After a failed turn: when it may be tried again. Meanwhile the other messages go on.
    pub retry_at: Timestamp,
    /// Its turn timed out, so it is tried again only after all other waiting messages.
    pub yields: bool,
    /// It was in a turn that was lost, which may have done something already.
    pub redelivered: bool,
    /// A caller moved it from the place of its acceptance.
    pub moved: bool,
    /// A caller asked to send it without waiting for quiet.
    pub hastened: bool,
}

/// Who wrote a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The sender's id.
    pub id: Option<Arc<str>>,
    /// The name to show.
    pub name: Option<Arc<str>>,
}

/// What most messages do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// The sender's own id of it.
    pub message_id: Option<Arc<str>>,
    /// What holds for it alone.
    pub queue: QueueOverrides,
    /// A further lane that a turn needs which this message begins.
    #[serde(default)]
    pub asker: Option<LaneName>,
    /// JSON of the sender's.
    #[serde(default)]
    pub metadata: Option<Arc<str>>,
    /// A JSON array of the sender's.
    #[serde(default)]
    pub attachments: Option<Arc<str>>,
}

impl Message {
    /// The text with the metadata and the attachments, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let extras = self.extras.as_deref();
        let more = extras.map_or(0, |extras| bytes_of(&extras.metadata) + bytes_of(&extras.attachments));
        (self.text.len() + more) as u64
    }

    /// JSON of the sender's.
    pub fn metadata(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.metadata.as_ref()
    }

    /// A JSON array of the sender's.
    pub fn attachments(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.attachments.as_ref()
    }

    /// A further lane that a turn needs which this message begins.
    pub fn asker(&self) -> Option<&LaneName> {
        self.extras.as_ref()?.asker.as_ref()
    }

    /// What holds for this message alone.
    pub fn queue(&self) -> QueueOverrides {
        self.extras.as_ref().map(|extras| extras.queue).unwrap_or_default()
    }

    /// The sender's name to show.
    pub fn sender_name(&self) -> Option<&str> {
        self.from.as_ref()?.name.as_deref()
    }

    /// The sender's own id of it.
    pub fn message_id(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.message_id.as_ref()
    }
}

/// How a message ended. An end never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageEnd {
    /// A turn that answers it has completed.
    Delivered {
        /// Which turn.
        turn: TaskId,
    },
    /// A running turn took it, and has completed.
    Steered {
        /// Which turn.
        turn: TaskId,
    },
    /// A rule dropped it.
    Dropped {
        /// Which rule.
        rule: Dropped,
    },
    /// It was cancelled.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// It was parked, because its turns failed too often, or said that no other attempt helps.
    #[serde(alias = "SetAside")]
    Parked {
        /// What went wrong last.
        error: Arc<str>,
        /// How many turns failed.
        tries: u8,
    },
}

/// The rule by which a message was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dropped {
    /// Too many waited, and it was the oldest.
    Old,
    /// Too many waited, and it was the newcomer.
    New,
    /// Too many waited, and a line of it is in the summary.
    Summarize,
    /// A newer one came, and only the newest waits.
    Latest,
    /// A heartbeat to a busy session.
    Heartbeat,
    /// The turn that it was meant for was over.
    Late,
}

impl Dropped {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Dropped::Old => "old",
            Dropped::New => "new",
            Dropped::Summarize => "summarize",
            Dropped::Latest => "latest",
            Dropped::Heartbeat => "heartbeat",
            Dropped::Late => "late",
        }
    }
}

/// What has become of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It waits for its turn.
    Waiting {
        /// Which one in line, counted from one.
        position: u32,
    },
    /// It was accepted for a running turn, which has not taken it yet.
    Steering {
        /// Which turn.
        turn: TaskId,
    },
    /// A running turn took it.
    Steered {
        /// Which turn.
        turn: TaskId,
        /// Under which fence.
        fence: Fence,
    },
    /// It is in a turn that has been accepted and has not ended.
    InTurn {
        /// Which turn.
        turn: TaskId,
    },
    /// It has ended.
    Ended {
        /// How.
        end: MessageEnd,
        /// When.
        at: Timestamp,
    },
}

/// What makes no sense about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadMessage {
    /// The text is empty, and there are no attachments.
    Empty,
    /// The text is longer than [`TEXT_BYTES_MAX`].
    TooLong,
    /// A label is longer than [`LABEL_BYTES_MAX`]; holds which.
    Label(&'static str),
    /// More than [`PERMISSIONS_MAX`] permissions.
    Permissions,
    /// More than [`AGENT_LANES_MAX`] lanes of the agent.
    Lanes,
    /// A priority above 9.
    Priority,
    /// The session's key makes no lane name.
    Session(NameError),
    /// The agent's name makes no lane name.
    Agent(NameError),
    /// A value beyond what is allowed.
    Queue(crate::sessions::queue_mode::BeyondPolicy),
    /// The task names no session, so that no message can be meant for it.
    NoSession,
    /// The message to move before does not wait in the same session.
    Before,
    /// No running turn can take the message.
    NotSteerable,
    /// The message to send again has not ended: it waits, or is in a turn.
    NotParked,
}

impl fmt::Display for BadMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadMessage::Empty => write!(f, "a message has a text or attachments"),
            BadMessage::TooLong => {
                write!(
                    f,
                    "the text of a message, with its metadata and attachments, has at most {TEXT_BYTES_MAX} bytes"
                )
            }
            BadMessage::Label(field) => write!(f, "{field} has at most {LABEL_BYTES_MAX} bytes"),
            BadMessage::Permissions => write!(f, "a message has at most {PERMISSIONS_MAX} permissions"),
            BadMessage::Lanes => write!(f, "an agent names at most {AGENT_LANES_MAX} lanes"),
            BadMessage::Priority => write!(f, "a priority is a whole number from 0 to 9"),
            BadMessage::Session(error) => write!(f, "the session's key makes no lane: {error}"),
            BadMessage::Agent(error) => write!(f, "the agent's name makes no lane: {error}"),
            BadMessage::Queue(beyond) => beyond.fmt(f),
            BadMessage::NoSession => write!(f, "the task names no session"),
            BadMessage::Before => write!(f, "the message to move before waits in no such session"),
            BadMessage::NotSteerable => {
                write!(
                    f,
                    "no running turn takes this message: it must take steering, have room, and answer the same place"
                )
            }
            BadMessage::NotParked => write!(f, "the message is not parked: it waits or is in a turn"),
        }
    }
}
