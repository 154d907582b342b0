//! What must be answered, foretold before the scheduler is asked, and whether it did what it answered.

use std::sync::Arc;

use laneway_core::{
    Address, Directive, DropRule, Dropped, Event, Incoming, LaneName, MessageEnd, MessageId, MessageReply,
    Mode, Otherwise, Reading, Rejection, Reply, Scheduler, SendOutcome, SessionChange, TaskId, Timestamp,
    Way, read_directive,
};

use crate::ledger::{Answered, Ledger, Where};
use crate::rules::WINDOW;

/// What is to be answered to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Foretold {
    Answer(SendOutcome),
    /// In this turn.
    Into(TaskId, SendOutcome),
    /// At once, if the lanes have room.
    Start,
    Refused(&'static str),
}

impl Ledger {
    /// What becomes of a message, from what is known before it is sent.
    pub(crate) fn foretell(&self, live: &Scheduler, incoming: &Incoming) -> Foretold {
        let lane = LaneName::session(&incoming.session).unwrap();
        let now = live.now();
        if incoming.queue.check(&self.settings.policy).is_err() {
            return Foretold::Refused("INVALID");
        }
        if let Some(same) = self.same(live, now, lane.as_str(), incoming) {
            return Foretold::Answer(SendOutcome::Duplicate(same));
        }
        let is_busy = live.tasks().any(|task| task.lanes.contains(&lane));
        let untold = self.sessions.get(lane.as_str()).is_some_and(|session| !session.untold.is_empty());
        let waits = untold || self.waiting(lane.as_str()).next().is_some();
        if incoming.heartbeat && (is_busy || waits) {
            return Foretold::Answer(SendOutcome::Dropped(Dropped::Heartbeat));
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
            _ => return Foretold::Answer(SendOutcome::Directive),
        }
        if steer.is_some() && own.mode != Some(Mode::SteerBacklog) {
            own.mode = Some(Mode::Steer);
        }
        let queue = self.queue(&own, lane.as_str(), incoming.place.channel.as_deref());
        let steers = matches!(queue.mode, Mode::Steer | Mode::SteerBacklog);
        let open = self.open_turn(live, &lane, incoming, queue.cap);
        let open = open.filter(|turn| steers && steer.is_none_or(|steer| steer.turn == *turn));
        match steer.filter(|steer| open != Some(steer.turn)).map(|steer| steer.otherwise) {
            Some(Otherwise::Reject) => return Foretold::Refused("NOT_FOUND"),
            Some(Otherwise::Drop) => return Foretold::Answer(SendOutcome::Dropped(Dropped::Late)),
            _ => {}
        }
        let counted = self.waiting(lane.as_str()).filter(|known| known.tries == 0).count();
        let is_full =
            counted >= queue.cap as usize && queue.drop == DropRule::New && queue.mode != Mode::Latest;
        match (queue.mode, open) {
            (Mode::Reject, _) if is_busy => Foretold::Refused("SESSION_BUSY"),
            (Mode::Interrupt, _) if is_busy => Foretold::Answer(SendOutcome::Interrupted),
            (Mode::Interrupt, _) => Foretold::Start,
            (Mode::Steer, Some(turn)) => Foretold::Into(turn, SendOutcome::Steered),
            (Mode::SteerBacklog, Some(turn)) if !is_full => {
                Foretold::Into(turn, SendOutcome::SteeredAndQueued)
            }
            _ if (is_busy || waits) && is_full => Foretold::Answer(SendOutcome::Dropped(Dropped::New)),
            _ if is_busy || waits => Foretold::Answer(SendOutcome::Queued),
            _ => Foretold::Start,
        }
    }

    /// The same message, if it is live or was delivered not long ago.
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
        let is_live = |place: Where| match place {
            Where::Ended => false,
            Where::Waiting | Where::Pending(_) => true,
            // What is being cancelled may come again.
            Where::Turn(turn) | Where::Steered(turn) => {
                let running = live.task(turn).and_then(|task| task.running);
                running.is_none_or(|running| !running.stopping)
            }
        };
        let found = same.find(|known| match &known.end {
            None => is_live(known.place),
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

    /// The turn that could be steered by a message, if it takes that, has room and answers to the same people.
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
            let is_near = places[0] == places[1] || places.iter().any(|place| place.is_empty());
            is_near
                && address.permissions == permissions
                && *address.agent == incoming.agent
                && (address.source, address.priority) == (incoming.source, incoming.priority)
        };
        let mut answered = self.messages.values().filter(|known| known.place == Where::Turn(*turn));
        let all_fit = answered.all(|known| fits(&known.message.address))
            && note.summary.as_ref().is_none_or(|summary| fits(&summary.address));
        (view.pending.len() < cap as usize && all_fit).then_some(*turn)
    }

    /// Whether what was answered is what was foretold, and what happened.
    pub(crate) fn check_sent(
        &mut self,
        live: &Scheduler,
        foretold: &Foretold,
        incoming: &Incoming,
        reply: &Result<Reply, Rejection>,
        events: &[Event],
    ) -> Result<(), String> {
        let reply = match reply {
            Ok(Reply::Message(reply)) => reply,
            Ok(other) => return Err(format!("answered {other:?}")),
            Err(rejection) => return check_refused(foretold, rejection, events),
        };
        self.count(reply.outcome.as_str());
        let is_so = self.is_so(live, incoming, reply, events)?;
        let types = match reply.outcome {
            SendOutcome::Duplicate(same) => {
                reply.reply.is_none() && self.messages.get(&same).is_some_and(|known| known.end.is_none())
            }
            SendOutcome::Dropped(_) | SendOutcome::Directive => false,
            _ => true,
        };
        match (reply.outcome, &incoming.message_id) {
            (SendOutcome::Duplicate(_), _) if reply.reply.is_some() => self.count("directive again"),
            (SendOutcome::Directive, Some(message_id)) => self.answered.push(Answered {
                session: LaneName::session(&incoming.session).unwrap().to_string(),
                message_id: Arc::clone(message_id),
                place: incoming.place.clone(),
                message: incoming.id,
                at: live.now(),
            }),
            _ => {}
        }
        if is_foretold(foretold, reply) && is_so && reply.typing == types {
            Ok(())
        } else {
            let place = self.messages.get(&incoming.id).map(|known| known.place);
            Err(format!("answered {reply:?}, foretold {foretold:?}, and it is {place:?}"))
        }
    }

