//! What becomes of a message when it is sent?

use std::sync::Arc;

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::ids::TaskId;
use crate::api::lane_settings::PRIORITY_MAX;
use crate::api::name::LaneName;
use crate::api::rejection::Rejection;
use crate::api::session_command::{MessageReply, SendOutcome, SessionDelta, SessionEvent, Sweep, Way};
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::sessions::directive::{Directive, Reading, beyond, read_directive};
use crate::sessions::message::{
    AGENT_LANES_MAX, Address, BadMessage, Dropped, Extras, Incoming, LABEL_BYTES_MAX, Message, MessageEnd,
    MessageId, Otherwise, PERMISSIONS_MAX, Place, Sender, TEXT_BYTES_MAX, TEXTS_BYTES_MAX,
};
use crate::sessions::queue_mode::{DropRule, MessageQueue, Mode};
use crate::sessions::table::SessionIdx;
use crate::step::Step;

impl Step<'_> {
    pub(super) fn send(&mut self, mut incoming: Box<Incoming>) -> Result<Reply, Rejection> {
        forget_empty(&mut incoming);
        let lane = check(&incoming)?;
        self.check_message(&incoming)?;
        if let Some(same) = self.same_message(&lane, &incoming) {
            return Ok(self.duplicate(incoming.id, same));
        }
        let is_busy = self.is_lane_busy(&lane);
        if incoming.heartbeat && (is_busy || self.needs_a_turn(&lane)) {
            return Ok(self.drop_newcomer(&lane, incoming.id, Dropped::Heartbeat));
        }
        let reading = if incoming.may_configure { read_directive(&incoming.text) } else { Reading::Plain };
        match reading {
            Reading::Plain => {}
            Reading::Whole(Directive::New { text: Some(text) }) => {
                incoming.text = text.into();
                incoming.queue.mode = Some(Mode::Interrupt);
                incoming.steer = None;
                if !is_busy {
                    // Refused before anything has changed, or not at all.
                    self.check_turn_room(&lane, &incoming)?;
                }
                self.renew(&lane);
            }
            Reading::Whole(directive) => {
                let reply = self.apply_directive(&lane, &incoming, directive);
                return Ok(self.tell(&lane, &incoming, reply));
            }
            Reading::Inline { queue, text } => {
                if let Err(too_much) = queue.check(&self.state.sessions.settings.policy) {
                    return Ok(self.tell(&lane, &incoming, beyond(too_much)));
                }
                incoming.queue = queue.over(incoming.queue);
                incoming.text = text.into();
            }
            Reading::Wrong(error) => return Ok(self.tell(&lane, &incoming, error)),
        }
        if incoming.steer.is_some() && incoming.queue.mode != Some(Mode::SteerBacklog) {
            incoming.queue.mode = Some(Mode::Steer);
        }
        self.dispatch(&lane, &incoming)
    }

    /// Answers a directive. One with an id of its sender's own is remembered: it is not obeyed twice.
    fn tell(&mut self, lane: &LaneName, incoming: &Incoming, reply: String) -> Reply {
        let message = incoming.id;
        if let Some(message_id) = &incoming.message_id {
            let (message_id, place) = (Arc::clone(message_id), incoming.place.clone());
            let change = SessionDelta::Answered { message, message_id, place, reply: reply.as_str().into() };
            self.emit(Event::Session(Box::new(SessionEvent { session: lane.clone(), change })));
        }
        told(message, SendOutcome::Directive, reply)
    }

    /// Takes the message the way that its mode says.
    pub(crate) fn dispatch(&mut self, lane: &LaneName, incoming: &Incoming) -> Result<Reply, Rejection> {
        let idx = self.state.sessions.find(lane);
        let is_busy = self.is_lane_busy(lane);
        // What backs off after a failed turn does not hold up others.
        let waits = idx.is_some_and(|idx| self.state.sessions[idx].has_ready(self.state.now));
        let overrides = idx.map(|idx| self.state.sessions[idx].extras.queue).unwrap_or_default();
        let channel = incoming.place.channel.as_deref();
        let settings = &self.state.sessions.settings;
        let queue = settings.effective(&incoming.queue, &overrides, channel).values();
        let steers = matches!(queue.mode, Mode::Steer | Mode::SteerBacklog);
        let steerable = if steers { self.steerable(lane, incoming, queue.cap) } else { None };
        if let Some(steer) = incoming.steer
            && steerable != Some(steer.turn)
        {
            match steer.otherwise {
                Otherwise::Followup => {}
                Otherwise::Reject => return Err(Rejection::TurnOver { turn: steer.turn }),
                Otherwise::Drop => return Ok(self.drop_newcomer(lane, incoming.id, Dropped::Late)),
            }
        }
        let mode = queue.mode;
        match mode {
            Mode::Reject if is_busy => {
                let turn = self.current_turn(lane);
                Err(Rejection::SessionBusy { session: lane.clone(), turn })
            }
            Mode::Interrupt if is_busy || self.needs_a_turn(lane) => Ok(self.interrupt_with(lane, incoming)),
            Mode::SteerBacklog if self.is_refused(lane, queue) => {
                Ok(self.drop_newcomer(lane, incoming.id, Dropped::New))
            }
            Mode::Steer | Mode::SteerBacklog if is_busy && steerable.is_some() => {
                self.steer_into(lane, incoming, mode, steerable)
            }
            _ if is_busy || waits => self.line_up(lane, incoming, queue),
            _ => self.start_turn(lane, incoming),
        }
    }

    fn drop_newcomer(&mut self, lane: &LaneName, message: MessageId, rule: Dropped) -> Reply {
        let change = SessionDelta::Ended { message, end: MessageEnd::Dropped { rule } };
        self.emit(Event::Session(Box::new(SessionEvent { session: lane.clone(), change })));
        answer(message, SendOutcome::Dropped(rule))
    }

    /// Starts a message at once, without waiting for quiet, because none is before it.
    fn start_turn(&mut self, lane: &LaneName, incoming: &Incoming) -> Result<Reply, Rejection> {
        self.check_turn_room(lane, incoming)?;
        let session = self.accept_message(lane, incoming, Way::Line);
        let turn = session.and_then(|session| self.begin_turn(session));
        Ok(reply(incoming.id, SendOutcome::Started, turn, None))
    }

    fn line_up(
        &mut self,
        lane: &LaneName,
        incoming: &Incoming,
        queue: MessageQueue,
    ) -> Result<Reply, Rejection> {
        self.check_turn_room(lane, incoming)?;
        if self.is_refused(lane, queue) {
            return Ok(self.drop_newcomer(lane, incoming.id, Dropped::New));
        }
        let Some(idx) = self.accept_message(lane, incoming, Way::Line) else {
            return Ok(reply(incoming.id, SendOutcome::Queued, None, None));
        };
        while queue.mode == Mode::Latest
            && self.state.sessions[idx].is_above(1)
            && let Some(oldest) = self.state.sessions[idx].oldest_capped()
        {
            self.end_message(idx, oldest, MessageEnd::Dropped { rule: Dropped::Latest });
        }
        self.keep_to_cap(idx);
        if !self.is_busy(idx) {
            // What is due begins now, so that the answer says where the message really is.
            self.update_session(idx);
        }
        let session = &self.state.sessions[idx];
        match session.turn_of(incoming.id).map(|turn| turn.task) {
            Some(turn) => Ok(reply(incoming.id, SendOutcome::Started, Some(turn), None)),
            None => {
                let position = session.place_of(incoming.id).map(|at| at as u32 + 1);
                Ok(reply(incoming.id, SendOutcome::Queued, None, position))
            }
        }
    }

    /// What runs is cancelled, what waits too, and this one is next.
    fn interrupt_with(&mut self, lane: &LaneName, incoming: &Incoming) -> Reply {
        let was_busy = self.is_lane_busy(lane);
        self.sweep_session(lane, Sweep::Interrupted);
        let session = self.accept_message(lane, incoming, Way::Line);
        let turn = session.and_then(|session| self.begin_turn(session));
        let outcome = if was_busy { SendOutcome::Interrupted } else { SendOutcome::Started };
        reply(incoming.id, outcome, turn, None)
    }

    pub(super) fn accept_message(
        &mut self,
        lane: &LaneName,
        incoming: &Incoming,
        way: Way,
    ) -> Option<SessionIdx> {
        let accepted = self.state.sessions.find(lane).map_or(0, |idx| self.state.sessions[idx].accepted);
        let message = kept(incoming, self.state.now, accepted + 1);
        let change = SessionDelta::Accepted { message, way };
        self.emit(Event::Session(Box::new(SessionEvent { session: lane.clone(), change })));
        self.state.sessions.find(lane)
    }
}

