//! Sessions and messages, to look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::ids::TaskId;
use crate::api::name::LaneName;
use crate::api::session_command::TurnMessage;
use crate::api::time::Timestamp;
use crate::api::views::LiveTaskView;
use crate::scheduler::Scheduler;
use crate::sessions::message::{Address, Message, MessageEnd, MessageId, MessageStatus};
use crate::sessions::queue_mode::{EffectiveQueue, MessageSettings, QueueOverrides};
use crate::sessions::session::{Session, Turn};
use crate::sessions::turn_text::{Overflow, Part, turn_text};

/// A session, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The session's key.
    pub key: String,
    /// Its lane.
    pub lane: LaneName,
    /// Whether a turn was accepted and has not ended.
    pub busy: bool,
    /// Whether the people in it should see typing: something is being answered or will be.
    pub typing: bool,
    /// How messages are queued, apart from what a channel or a message says of its own.
    pub queue: EffectiveQueue,
    /// What was set for this session.
    pub overrides: QueueOverrides,
    /// The turns that answer messages or take steering, in order.
    pub turns: Vec<TurnView>,
    /// The messages that wait, in order.
    pub waiting: Vec<Message>,
    /// How many messages were dropped that the next turn will tell of.
    pub dropped: u64,
    /// Nothing is tried again before, if that lies ahead.
    pub retry_at: Option<Timestamp>,
    /// The parked messages, the oldest first.
    pub parked: Vec<ParkedMessage>,
}

/// A parked message, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedMessage {
    /// The message, whole.
    pub message: Message,
    /// What went wrong last, as long as that is remembered.
    pub error: Option<Arc<str>>,
}

/// A turn, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// The task.
    pub task: TaskId,
    /// The messages that it answers.
    pub messages: Vec<MessageId>,
    /// Whether it takes steering now.
    pub takes_steering: bool,
    /// Messages that were accepted for it and that it has not taken.
    pub pending: Vec<MessageId>,
    /// Messages that it took.
    pub steered: Vec<MessageId>,
    /// All of these, whole.
    pub said: Vec<Message>,
}

/// What a turn is about: what its agent is prompted with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnContent {
    /// The session's key.
    pub session: String,
    /// Everything that is said, as one text.
    pub text: String,
    /// Who answers, where to, with which permissions.
    pub address: Arc<Address>,
    /// The messages one by one.
    pub messages: Vec<TurnMessage>,
    /// How many messages were dropped before these.
    pub dropped: u64,
    /// Something of this was in a turn that was lost, which may have done something already.
    pub redelivered: bool,
    /// The session starts afresh.
    pub fresh: bool,
}

impl Scheduler {
    /// A session of which there is something to remember, or in which a turn is live.
    pub fn session(&self, key: &str) -> Option<SessionView> {
        let lane = LaneName::session(key).ok()?;
        let here = self.parked_messages().filter(|(session, _)| *session == lane);
        let parked: Vec<ParkedMessage> = here.map(|(_, message)| self.parked_view(message)).collect();
        match self.state.sessions.find(&lane) {
            Some(session) => Some(self.session_view(&self.state.sessions[session], parked)),
            None if self.is_lane_busy(&lane) || !parked.is_empty() => Some(self.empty_view(lane, parked)),
            None => None,
        }
    }

    /// The turn of a session to which one would say something now: that of its messages, else one that was asked for
    /// directly, which is a turn all the same although it may never have said that it takes steering.
    pub fn turn_of_session(&self, key: &str) -> Option<LiveTaskView> {
        let view = self.session(key)?;
        let of_messages = view.turns.first().and_then(|turn| self.task(turn.task));
        of_messages.or_else(|| self.line_of(&view.lane, 1).0.into_iter().next())
    }

