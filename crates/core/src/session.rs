//! Sessions: their messages, their turns, what is remembered of both.

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use slab::Slab;

use crate::event::End;
use crate::id::{Fence, TaskId};
use crate::index::Index;
use crate::message::{Address, Agent, Message, MessageEnd, MessageId, Place};
use crate::modes::{MessageSettings, QueueOverrides};
use crate::name::LaneName;
use crate::receipts::Receipts;
use crate::seldom::{Ordinary, Seldom};
use crate::time::{Millis, Timestamp};
use crate::whereabouts::Whereabouts;

/// For how long a delivered message with an id of the sender's own is remembered.
pub const DEDUPE_WINDOW: Millis = Millis::from_secs(300);
/// Of how many delivered messages a session remembers the senders' ids; the oldest go first.
pub(crate) const SEEN_MAX: usize = 1000;
/// To how many different addresses a session remembers what was dropped; beyond that lines are lost.
pub(crate) const OVERFLOWS_MAX: usize = 64;

/// How many agents are looked through for one to share.
const AGENTS_SHARED: usize = 32;

/// A conversation with messages, turns or settings of its own. One with nothing of these is forgotten.
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
    pub(crate) odd: Seldom<Odd>,
    /// When its next turn may begin, as the timers know, or `NEVER`.
    #[serde(skip, default = "never")]
    pub(crate) due: Timestamp,
}

/// What most sessions do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Odd {
    pub(crate) queue: QueueOverrides,
    /// What was dropped and nobody was told of yet, the oldest first.
    pub(crate) overflows: Vec<Dropping>,
    /// The ids of delivered messages, the oldest first.
    pub(crate) seen: VecDeque<Seen>,
    /// Nothing is tried again before.
    pub(crate) retry_at: Timestamp,
    /// The next turn starts a fresh conversation.
    pub(crate) fresh: bool,
}

impl Ordinary for Odd {
    fn ordinary() -> &'static Odd {
        static ORDINARY: LazyLock<Odd> = LazyLock::new(Odd::default);
        &ORDINARY
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
}

/// A live task of the session that answers messages, or takes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) task: TaskId,
    /// Asked for directly: it has a payload of its own.
    pub(crate) is_direct: bool,
    pub(crate) messages: Vec<Message>,
    pub(crate) more: Seldom<More>,
}

/// What most turns do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct More {
    pub(crate) summary: Option<Dropping>,
    pub(crate) fresh: bool,
    /// The attempt that takes steering.
    pub(crate) steering: Option<Fence>,
    /// Accepted for this turn and not taken.
    pub(crate) pending: Vec<Steered>,
    /// Taken.
    pub(crate) steered: Vec<Steered>,
    /// How the task ended, until that is dealt with in the same step.
    #[serde(skip)]
    pub(crate) end: Option<(End, Option<Fence>)>,
}

impl Ordinary for More {
    fn ordinary() -> &'static More {
        static ORDINARY: LazyLock<More> = LazyLock::new(More::default);
        &ORDINARY
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

/// A message that was delivered, by its sender's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) message_id: Arc<str>,
    pub(crate) place: Place,
    pub(crate) message: MessageId,
    pub(crate) until: Timestamp,
}

impl Turn {
    pub(crate) fn new(task: TaskId, is_direct: bool) -> Turn {
        Turn { task, is_direct, messages: vec![], more: Seldom::default() }
    }

    /// Its messages that are nowhere else.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Message> {
        let steered = self.more.pending.iter().chain(&self.more.steered).filter(|steered| !steered.is_copy);
        self.messages.iter().chain(steered.map(|steered| &steered.message))
    }
}

impl Session {
    fn new(lane: LaneName, birth: u64) -> Session {
        Session {
            lane,
            birth,
            accepted: 0,
            waiting: VecDeque::new(),
            turns: vec![],
            odd: Seldom::default(),
            due: Timestamp::NEVER,
        }
    }

    /// Whether there is nothing to remember of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.turns.is_empty()
            && self.odd.overflows.is_empty()
            && self.odd.seen.is_empty()
            && self.odd.queue.is_empty()
            && !self.odd.fresh
    }

    pub(crate) fn turn(&self, task: TaskId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.task == task)
    }

    pub(crate) fn turn_mut(&mut self, task: TaskId) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.task == task)
    }

    pub(crate) fn place_of(&self, message: MessageId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.id == message)
    }

    /// All messages that have not ended.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().chain(self.turns.iter().flat_map(Turn::own))
    }

    /// The waiting messages that the cap is about: those that were in a turn already are not dropped for newer
    /// ones.
    pub(crate) fn capped(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().filter(|message| message.tries == 0)
    }

    /// Whether more than so many wait that the cap is about.
    pub(crate) fn is_above(&self, most: usize) -> bool {
        self.waiting.len() > most && self.capped().count() > most
    }

    pub(crate) fn oldest_capped(&self) -> Option<MessageId> {
        self.capped().next().map(|message| message.id)
    }

    /// Makes room for one more waiting message and little else: there are many sessions with few messages each.
    pub(crate) fn make_room(&mut self) {
        if self.waiting.len() == self.waiting.capacity() {
            self.waiting.reserve_exact(1 + self.waiting.len() / 4);
        }
    }

    /// Gives back what is not needed any more.
    pub(crate) fn tidy(&mut self) {
        self.odd.tidy();
        self.turns.iter_mut().for_each(|turn| turn.more.tidy());
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
    }

    /// Puts a message where its number says: before the first later one that nobody has moved.
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