impl Scheduler {
    /// Says that a message is queued if the turn that it began got no slot.
    pub(crate) fn tell_waiting_turn(&self, reply: &mut Reply) {
        let Reply::Message(reply) = reply else { return };
        let turn = reply.turn.filter(|_| reply.outcome == SendOutcome::Started);
        let task = turn.and_then(|turn| self.state.tasks.find(turn));
        if task.is_some_and(|task| self.state.tasks[task].attempt().is_none()) {
            reply.outcome = SendOutcome::Queued;
            reply.position = turn.and_then(|turn| self.position(turn)).map(|position| position as u32);
        }
    }

    /// Checks a message against the state.
    fn check_message(&self, incoming: &Incoming) -> Result<(), Rejection> {
        let beyond = |error| Rejection::BadMessage(BadMessage::Queue(error));
        incoming.queue.check(&self.state.sessions.settings.policy).map_err(beyond)?;
        self.check_new(incoming)
    }

    /// Checks that there is room for the text and that the id is free.
    pub(super) fn check_new(&self, incoming: &Incoming) -> Result<(), Rejection> {
        let id = incoming.id;
        if self.state.sessions.session_with(id).is_some() || self.state.sessions.end_of(id).is_some() {
            return Err(Rejection::MessageIdTaken { message: id });
        }
        if self.state.sessions.text_bytes + incoming.bytes() as u64 > TEXTS_BYTES_MAX {
            return Err(Rejection::MessagesFull);
        }
        Ok(())
    }