    /// All sessions of which there is something to remember, in the order in which they came to be; then those of
    /// which nothing is left but parked messages.
    pub fn sessions(&self) -> Vec<SessionView> {
        let mut parked: BTreeMap<&LaneName, Vec<ParkedMessage>> = BTreeMap::new();
        for (lane, message) in self.parked_messages() {
            parked.entry(lane).or_default().push(self.parked_view(message));
        }
        let mut sessions: Vec<&Session> = self.state.sessions.iter().map(|(_, session)| session).collect();
        sessions.sort_unstable_by_key(|session| session.birth);
        let mut views: Vec<SessionView> = sessions
            .into_iter()
            .map(|session| self.session_view(session, parked.remove(&session.lane).unwrap_or_default()))
            .collect();
        views.extend(parked.into_iter().map(|(lane, parked)| self.empty_view(lane.clone(), parked)));
        views
    }

    /// How messages are queued everywhere.
    pub fn message_settings(&self) -> &MessageSettings {
        &self.state.sessions.settings
    }

    /// How a message in this channel would be queued in a session, and why.
    pub fn queue_for(&self, key: &str, channel: Option<&str>) -> EffectiveQueue {
        let session = LaneName::session(key).ok().and_then(|lane| self.state.sessions.find(&lane));
        let own = session.map(|session| self.state.sessions[session].extras.queue).unwrap_or_default();
        self.state.sessions.settings.effective(&QueueOverrides::default(), &own, channel)
    }

    /// What has become of a message, as long as that is remembered.
    pub fn message(&self, id: MessageId) -> Option<MessageStatus> {
        if let Some(session) = self.state.sessions.session_with(id) {
            return live_status(&self.state.sessions[session], id);
        }
        let (end, at) = self.state.sessions.end_of(id)?;
        Some(MessageStatus::Ended { end: end.clone(), at })
    }

    /// The session in which a message is that has not ended, or is parked.
    pub fn session_of(&self, id: MessageId) -> Option<String> {
        match self.state.sessions.session_with(id) {
            Some(session) => self.state.sessions[session].lane.session_key(),
            None => self.parked_messages().find(|(_, message)| message.id == id)?.0.session_key(),
        }
    }

    /// A message that has not ended.
    pub fn live_message(&self, id: MessageId) -> Option<&Message> {
        let session = self.state.sessions.session_with(id)?;
        self.state.sessions[session].messages().find(|message| message.id == id)
    }

    /// The parked messages, the oldest first, with their sessions' lanes.
    pub fn parked_messages(&self) -> impl Iterator<Item = &(LaneName, Message)> {
        self.state.sessions.receipts.parked()
    }

    /// What a live turn is about, if it was made of messages.
    pub fn turn_content(&self, task: TaskId) -> Option<TurnContent> {
        if self.state.sessions.is_empty() {
            return None;
        }
        let idx = self.state.tasks.find(task)?;
        let lane = self.session_lane_of(idx)?;
        let session = &self.state.sessions[self.state.sessions.find(&self.state.lanes[lane].name)?];
        let turn = session.turn(task).filter(|turn| !turn.is_direct)?;
        let mut content = content(session, turn, self.cap_of(turn, session))?;
        if self.state.tasks[idx].redeliveries() > 0 {
            // The worker of an earlier attempt fell silent, and may have done something already.
            content.redelivered = true;
            content.messages.iter_mut().for_each(|message| message.redelivered = true);
        }
        Some(content)
    }

    fn cap_of(&self, turn: &Turn, session: &Session) -> usize {
        let place =
            turn.extras.summary.as_ref().and_then(|dropping| dropping.address.place.channel.as_deref());
        let queue =
            self.state.sessions.settings.effective(&QueueOverrides::default(), &session.extras.queue, place);
        queue.cap.value as usize
    }

    fn parked_view(&self, message: &Message) -> ParkedMessage {
        let error = match self.state.sessions.end_of(message.id) {
            Some((MessageEnd::Parked { error, .. }, _)) => Some(Arc::clone(error)),
            _ => None,
        };
        ParkedMessage { message: message.clone(), error }
    }

