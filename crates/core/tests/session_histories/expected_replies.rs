//! Predicts each reply to a message, and checks that the reply is as predicted and that the events match it.

use std::sync::Arc;

use laneway_core::{
    Address, Directive, DropRule, Dropped, Event, Incoming, LaneName, MessageEnd, MessageId, MessageReply,
    Mode, Otherwise, Reading, Rejection, Reply, Scheduler, SendOutcome, SessionDelta, TaskId, Timestamp, Way,
    read_directive,
};

use crate::ledger::{AnsweredDirective, Ledger, MessageState};
use crate::rules::WINDOW;

/// The reply that a message must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Answer(SendOutcome),
    /// The message joins this turn.
    Into(TaskId, SendOutcome),
    /// A turn starts at once, if the lanes have room.
    Start,
    Refused(&'static str),
}

impl Ledger {
    /// Predicts the reply to a message from what is known before it is sent.
    pub(crate) fn expected_reply(&self, live: &Scheduler, incoming: &Incoming) -> Expected {
        let lane = LaneName::session(&incoming.session).unwrap();
        let now = live.now();
        if incoming.queue.check(&self.settings.policy).is_err() {
            return Expected::Refused("INVALID");
        }
        if let Some(same) = self.same(live, now, lane.as_str(), incoming) {
            return Expected::Answer(SendOutcome::Duplicate(same));
        }
        let is_busy = live.tasks().any(|task| task.lanes.contains(&lane));
        let unreported =
            self.sessions.get(lane.as_str()).is_some_and(|session| !session.unreported.is_empty());
        let any_waits = unreported || self.waiting(lane.as_str()).next().is_some();
        let is_due = |session: &crate::ledger::Session| {
            session.unreported.iter().any(|unreported| unreported.retry_at <= now)
        };
        let waits = self.sessions.get(lane.as_str()).is_some_and(is_due)
            || self.ready(lane.as_str(), now).next().is_some();
        if incoming.heartbeat && (is_busy || any_waits) {
            return Expected::Answer(SendOutcome::Dropped(Dropped::Heartbeat));
        }
        let mut own = incoming.queue;
        let mut steer = incoming.steer;
        let reading = if incoming.may_configure { read_directive(&incoming.text) } else { Reading::Plain };
        match reading {
            Reading::Plain => {}
            Reading::Whole(Directive::New { text: Some(_) }) => {
                own.mode = Some(Mode::Interrupt);
                steer = None;
            }
            Reading::Inline { queue, .. } if queue.check(&self.settings.policy).is_ok() => {
                own = queue.over(own);
            }
            _ => return Expected::Answer(SendOutcome::Directive),
        }
        if steer.is_some() && own.mode != Some(Mode::SteerBacklog) {
            own.mode = Some(Mode::Steer);
        }
        let queue = self.queue(&own, lane.as_str(), incoming.place.channel.as_deref());
        let steers = matches!(queue.mode, Mode::Steer | Mode::SteerBacklog);
        let open = self.open_turn(live, &lane, incoming, queue.cap);
        let open = open.filter(|turn| steers && steer.is_none_or(|steer| steer.turn == *turn));
        match steer.filter(|steer| open != Some(steer.turn)).map(|steer| steer.otherwise) {
            Some(Otherwise::Reject) => return Expected::Refused("NOT_FOUND"),
            Some(Otherwise::Drop) => return Expected::Answer(SendOutcome::Dropped(Dropped::Late)),
            _ => {}
        }
        let counted = self.waiting(lane.as_str()).filter(|known| known.tries == 0).count();
        let is_full =
            counted >= queue.cap as usize && queue.drop == DropRule::New && queue.mode != Mode::Latest;
        match (queue.mode, open) {
            (Mode::Reject, _) if is_busy => Expected::Refused("SESSION_BUSY"),
            (Mode::Interrupt, _) if is_busy => Expected::Answer(SendOutcome::Interrupted),
            (Mode::Interrupt, _) => Expected::Start,
            (Mode::Steer, Some(turn)) => Expected::Into(turn, SendOutcome::Steered),
            (Mode::SteerBacklog, Some(turn)) if !is_full => {
                Expected::Into(turn, SendOutcome::SteeredAndQueued)
            }
            _ if (is_busy || waits) && is_full => Expected::Answer(SendOutcome::Dropped(Dropped::New)),
            _ if is_busy || waits => Expected::Answer(SendOutcome::Queued),
            _ => Expected::Start,
        }
    }