    /// Whether a newcomer is dropped because the line is full.
    fn is_refused(&self, lane: &LaneName, queue: MessageQueue) -> bool {
        let session = self.state.sessions.find(lane).map(|idx| &self.state.sessions[idx]);
        let is_full = session.is_some_and(|session| session.is_above(queue.cap as usize - 1));
        is_full && queue.drop == DropRule::New && queue.mode != Mode::Latest
    }

    /// Whether messages wait for a turn, or dropped ones wait to be reported in one.
    fn needs_a_turn(&self, lane: &LaneName) -> bool {
        let session = self.state.sessions.find(lane).map(|idx| &self.state.sessions[idx]);
        session.is_some_and(|session| !session.waiting.is_empty() || !session.extras.overflows.is_empty())
    }

    /// Checks once, before the message is accepted, that the lanes of its turn have room.
    fn check_turn_room(&self, lane: &LaneName, incoming: &Incoming) -> Result<(), Rejection> {
        let spec = self.turn_spec(&address(incoming), incoming.asker.as_ref(), lane);
        self.ask_room(&spec)
    }
}

fn answer(message: MessageId, outcome: SendOutcome) -> Reply {
    reply(message, outcome, None, None)
}

pub(crate) fn told(message: MessageId, outcome: SendOutcome, text: String) -> Reply {
    let reply =
        MessageReply { message, outcome, turn: None, position: None, typing: false, reply: Some(text) };
    Reply::Message(Box::new(reply))
}

