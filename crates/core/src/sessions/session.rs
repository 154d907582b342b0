//! Sessions: their messages, their turns, what is remembered of both.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::api::event::End;
use crate::api::ids::{Fence, TaskId};
use crate::api::name::LaneName;
use crate::api::time::{Millis, Timestamp};
use crate::sessions::message::{Address, Message, MessageId, Place};
use crate::sessions::queue_mode::QueueOverrides;
use crate::state::lazy_box::{LazyBox, SharedDefault};

/// For how long a delivered message or an answered directive with an id of the sender's own is remembered.
pub const DEDUPE_WINDOW: Millis = Millis::from_secs(300);
/// Of how many delivered messages and answered directives a session remembers the senders' ids; the oldest go first.
pub(super) const SEEN_MAX: usize = 1000;
/// To how many different addresses a session remembers what was dropped; beyond that lines are lost.
pub(crate) const OVERFLOWS_MAX: usize = 64;

/// A session with messages, turns or settings of its own. One with nothing of these is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) lane: LaneName,
    /// Which session, in the order in which they came to be: the order of what is due at the same time.
    pub(crate) birth: u64,
    /// How many messages were accepted.
    pub(crate) accepted: u64,
    /// In the order in which they will be answered.
    pub(crate) waiting: VecDeque<Message>,
    /// Live tasks that answer messages or take steering, in the order in which they began.
    pub(crate) turns: Vec<Turn>,
    pub(crate) extras: LazyBox<SessionExtras>,
    /// When its next turn may begin, as the timers know, or `NEVER`.
    #[serde(skip, default = "never")]
    pub(crate) due: Timestamp,
}

/// What most sessions do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionExtras {
    pub(crate) queue: QueueOverrides,
    /// Dropped messages that no turn has reported yet, the oldest first.
    pub(crate) overflows: Vec<Dropping>,
    /// The ids of delivered messages and answered directives, the oldest first.
    pub(crate) seen: VecDeque<Seen>,
    /// The next turn starts a fresh conversation.
    pub(crate) fresh: bool,
}

impl SharedDefault for SessionExtras {
    fn shared_default() -> &'static SessionExtras {
        static DEFAULT: LazyLock<SessionExtras> = LazyLock::new(SessionExtras::default);
        &DEFAULT
    }
}

fn never() -> Timestamp {
    Timestamp::NEVER
}

/// What was dropped of the messages to one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dropping {
    pub(crate) address: Arc<Address>,
    pub(crate) dropped: u64,
    pub(crate) lines: VecDeque<Arc<str>>,
    /// The newest of them, after which the turn that tells of them is named.
    pub(crate) last: MessageId,
    pub(crate) tries: u8,
    /// After a failed turn: when they may be reported again.
    pub(crate) retry_at: Timestamp,
}

/// A live task of the session that answers messages, or takes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) task: TaskId,
    /// Asked for directly: it has a payload of its own.
    pub(super) is_direct: bool,
    pub(crate) messages: Vec<Message>,
    pub(crate) extras: LazyBox<TurnExtras>,
}

/// What most turns do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnExtras {
    pub(crate) summary: Option<Dropping>,
    pub(crate) fresh: bool,
    /// The attempt that takes steering.
    pub(crate) steering: Option<Fence>,
    /// An attempt said that no other attempt helps.
    pub(crate) gave_up: bool,
    /// Accepted for this turn and not taken.
    pub(crate) pending: Vec<Steered>,
    /// Taken.
    pub(crate) steered: Vec<Steered>,
    /// How the task ended, until that is dealt with in the same step.
    #[serde(skip)]
    pub(crate) end: Option<(End, Option<Fence>)>,
}

impl SharedDefault for TurnExtras {
    fn shared_default() -> &'static TurnExtras {
        static DEFAULT: LazyLock<TurnExtras> = LazyLock::new(TurnExtras::default);
        &DEFAULT
    }
}

/// A message on its way into a running turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Steered {
    pub(crate) message: Message,
    /// The message itself waits in line.
    pub(crate) is_copy: bool,
    /// The attempt that took it.
    pub(crate) fence: Option<Fence>,
}

/// A message that was delivered, or a directive that was answered, by its sender's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) message_id: Arc<str>,
    pub(crate) place: Place,
    pub(crate) message: MessageId,
    pub(crate) until: Timestamp,
    /// The answer to a directive, which a repetition gets again. Older snapshots have none.
    #[serde(default)]
    pub(crate) reply: Option<Arc<str>>,
}

