//! The table of all sessions: how they are found, and what the clock has to look at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::api::name::LaneName;
use crate::api::time::Timestamp;
use crate::sessions::message::{Address, Agent, Message, MessageEnd, MessageId};
use crate::sessions::queue_mode::MessageSettings;
use crate::sessions::receipts::Receipts;
use crate::sessions::session::{SEEN_MAX, Seen, Session};
use crate::state::hash_index::HashIndex;
use crate::state::table::{Idx, Table};

pub(crate) type SessionIdx = Idx<Session>;

/// How many agents are looked through for one to share.
const AGENTS_SHARED: usize = 32;

/// All sessions there is something to remember of.
pub(crate) struct Sessions {
    table: Table<Session>,
    by_lane: HashIndex<Session>,
    by_message: HashIndex<Session>,
    /// When next turns may begin: (when, birth).
    starts: BTreeMap<(Timestamp, u64), SessionIdx>,
    /// When the oldest remembered delivery of a session is forgotten: (when, birth).
    forgets: BTreeMap<(Timestamp, u64), SessionIdx>,
    pub(crate) settings: MessageSettings,
    pub(super) births: u64,
    pub(crate) receipts: Receipts,
    /// The texts of all messages that have not ended, in bytes.
    pub(crate) text_bytes: u64,
    /// Agents that messages named lately, so that each is in memory once for all sessions.
    agents: VecDeque<Arc<Agent>>,
    /// And channels.
    channels: VecDeque<Arc<str>>,
}

impl std::ops::Index<SessionIdx> for Sessions {
    type Output = Session;

    fn index(&self, session: SessionIdx) -> &Session {
        &self.table[session]
    }
}

impl std::ops::IndexMut<SessionIdx> for Sessions {
    fn index_mut(&mut self, session: SessionIdx) -> &mut Session {
        &mut self.table[session]
    }
}

impl Sessions {
    pub(crate) fn new(seed: u64) -> Sessions {
        Sessions {
            table: Table::default(),
            by_lane: HashIndex::new(seed),
            by_message: HashIndex::new(seed),
            starts: BTreeMap::new(),
            forgets: BTreeMap::new(),
            settings: MessageSettings::default(),
            births: 0,
            receipts: Receipts::default(),
            text_bytes: 0,
            agents: VecDeque::new(),
            channels: VecDeque::new(),
        }
    }