/// All sessions there is something to remember of.
pub(crate) struct Sessions {
    table: Slab<Session>,
    by_lane: Index,
    by_message: Whereabouts,
    /// When next turns may begin: (when, birth).
    starts: BTreeMap<(Timestamp, u64), u32>,
    /// When the oldest remembered delivery of a session is forgotten: (when, birth).
    forgets: BTreeMap<(Timestamp, u64), u32>,
    /// Sessions in which something may have to follow, to be looked at before the step ends.
    pub(crate) stirred: Vec<u32>,
    pub(crate) settings: MessageSettings,
    pub(crate) births: u64,
    pub(crate) receipts: Receipts,
    /// The texts of all messages that have not ended, in bytes.
    pub(crate) text_bytes: u64,
    /// Agents that messages named lately, so that each is in memory once for all sessions.
    agents: VecDeque<Arc<Agent>>,
    /// And channels.
    channels: VecDeque<Arc<str>>,
}

impl std::ops::Index<u32> for Sessions {
    type Output = Session;

    fn index(&self, slot: u32) -> &Session {
        &self.table[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Sessions {
    fn index_mut(&mut self, slot: u32) -> &mut Session {
        &mut self.table[slot as usize]
    }
}

impl Sessions {
    pub(crate) fn new(seed: u64) -> Sessions {
        Sessions {
            table: Slab::new(),
            by_lane: Index::new(seed),
            by_message: Whereabouts::new(seed),
            starts: BTreeMap::new(),
            forgets: BTreeMap::new(),
            stirred: vec![],
            settings: MessageSettings::default(),
            births: 0,
            receipts: Receipts::default(),
            text_bytes: 0,
            agents: VecDeque::new(),
            channels: VecDeque::new(),
        }
    }

    /// Cheap to ask: whoever uses no sessions pays nothing for them.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn find(&self, lane: &LaneName) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.by_lane.find(self.by_lane.hash(lane), |slot| self[slot].lane == *lane)
    }

    /// The session of a message that has not ended.
    pub(crate) fn session_with(&self, message: MessageId) -> Option<u32> {
        let has_it = |slot: u32| self[slot].messages().any(|other| other.id == message);
        self.by_message.find(message, has_it)
    }

    /// Has an agent that many sessions share in memory once.
    pub(crate) fn share_agent(&mut self, message: &mut Message) {
        let agent = &message.address.agent;
        let known = self.agents.iter().find(|known| *known == agent).cloned();
        let known = known.unwrap_or_else(|| {
            if self.agents.len() == AGENTS_SHARED {
                self.agents.pop_front();
            }
            self.agents.push_back(Arc::clone(agent));
            Arc::clone(agent)
        });
        let mut place = message.address.place.clone();
        if let Some(channel) = &mut place.channel {
            let known = self.channels.iter().find(|known| *known == channel).cloned();
            *channel = known.unwrap_or_else(|| {
                if self.channels.len() == AGENTS_SHARED {
                    self.channels.pop_front();
                }
                self.channels.push_back(Arc::clone(channel));
                Arc::clone(channel)
            });
        }
        message.address = Arc::new(Address { agent: known, place, ..(*message.address).clone() });
    }

    /// A message is in a session now.
    pub(crate) fn note_message(&mut self, message: &Message, slot: u32) {
        self.by_message.insert(message.id, slot);
        self.text_bytes += message.text.len() as u64;
    }

    /// A message has ended.
    pub(crate) fn forget_message(&mut self, message: &Message, slot: u32) {
        self.by_message.remove(message.id, slot);
        self.text_bytes -= message.text.len() as u64;
    }

    /// For the checks.
    pub(crate) fn message_count(&self) -> usize {
        self.by_message.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Session> {
        self.table.get(slot as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Session)> {
        self.table.iter().map(|(slot, session)| (slot as u32, session))
    }

    /// The session of a lane, made if there is none.
    pub(crate) fn enter(&mut self, lane: &LaneName) -> u32 {
        if let Some(slot) = self.find(lane) {
            return slot;
        }
        self.births += 1;
        self.insert(Session::new(lane.clone(), self.births))
    }

    fn insert(&mut self, session: Session) -> u32 {
        let hash = self.by_lane.hash(&session.lane);
        let slot = self.table.insert(session) as u32;
        let table = &self.table;
        self.by_lane.insert(hash, slot, |hasher, slot| hasher.hash_one(&table[slot as usize].lane));
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        self.set_due(slot, Timestamp::NEVER);
        let session = self.table.remove(slot as usize);
        self.by_lane.remove(self.by_lane.hash(&session.lane), slot);
        if self.table.is_empty() {
            self.table = Slab::new();
            self.by_lane.shrink();
        }
    }

    /// Takes up a session that was saved.
    pub(crate) fn restore(&mut self, mut session: Session) -> u32 {
        share_all(&mut session);
        let forget_at = session.odd.seen.front().map(|seen| (seen.until, session.birth));
        let slot = self.insert(session);
        for message in self.table[slot as usize].messages() {
            self.by_message.insert(message.id, slot);
            self.text_bytes += message.text.len() as u64;
        }
        if let Some(key) = forget_at {
            self.forgets.insert(key, slot);
        }
        slot
    }

    /// Sets when the next turn of a session may begin.
    pub(crate) fn set_due(&mut self, slot: u32, due: Timestamp) {
        let session = &mut self.table[slot as usize];
        let old = std::mem::replace(&mut session.due, due);
        let birth = session.birth;
        if old != Timestamp::NEVER && old != due {
            self.starts.remove(&(old, birth));
        }
        if due != Timestamp::NEVER && old != due {
            self.starts.insert((due, birth), slot);
        }
    }

    /// The first session whose next turn may begin.
    pub(crate) fn due_start(&self, now: Timestamp) -> Option<u32> {
        self.starts.first_key_value().filter(|((at, _), _)| *at <= now).map(|(_, slot)| *slot)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let start = self.starts.first_key_value().map(|((at, _), _)| *at);
        let forget = self.forgets.first_key_value().map(|((at, _), _)| *at);
        [start, forget].into_iter().flatten().min()
    }

    /// Remembers that a message was delivered.
    pub(crate) fn remember(&mut self, slot: u32, seen: Seen) {
        let session = &mut self.table[slot as usize];
        let (birth, until) = (session.birth, seen.until);
        if session.odd.seen.len() == SEEN_MAX
            && let Some(oldest) = session.odd.seen.pop_front()
        {
            self.forgets.remove(&(oldest.until, birth));
        }
        session.odd.seen.push_back(seen);
        let first = session.odd.seen.front().map_or(until, |seen| seen.until);
        self.forgets.insert((first, birth), slot);
    }

    /// Forgets deliveries of long ago, and sessions of which nothing else is left.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while let Some((&(at, birth), &slot)) = self.forgets.first_key_value()
            && at <= now
        {
            self.forgets.remove(&(at, birth));
            let session = &mut self.table[slot as usize];
            while session.odd.seen.front().is_some_and(|seen| seen.until <= now) {
                session.odd.seen.pop_front();
            }
            session.odd.tidy();
            if let Some(next) = session.odd.seen.front() {
                self.forgets.insert((next.until, birth), slot);
            } else if self[slot].is_idle() {
                self.remove(slot);
            }
        }
    }

    /// What is remembered of how a message ended.
    pub(crate) fn end_of(&self, message: MessageId) -> Option<(&MessageEnd, Timestamp)> {
        self.receipts.get(message)
    }

    /// For the checks: the sessions that have a timer, with it.
    pub(crate) fn start_times(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        self.starts.iter().map(|((at, _), slot)| (*at, *slot))
    }

    pub(crate) fn forget_times(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        self.forgets.iter().map(|((at, _), slot)| (*at, *slot))
    }
}

/// Has equal addresses of a session in memory once.
fn share_all(session: &mut Session) {
    let mut addresses: Vec<Arc<Address>> = vec![];
    let turns = session.turns.iter_mut().flat_map(|turn| {
        let more = std::mem::take(&mut turn.more);
        let is_plain = more.pending.is_empty() && more.steered.is_empty();
        turn.more = more;
        let steered = (!is_plain).then(|| &mut *turn.more);
        let steered = steered.into_iter().flat_map(|more| more.pending.iter_mut().chain(&mut more.steered));
        turn.messages.iter_mut().chain(steered.map(|steered| &mut steered.message))
    });
    for message in session.waiting.iter_mut().chain(turns) {
        message.address = shared(&mut addresses, &message.address);
    }
    session.waiting.shrink_to_fit();
}

fn shared<T: PartialEq>(known: &mut Vec<Arc<T>>, one: &Arc<T>) -> Arc<T> {
    if let Some(same) = known.iter().find(|known| ***known == **one) {
        return Arc::clone(same);
    }
    known.push(Arc::clone(one));
    Arc::clone(one)
}