    /// The message that this one duplicates, if it is live or was delivered not long ago.
    fn same(
        &self,
        live: &Scheduler,
        now: Timestamp,
        session: &str,
        incoming: &Incoming,
    ) -> Option<MessageId> {
        let message_id = incoming.message_id.as_ref()?;
        let mut same = self.messages.values().filter(|known| {
            known.session == session
                && known.message.message_id() == Some(message_id)
                && known.message.address.place == incoming.place
        });
        let is_live = |state: MessageState| match state {
            MessageState::Ended => false,
            MessageState::Waiting | MessageState::Pending(_) => true,
            // A message that is being cancelled may come again.
            MessageState::Turn(turn) | MessageState::Steered(turn) => {
                let running = live.task(turn).and_then(|task| task.running);
                running.is_none_or(|running| !running.stopping)
            }
        };
        let found = same.find(|known| match &known.end {
            None => is_live(known.state),
            Some((MessageEnd::Delivered { .. } | MessageEnd::Steered { .. }, at)) => *at + WINDOW > now,
            Some(_) => false,
        });
        let answered = self.answered.iter().find(|answered| {
            answered.session == session
                && answered.message_id == *message_id
                && answered.place == incoming.place
                && answered.at + WINDOW > now
        });
        found.map(|known| known.message.id).or(answered.map(|answered| answered.message))
    }

    /// The turn that a message could steer, if the turn takes steering, has room, and has the same place and permissions.
    fn open_turn(&self, live: &Scheduler, lane: &LaneName, incoming: &Incoming, cap: u32) -> Option<TaskId> {
        let mut permissions = incoming.permissions.clone();
        permissions.sort();
        permissions.dedup();
        let (turn, note) = self.turns.iter().find(|(task, note)| {
            let running = live.task(**task).and_then(|view| view.running);
            let is_open =
                running.is_some_and(|running| !running.stopping && note.steering == Some(running.fence));
            note.session == lane.as_str() && is_open
        })?;
        let view = live.session(&incoming.session)?;
        let view = view.turns.iter().find(|view| view.task == *turn)?;
        let fits = |address: &Address| {
            let places = [&address.place, &incoming.place];
            let fits_place = places[0] == places[1] || places.iter().any(|place| place.is_empty());
            fits_place
                && address.permissions == permissions
                && *address.agent == incoming.agent
                && (address.source, address.priority) == (incoming.source, incoming.priority)
        };
        let mut answered = self.messages.values().filter(|known| known.state == MessageState::Turn(*turn));
        let all_fit = answered.all(|known| fits(&known.message.address))
            && note.summary.as_ref().is_none_or(|summary| fits(&summary.address));
        (view.pending.len() < cap as usize && all_fit).then_some(*turn)
    }

    /// Checks that the reply is as expected and that the events match it.
    pub(crate) fn check_sent(
        &mut self,
        live: &Scheduler,
        expected: &Expected,
        incoming: &Incoming,
        reply: &Result<Reply, Rejection>,
        events: &[Event],
    ) -> Result<(), String> {
        let reply = match reply {
            Ok(Reply::Message(reply)) => reply,
            Ok(other) => return Err(format!("answered {other:?}")),
            Err(rejection) => return check_refused(expected, rejection, events),
        };
        self.count(reply.outcome.as_str());
        let has_happened = self.has_happened(live, incoming, reply, events)?;
        let shows_typing = match reply.outcome {
            SendOutcome::Duplicate(same) => {
                reply.reply.is_none() && self.messages.get(&same).is_some_and(|known| known.end.is_none())
            }
            SendOutcome::Dropped(_) | SendOutcome::Directive => false,
            _ => true,
        };
        match (reply.outcome, &incoming.message_id) {
            (SendOutcome::Duplicate(_), _) if reply.reply.is_some() => self.count("directive again"),
            (SendOutcome::Directive, Some(message_id)) => self.answered.push(AnsweredDirective {
                session: LaneName::session(&incoming.session).unwrap().to_string(),
                message_id: Arc::clone(message_id),
                place: incoming.place.clone(),
                message: incoming.id,
                at: live.now(),
            }),
            _ => {}
        }
        if is_expected(expected, reply) && has_happened && reply.typing == shows_typing {
            Ok(())
        } else {
            let state = self.messages.get(&incoming.id).map(|known| known.state);
            Err(format!("answered {reply:?}, expected {expected:?}, and it is {state:?}"))
        }
    }