pub(super) fn reply(
    message: MessageId,
    outcome: SendOutcome,
    turn: Option<TaskId>,
    position: Option<u32>,
) -> Reply {
    let typing = !matches!(outcome, SendOutcome::Dropped(_) | SendOutcome::Directive);
    Reply::Message(Box::new(MessageReply { message, outcome, turn, position, typing, reply: None }))
}

/// An empty text says nothing: two messages with an empty id are not the same one.
fn forget_empty(incoming: &mut Incoming) {
    let Place { channel, to, account, thread } = &mut incoming.place;
    let others = [&mut incoming.sender, &mut incoming.sender_name, &mut incoming.message_id];
    for label in [channel, to, account, thread].into_iter().chain(others) {
        if label.as_deref() == Some("") {
            *label = None;
        }
    }
}

fn check(incoming: &Incoming) -> Result<LaneName, Rejection> {
    let bad = |error: BadMessage| Err(Rejection::BadMessage(error));
    if incoming.text.trim().is_empty() && incoming.attachments.is_none() {
        return bad(BadMessage::Empty);
    }
    if incoming.bytes() > TEXT_BYTES_MAX {
        return bad(BadMessage::TooLong);
    }
    let labels = [
        ("channel", &incoming.place.channel),
        ("to", &incoming.place.to),
        ("account", &incoming.place.account),
        ("thread", &incoming.place.thread),
        ("sender", &incoming.sender),
        ("sender_name", &incoming.sender_name),
        ("message_id", &incoming.message_id),
    ];
    for (field, label) in labels {
        if label.as_ref().is_some_and(|label| label.len() > LABEL_BYTES_MAX) {
            return bad(BadMessage::Label(field));
        }
    }
    if incoming.permissions.len() > PERMISSIONS_MAX {
        return bad(BadMessage::Permissions);
    }
    if incoming.agent.lanes.len() > AGENT_LANES_MAX {
        return bad(BadMessage::Lanes);
    }
    if incoming.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        return bad(BadMessage::Priority);
    }
    let lane = session_lane(&incoming.session)?;
    let lanes = incoming.agent.turn_lanes(Some(&lane), incoming.source);
    lanes.map(|_| lane).map_err(|error| Rejection::BadMessage(BadMessage::Agent(error)))
}

pub(crate) fn session_lane(key: &str) -> Result<LaneName, Rejection> {
    LaneName::session(key).map_err(|error| Rejection::BadMessage(BadMessage::Session(error)))
}

pub(crate) fn address(incoming: &Incoming) -> Address {
    let mut permissions = incoming.permissions.clone();
    permissions.sort();
    permissions.dedup();
    Address {
        agent: Arc::new(incoming.agent.clone()),
        place: incoming.place.clone(),
        permissions,
        source: incoming.source,
        priority: incoming.priority,
    }
}

/// What is kept of a message.
fn kept(incoming: &Incoming, at: Timestamp, number: u64) -> Message {
    let extras = Extras {
        message_id: incoming.message_id.clone(),
        queue: incoming.queue,
        asker: incoming.asker.clone(),
        metadata: incoming.metadata.clone(),
        attachments: incoming.attachments.clone(),
    };
    let from = Sender { id: incoming.sender.clone(), name: incoming.sender_name.clone() };
    Message {
        id: incoming.id,
        text: Arc::clone(&incoming.text),
        address: Arc::new(address(incoming)),
        from: Some(from).filter(|from| *from != Sender::default()).map(Box::new),
        at,
        number,
        extras: Some(extras).filter(|extras| *extras != Extras::default()).map(Box::new),
        tries: 0,
        turns: 0,
        retry_at: Timestamp(0),
        yields: false,
        alone: false,
        redelivered: false,
        moved: false,
        hastened: false,
    }
}