    fn session_view(&self, session: &Session, parked: Vec<ParkedMessage>) -> SessionView {
        let busy = self.is_lane_busy(&session.lane);
        let queue =
            self.state.sessions.settings.effective(&QueueOverrides::default(), &session.extras.queue, None);
        SessionView {
            key: session.lane.session_key().unwrap_or_default(),
            lane: session.lane.clone(),
            busy,
            typing: busy || !session.waiting.is_empty(),
            queue,
            overrides: session.extras.queue,
            turns: session.turns.iter().map(|turn| self.turn_view(turn)).collect(),
            waiting: session.waiting.iter().cloned().collect(),
            dropped: session.extras.overflows.iter().map(|dropping| dropping.dropped).sum(),
            retry_at: session.next_retry(self.state.now),
            parked,
        }
    }

    fn empty_view(&self, lane: LaneName, parked: Vec<ParkedMessage>) -> SessionView {
        let nothing = QueueOverrides::default();
        let busy = self.is_lane_busy(&lane);
        SessionView {
            key: lane.session_key().unwrap_or_default(),
            lane,
            busy,
            typing: busy,
            queue: self.state.sessions.settings.effective(&nothing, &nothing, None),
            overrides: nothing,
            turns: vec![],
            waiting: vec![],
            dropped: 0,
            retry_at: None,
            parked,
        }
    }

    fn turn_view(&self, turn: &Turn) -> TurnView {
        let attempt = self.state.tasks.find(turn.task).and_then(|idx| self.state.tasks[idx].attempt());
        let ids = |list: &[crate::sessions::session::Steered]| {
            list.iter().map(|steered| steered.message.id).collect()
        };
        let steered = turn.extras.pending.iter().chain(&turn.extras.steered).map(|steered| &steered.message);
        TurnView {
            task: turn.task,
            messages: turn.messages.iter().map(|message| message.id).collect(),
            takes_steering: attempt.is_some_and(|attempt| turn.extras.steering == Some(attempt.fence)),
            pending: ids(&turn.extras.pending),
            steered: ids(&turn.extras.steered),
            said: turn.messages.iter().chain(steered).cloned().collect(),
        }
    }
}

fn live_status(session: &Session, id: MessageId) -> Option<MessageStatus> {
    if let Some(at) = session.place_of(id) {
        return Some(MessageStatus::Waiting { position: at as u32 + 1 });
    }
    session.turns.iter().find_map(|turn| {
        let task = turn.task;
        let steered = |list: &[crate::sessions::session::Steered]| {
            let is_it =
                |steered: &&crate::sessions::session::Steered| steered.message.id == id && !steered.is_copy;
            list.iter().find(is_it).map(|steered| steered.fence)
        };
        if turn.messages.iter().any(|message| message.id == id) {
            Some(MessageStatus::InTurn { turn: task })
        } else if steered(&turn.extras.pending).is_some() {
            Some(MessageStatus::Steering { turn: task })
        } else {
            let fence = steered(&turn.extras.steered)??;
            Some(MessageStatus::Steered { turn: task, fence })
        }
    })
}

fn content(session: &Session, turn: &Turn, lines_max: usize) -> Option<TurnContent> {
    let parts: Vec<Part<'_>> = turn
        .messages
        .iter()
        .map(|message| Part { sender_name: message.sender_name(), text: &message.text })
        .collect();
    let lines: Vec<&Arc<str>> = turn.extras.summary.iter().flat_map(|dropping| &dropping.lines).collect();
    let newest = lines.len().saturating_sub(lines_max);
    let overflow = turn
        .extras
        .summary
        .as_ref()
        .map(|dropping| Overflow { dropped: dropping.dropped, lines: &lines[newest..] });
    let placed = turn.messages.iter().find(|message| !message.address.place.is_empty());
    let address = placed.or(turn.messages.first()).map(|message| &message.address);
    let address = address.or(turn.extras.summary.as_ref().map(|dropping| &dropping.address));
    Some(TurnContent {
        session: session.lane.session_key().unwrap_or_default(),
        text: turn_text(&parts, overflow),
        address: Arc::clone(address?),
        messages: turn.messages.iter().map(TurnMessage::from).collect(),
        dropped: turn.extras.summary.as_ref().map_or(0, |dropping| dropping.dropped),
        redelivered: turn.messages.iter().any(|message| message.redelivered),
        fresh: turn.extras.fresh,
    })
}