    /// Whether the events match the reply.
    fn has_happened(
        &mut self,
        live: &Scheduler,
        incoming: &Incoming,
        reply: &MessageReply,
        events: &[Event],
    ) -> Result<bool, String> {
        let id = incoming.id;
        let way = way_of(events, id);
        let state = self.messages.get(&id).map(|known| known.state);
        let turn = match state {
            Some(MessageState::Turn(turn)) => Some(turn),
            _ => None,
        };
        let is_in_its_turn = turn.is_some() && reply.turn == turn;
        Ok(match reply.outcome {
            SendOutcome::Started => way == Some(Way::Line) && is_in_its_turn,
            SendOutcome::Queued if reply.turn.is_some() => {
                let waits = turn.and_then(|turn| live.task(turn)).is_some_and(|task| task.running.is_none());
                way == Some(Way::Line) && is_in_its_turn && waits
            }
            SendOutcome::Queued => {
                let here = live.session(&incoming.session);
                let at = here.and_then(|view| view.waiting.iter().position(|waiting| waiting.id == id));
                let in_line =
                    state == Some(MessageState::Waiting) && reply.position == at.map(|at| at as u32 + 1);
                way == Some(Way::Line) && in_line
            }
            SendOutcome::Steered | SendOutcome::SteeredAndQueued => {
                let turn = reply.turn.unwrap_or(TaskId(0));
                let into = match reply.outcome {
                    SendOutcome::Steered => Way::Steer { turn },
                    _ => Way::Both { turn },
                };
                let pending = live.session(&incoming.session).is_some_and(|view| {
                    view.turns.iter().any(|view| view.task == turn && view.pending.contains(&id))
                });
                way == Some(into) && pending
            }
            SendOutcome::Interrupted => is_in_its_turn && self.is_emptied(live, incoming, Some(id)),
            SendOutcome::Dropped(rule) => {
                way.is_none() && events.iter().any(|event| is_dropped(event, id, rule))
            }
            SendOutcome::Duplicate(_) => events.is_empty(),
            SendOutcome::Directive => {
                way.is_none() && reply.reply.is_some() && self.has_directive_taken_effect(live, incoming)
            }
            other => return Err(format!("answered {other:?}")),
        })
    }

    /// Whether a directive has changed the session. After `/stop` and `/new` nothing waits and nothing continues.
    fn has_directive_taken_effect(&mut self, live: &Scheduler, incoming: &Incoming) -> bool {
        let lane = LaneName::session(&incoming.session).unwrap();
        match read_directive(&incoming.text) {
            Reading::Whole(Directive::Stop) => {
                self.count("stopped");
                self.is_emptied(live, incoming, None)
            }
            Reading::Whole(Directive::New { .. }) => {
                self.count("renewed");
                self.session(lane.as_str()).fresh && self.is_emptied(live, incoming, None)
            }
            Reading::Whole(Directive::Set(queue)) if queue.check(&self.settings.policy).is_ok() => {
                let set = self.session(lane.as_str()).queue;
                queue.over(set) == set
            }
            Reading::Whole(Directive::Reset) => self.session(lane.as_str()).queue.is_empty(),
            _ => true,
        }
    }

    /// Whether only this message and stopping turns are left of a session.
    fn is_emptied(&self, live: &Scheduler, incoming: &Incoming, but: Option<MessageId>) -> bool {
        let lane = LaneName::session(&incoming.session).unwrap();
        let session = lane.as_str();
        let mut left = self.messages.values().filter(|known| known.session == session);
        let all_ended = left.all(|known| match known.state {
            MessageState::Ended => true,
            MessageState::Waiting | MessageState::Pending(_) => false,
            MessageState::Turn(turn) | MessageState::Steered(turn) => {
                let running = live.task(turn).and_then(|task| task.running);
                Some(known.message.id) == but || running.is_some_and(|running| running.stopping)
            }
        });
        let unreported = self.sessions.get(session).is_some_and(|session| !session.unreported.is_empty());
        all_ended && !unreported
    }
}

fn is_dropped(event: &Event, id: MessageId, by: Dropped) -> bool {
    let Event::Session(event) = event else { return false };
    matches!(
        &event.change,
        SessionDelta::Ended { message, end: MessageEnd::Dropped { rule } } if *message == id && *rule == by
    )
}

/// Checks that a message may get this rejection.
fn check_refused(expected: &Expected, rejection: &Rejection, events: &[Event]) -> Result<(), String> {
    let may_be = match expected {
        Expected::Refused(code) => rejection.code() == *code,
        // The scheduler checks the room in the agent's lane now, and never later.
        Expected::Start | Expected::Answer(SendOutcome::Queued | SendOutcome::Dropped(Dropped::New)) => {
            rejection.code() == "AT_CAPACITY"
        }
        _ => false,
    };
    if may_be && events.is_empty() {
        Ok(())
    } else {
        Err(format!("refused as {}, expected {expected:?}", rejection.code()))
    }
}

fn is_expected(expected: &Expected, reply: &MessageReply) -> bool {
    match reply.outcome {
        // A message that is queued when a turn is due joins that turn at once.
        SendOutcome::Queued if reply.turn.is_some() => {
            [Expected::Start, Expected::Answer(SendOutcome::Queued)].contains(expected)
        }
        SendOutcome::Started => [Expected::Start, Expected::Answer(SendOutcome::Queued)].contains(expected),
        outcome @ (SendOutcome::Steered | SendOutcome::SteeredAndQueued) => {
            *expected == Expected::Into(reply.turn.unwrap_or(TaskId(0)), outcome)
        }
        outcome => *expected == Expected::Answer(outcome),
    }
}

/// Whether an accepted message waits, steers, or both.
fn way_of(events: &[Event], id: MessageId) -> Option<Way> {
    events.iter().find_map(|event| match event {
        Event::Session(event) => match &event.change {
            SessionDelta::Accepted { message, way } if message.id == id => Some(*way),
            _ => None,
        },
        _ => None,
    })
}