impl Turn {
    pub(crate) fn new(task: TaskId, is_direct: bool) -> Turn {
        Turn { task, is_direct, messages: vec![], extras: LazyBox::default() }
    }

    /// Its messages that are nowhere else.
    pub(super) fn own(&self) -> impl Iterator<Item = &Message> {
        let steered =
            self.extras.pending.iter().chain(&self.extras.steered).filter(|steered| !steered.is_copy);
        self.messages.iter().chain(steered.map(|steered| &steered.message))
    }
}

impl Session {
    pub(crate) fn new(lane: LaneName, birth: u64) -> Session {
        Session {
            lane,
            birth,
            accepted: 0,
            waiting: VecDeque::new(),
            turns: vec![],
            extras: LazyBox::default(),
            due: Timestamp::NEVER,
        }
    }

    /// Whether there is nothing to remember of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.turns.is_empty()
            && self.extras.overflows.is_empty()
            && self.extras.seen.is_empty()
            && self.extras.queue.is_empty()
            && !self.extras.fresh
    }

    pub(crate) fn turn(&self, task: TaskId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.task == task)
    }

    /// The turn that a message is in, if it does not wait in line.
    pub(crate) fn turn_of(&self, message: MessageId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.own().any(|own| own.id == message))
    }

    pub(crate) fn turn_mut(&mut self, task: TaskId) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.task == task)
    }

    /// The waiting message that was accepted last, wherever it stands in line.
    pub(super) fn newest(&self) -> Option<&Message> {
        self.waiting.iter().max_by_key(|message| message.number)
    }

    /// The waiting messages that do not back off, in the order in which they will be answered.
    pub(super) fn ready(&self, now: Timestamp) -> impl Iterator<Item = &Message> {
        let ready = move |yields: bool| {
            let fits = move |message: &&Message| message.retry_at <= now && message.yields == yields;
            self.waiting.iter().filter(fits)
        };
        ready(false).chain(ready(true))
    }

    /// The oldest summary of dropped messages that does not back off.
    pub(super) fn ready_summary(&self, now: Timestamp) -> Option<&Dropping> {
        self.extras.overflows.iter().find(|dropping| dropping.retry_at <= now)
    }

    /// Whether a turn has something to answer now.
    pub(super) fn has_ready(&self, now: Timestamp) -> bool {
        self.ready(now).next().is_some() || self.ready_summary(now).is_some()
    }

    /// When the next message or summary that backs off may be tried again.
    pub(super) fn next_retry(&self, now: Timestamp) -> Option<Timestamp> {
        let messages = self.waiting.iter().map(|message| message.retry_at);
        let retries = messages.chain(self.extras.overflows.iter().map(|dropping| dropping.retry_at));
        retries.filter(|at| *at > now).min()
    }

    pub(crate) fn place_of(&self, message: MessageId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.id == message)
    }

    /// All messages that have not ended.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().chain(self.turns.iter().flat_map(Turn::own))
    }

    /// The waiting messages that count for the cap. Messages that were in a turn already are not dropped for newer ones.
    pub(super) fn capped(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().filter(|message| message.tries == 0)
    }

    /// Whether more than `most` waiting messages count for the cap.
    pub(super) fn is_above(&self, most: usize) -> bool {
        self.waiting.len() > most && self.capped().count() > most
    }

    pub(super) fn oldest_capped(&self) -> Option<MessageId> {
        self.capped().next().map(|message| message.id)
    }

    /// Makes room for one more waiting message and little else: there are many sessions with few messages each.
    pub(crate) fn make_room(&mut self) {
        if self.waiting.len() == self.waiting.capacity() {
            self.waiting.reserve_exact(1 + self.waiting.len() / 4);
        }
    }

    /// Frees memory that is no longer needed.
    pub(crate) fn tidy(&mut self) {
        self.extras.tidy();
        self.turns.iter_mut().for_each(|turn| turn.extras.tidy());
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
    }

    /// Puts a message back by its number: before the first later one that was not moved.
    pub(crate) fn put_back(&mut self, message: Message) {
        let is_later = |waiting: &Message| !waiting.moved && waiting.number > message.number;
        let later = self.waiting.iter().position(is_later);
        self.make_room();
        self.waiting.insert(later.unwrap_or(self.waiting.len()), message);
    }

    /// Shares the address that messages before this one had too, so that it is in memory once.
    pub(crate) fn share(&self, message: &mut Message) {
        // The newest first: it is most like this one.
        let mut known = self.waiting.iter().rev().chain(self.turns.iter().flat_map(Turn::own));
        if let Some(known) = known.find(|known| known.address == message.address) {
            message.address = Arc::clone(&known.address);
        }
    }
}