    /// Whether what was answered is what happened.
    fn is_so(
        &mut self,
        live: &Scheduler,
        incoming: &Incoming,
        reply: &MessageReply,
        events: &[Event],
    ) -> Result<bool, String> {
        let id = incoming.id;
        let way = way_of(events, id);
        let place = self.messages.get(&id).map(|known| known.place);
        let turn = match place {
            Some(Where::Turn(turn)) => Some(turn),
            _ => None,
        };
        let is_in_its_turn = turn.is_some() && reply.turn == turn;
        Ok(match reply.outcome {
            SendOutcome::Started => way == Some(Way::Line) && is_in_its_turn,
            SendOutcome::Queued => {
                let here = live.session(&incoming.session);
                let at = here.and_then(|view| view.waiting.iter().position(|waiting| waiting.id == id));
                let in_line = place == Some(Where::Waiting) && reply.position == at.map(|at| at as u32 + 1);
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
            SendOutcome::Interrupted => is_in_its_turn && self.is_swept(live, incoming, Some(id)),
            SendOutcome::Dropped(rule) => {
                way.is_none() && events.iter().any(|event| is_dropped(event, id, rule))
            }
            SendOutcome::Duplicate(_) => events.is_empty(),
            SendOutcome::Directive => {
                way.is_none() && reply.reply.is_some() && self.is_obeyed(live, incoming)
            }
            other => return Err(format!("answered {other:?}")),
        })
    }

    /// What `/stop` and `/new` leave: nothing that waits, nothing that runs on.
    fn is_obeyed(&mut self, live: &Scheduler, incoming: &Incoming) -> bool {
        let lane = LaneName::session(&incoming.session).unwrap();
        match read_directive(&incoming.text) {
            Reading::Whole(Directive::Stop) => {
                self.count("stopped");
                self.is_swept(live, incoming, None)
            }
            Reading::Whole(Directive::New { .. }) => {
                self.count("renewed");
                self.session(lane.as_str()).fresh && self.is_swept(live, incoming, None)
            }
            Reading::Whole(Directive::Set(queue)) if queue.check(&self.settings.policy).is_ok() => {
                let set = self.session(lane.as_str()).queue;
                queue.over(set) == set
            }
            Reading::Whole(Directive::Reset) => self.session(lane.as_str()).queue.is_empty(),
            _ => true,
        }
    }

    /// Whether nothing of a session is left but this message, and what is being stopped.
    fn is_swept(&self, live: &Scheduler, incoming: &Incoming, but: Option<MessageId>) -> bool {
        let lane = LaneName::session(&incoming.session).unwrap();
        let session = lane.as_str();
        let mut left = self.messages.values().filter(|known| known.session == session);
        let all_ended = left.all(|known| match known.place {
            Where::Ended => true,
            Where::Waiting | Where::Pending(_) => false,
            Where::Turn(turn) | Where::Steered(turn) => {
                let running = live.task(turn).and_then(|task| task.running);
                Some(known.message.id) == but || running.is_some_and(|running| running.stopping)
            }
        });
        let untold = self.sessions.get(session).is_some_and(|session| !session.untold.is_empty());
        all_ended && !untold
    }
}

fn is_dropped(event: &Event, id: MessageId, by: Dropped) -> bool {
    let Event::Session(event) = event else { return false };
    matches!(
        &event.change,
        SessionChange::Ended { message, end: MessageEnd::Dropped { rule } } if *message == id && *rule == by
    )
}

/// Whether a message could be refused so.
fn check_refused(foretold: &Foretold, rejection: &Rejection, events: &[Event]) -> Result<(), String> {
    let may_be = match foretold {
        Foretold::Refused(code) => rejection.code() == *code,
        // Whether the agent's lane has room is asked now, and never later.
        Foretold::Start | Foretold::Answer(SendOutcome::Queued | SendOutcome::Dropped(Dropped::New)) => {
            rejection.code() == "AT_CAPACITY"
        }
        _ => false,
    };
    if may_be && events.is_empty() {
        Ok(())
    } else {
        Err(format!("refused as {}, foretold {foretold:?}", rejection.code()))
    }
}

fn is_foretold(foretold: &Foretold, reply: &MessageReply) -> bool {
    match reply.outcome {
        // One that lines up where a turn is due is in that turn at once.
        SendOutcome::Started => [Foretold::Start, Foretold::Answer(SendOutcome::Queued)].contains(foretold),
        outcome @ (SendOutcome::Steered | SendOutcome::SteeredAndQueued) => {
            *foretold == Foretold::Into(reply.turn.unwrap_or(TaskId(0)), outcome)
        }
        outcome => *foretold == Foretold::Answer(outcome),
    }
}

/// Which way a message went.
fn way_of(events: &[Event], id: MessageId) -> Option<Way> {
    events.iter().find_map(|event| match event {
        Event::Session(event) => match &event.change {
            SessionChange::Accepted { message, way } if message.id == id => Some(*way),
            _ => None,
        },
        _ => None,
    })
}