    /// A cheap check, so that a scheduler without sessions pays nothing for them.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn find(&self, lane: &LaneName) -> Option<SessionIdx> {
        if self.table.is_empty() {
            return None;
        }
        self.by_lane.find(self.by_lane.hash(lane), |session| self[session].lane == *lane)
    }

    /// The session of a message that has not ended.
    pub(crate) fn session_with(&self, message: MessageId) -> Option<SessionIdx> {
        let has_it = |session: SessionIdx| self[session].messages().any(|other| other.id == message);
        self.by_message.find(self.by_message.hash(message), has_it)
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
    pub(crate) fn note_message(&mut self, message: &Message, session: SessionIdx) {
        self.by_message.insert(self.by_message.hash(message.id), session);
        self.text_bytes += message.bytes();
    }

    /// A message has ended.
    pub(crate) fn forget_message(&mut self, message: &Message, session: SessionIdx) {
        self.by_message.remove(self.by_message.hash(message.id), session);
        self.by_message.shrink();
        self.text_bytes -= message.bytes();
    }

    /// For the checks.
    pub(super) fn message_count(&self) -> usize {
        self.by_message.len()
    }

    pub(super) fn get(&self, session: SessionIdx) -> Option<&Session> {
        self.table.get(session)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionIdx, &Session)> {
        self.table.iter()
    }

    /// The session of a lane, made if there is none.
    pub(crate) fn enter(&mut self, lane: &LaneName) -> SessionIdx {
        if let Some(session) = self.find(lane) {
            return session;
        }
        self.births += 1;
        self.insert(Session::new(lane.clone(), self.births))
    }

    fn insert(&mut self, session: Session) -> SessionIdx {
        let hash = self.by_lane.hash(&session.lane);
        let idx = self.table.insert(session);
        self.by_lane.insert(hash, idx);
        idx
    }

    pub(crate) fn remove(&mut self, idx: SessionIdx) {
        self.set_due(idx, Timestamp::NEVER);
        let session = self.table.remove(idx);
        self.by_lane.remove(self.by_lane.hash(&session.lane), idx);
        if self.table.is_empty() {
            self.table = Table::default();
            self.by_lane.shrink();
        }
    }

    /// Takes up a session that was saved.
    pub(super) fn restore(&mut self, mut session: Session) -> SessionIdx {
        share_all(&mut session);
        let forget_at = session.extras.seen.front().map(|seen| (seen.until, session.birth));
        let idx = self.insert(session);
        for message in self.table[idx].messages() {
            self.by_message.insert(self.by_message.hash(message.id), idx);
            self.text_bytes += message.bytes();
        }
        if let Some(key) = forget_at {
            self.forgets.insert(key, idx);
        }
        idx
    }

    /// Sets when the next turn of a session may begin.
    pub(crate) fn set_due(&mut self, idx: SessionIdx, due: Timestamp) {
        let session = &mut self.table[idx];
        let old = std::mem::replace(&mut session.due, due);
        let birth = session.birth;
        if old != Timestamp::NEVER && old != due {
            self.starts.remove(&(old, birth));
        }
        if due != Timestamp::NEVER && old != due {
            self.starts.insert((due, birth), idx);
        }
    }

    /// The first session whose next turn may begin.
    pub(super) fn due_start(&self, now: Timestamp) -> Option<SessionIdx> {
        self.starts.first_key_value().filter(|((at, _), _)| *at <= now).map(|(_, session)| *session)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let start = self.starts.first_key_value().map(|((at, _), _)| *at);
        let forget = self.forgets.first_key_value().map(|((at, _), _)| *at);
        [start, forget].into_iter().flatten().min()
    }

    /// Remembers that a message was delivered.
    pub(crate) fn remember(&mut self, idx: SessionIdx, seen: Seen) {
        let session = &mut self.table[idx];
        let (birth, until) = (session.birth, seen.until);
        if session.extras.seen.len() == SEEN_MAX
            && let Some(oldest) = session.extras.seen.pop_front()
        {
            self.forgets.remove(&(oldest.until, birth));
        }
        session.extras.seen.push_back(seen);
        let first = session.extras.seen.front().map_or(until, |seen| seen.until);
        self.forgets.insert((first, birth), idx);
    }

    /// Forgets deliveries of long ago, and sessions of which nothing else is left.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while let Some((&(at, birth), &idx)) = self.forgets.first_key_value()
            && at <= now
        {
            self.forgets.remove(&(at, birth));
            let session = &mut self.table[idx];
            while session.extras.seen.front().is_some_and(|seen| seen.until <= now) {
                session.extras.seen.pop_front();
            }
            session.extras.tidy();
            if let Some(next) = session.extras.seen.front() {
                self.forgets.insert((next.until, birth), idx);
            } else if self[idx].is_idle() {
                self.remove(idx);
            }
        }
    }

    /// What is remembered of how a message ended.
    pub(crate) fn end_of(&self, message: MessageId) -> Option<(&MessageEnd, Timestamp)> {
        self.receipts.get(message)
    }

    /// For the checks: the sessions that have a timer, with it.
    pub(super) fn start_times(&self) -> impl Iterator<Item = (Timestamp, SessionIdx)> {
        self.starts.iter().map(|((at, _), session)| (*at, *session))
    }

    pub(super) fn forget_times(&self) -> impl Iterator<Item = (Timestamp, SessionIdx)> {
        self.forgets.iter().map(|((at, _), session)| (*at, *session))
    }
}

/// Has equal addresses of a session in memory once.
fn share_all(session: &mut Session) {
    let mut addresses: Vec<Arc<Address>> = vec![];
    let turns = session.turns.iter_mut().flat_map(|turn| {
        let more = std::mem::take(&mut turn.extras);
        let is_plain = more.pending.is_empty() && more.steered.is_empty();
        turn.extras = more;
        let steered = (!is_plain).then(|| &mut *turn.extras);
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
