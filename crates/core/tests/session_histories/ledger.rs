//! What the events alone say about every message, turn and session.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{
    Address, End, Event, Fence, Message, MessageEnd, MessageId, MessageSettings, Place, QueueOverrides,
    SessionDelta, TaskId, Timestamp, Way,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageState {
    Waiting,
    Pending(TaskId),
    Steered(TaskId),
    Turn(TaskId),
    Ended,
}

pub(crate) struct KnownMessage {
    pub(crate) session: String,
    pub(crate) message: Message,
    pub(crate) state: MessageState,
    pub(crate) moved: bool,
    pub(crate) hastened: bool,
    /// The number of its failed turns.
    pub(crate) tries: u8,
    pub(crate) alone: bool,
    /// When it may be tried again.
    pub(crate) retry_at: Timestamp,
    /// Its turn timed out, so other messages come first.
    pub(crate) yields: bool,
    /// The attempt that took it.
    pub(crate) fence: Option<Fence>,
    pub(crate) end: Option<(MessageEnd, Timestamp)>,
    pub(crate) turns: u32,
}

/// Dropped messages to one address that no turn has reported.
#[derive(Clone, Debug)]
pub(crate) struct UnreportedDrops {
    pub(crate) address: Arc<Address>,
    pub(crate) count: u64,
    pub(crate) tries: u8,
    pub(crate) retry_at: Timestamp,
}

#[derive(Default)]
pub(crate) struct Session {
    pub(crate) queue: QueueOverrides,
    pub(crate) fresh: bool,
    pub(crate) unreported: Vec<UnreportedDrops>,
}

#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) session: String,
    pub(crate) fresh: bool,
    pub(crate) summary: Option<UnreportedDrops>,
    pub(crate) steering: Option<Fence>,
    pub(crate) gave_up: bool,
    pub(crate) is_direct: bool,
}

/// A directive with its message id, which a duplicate must match.
pub(crate) struct AnsweredDirective {
    pub(crate) session: String,
    pub(crate) message_id: Arc<str>,
    pub(crate) place: Place,
    pub(crate) message: MessageId,
    pub(crate) at: Timestamp,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) messages: BTreeMap<MessageId, KnownMessage>,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) turns: BTreeMap<TaskId, Turn>,
    pub(crate) answered: Vec<AnsweredDirective>,
    pub(crate) parked: Vec<MessageId>,
    pub(crate) settings: MessageSettings,
    running: BTreeMap<TaskId, Fence>,
    pub(crate) counts: BTreeMap<String, u64>,
}

impl Ledger {
    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn live(&self) -> usize {
        self.messages.values().filter(|known| known.state != MessageState::Ended).count()
    }

    pub(crate) fn read(&mut self, now: Timestamp, event: &Event) -> Result<(), String> {
        match event {
            Event::MessagesConfigured { settings } => self.settings = (**settings).clone(),
            Event::Granted { task, fence, .. } => {
                self.running.insert(*task, *fence);
            }
            Event::Retrying { task, .. } | Event::Redelivered { task, .. } => {
                self.running.remove(task);
            }
            Event::Ended { task, end } => self.task_ended(*task, end),
            Event::Session(event) => {
                let session = event.session.to_string();
                self.sessions.entry(session.clone()).or_default();
                return self.read_session(now, session, &event.change);
            }
            _ => {}
        }
        Ok(())
    }

    fn read_session(&mut self, now: Timestamp, session: String, change: &SessionDelta) -> Result<(), String> {
        match change {
            SessionDelta::Accepted { message, way } => return self.accepted(session, message, *way),
            SessionDelta::TurnBegan { turn, messages, summary } => {
                return self.began(now, session, *turn, messages, summary.as_ref());
            }
            SessionDelta::SteeringSet { turn, fence, open } => {
                let known = self.turns.entry(*turn).or_insert(Turn { is_direct: true, ..Turn::default() });
                (known.session, known.steering) = (session, open.then_some(*fence));
            }
            SessionDelta::Taken { turn, messages, fence } => return self.taken(*turn, *fence, messages),
            SessionDelta::Returned { turn, messages } => return self.returned(*turn, messages),
            SessionDelta::Retrying { turn, at, alone, redelivered, yields } => {
                self.count(if *redelivered { "redelivered" } else { "retrying" });
                return self.retrying(now, *turn, *at, *alone, (*redelivered, *yields));
            }
            SessionDelta::GaveUp { turn } => {
                self.count("gave up");
                self.turns.get_mut(turn).ok_or("no such turn")?.gave_up = true;
            }
            SessionDelta::Ended { message, end } => return self.ended(now, &session, *message, end),
            SessionDelta::TurnOver { turn } => {
                self.turns.remove(turn);
                if let Some(known) = self.messages.values().find(|known| in_turn(known, *turn)) {
                    return Err(format!("{:?} is left in a turn that is over", known.message.id));
                }
            }
            SessionDelta::Configured { queue } => self.session(&session).queue = *queue,
            SessionDelta::Moved { message, .. } => {
                self.count("moved");
                self.known(*message)?.moved = true;
            }
            SessionDelta::Hastened { message } => {
                self.count("hastened");
                let known = self.known(*message)?;
                (known.moved, known.hastened) = (true, true);
                (known.retry_at, known.yields) = (Timestamp(0), false);
            }
            SessionDelta::Promoted { message, turn } => {
                self.count("promoted");
                let known = self.known(*message)?;
                if known.state != MessageState::Waiting {
                    return Err(format!("{message:?} was promoted from {:?}", known.state));
                }
                known.state = MessageState::Pending(*turn);
            }
            SessionDelta::Renewed => self.session(&session).fresh = true,
            SessionDelta::SummaryDropped => self.session(&session).unreported.clear(),
            // `check_sent` records the answer.
            SessionDelta::Answered { .. } => {}
            SessionDelta::TakenUp { message, again } => {
                self.count(if again.is_some() { "sent again" } else { "discarded" });
                let before = self.parked.len();
                self.parked.retain(|parked| parked != message);
                if self.parked.len() == before {
                    return Err(format!("{message:?} was not parked"));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn session(&mut self, session: &str) -> &mut Session {
        self.sessions.entry(session.to_owned()).or_default()
    }

    fn known(&mut self, id: MessageId) -> Result<&mut KnownMessage, String> {
        let known = self.messages.get_mut(&id).ok_or(format!("{id:?} was never accepted"))?;
        if known.state == MessageState::Ended { Err(format!("{id:?} has ended")) } else { Ok(known) }
    }

    /// A fresh start that a turn did not make passes to the next turn.
    fn task_ended(&mut self, task: TaskId, end: &End) {
        let was_running = self.running.remove(&task).is_some();
        let was_made = match end {
            End::Completed => true,
            End::Cancelled { .. } => was_running,
            _ => false,
        };
        if let Some(turn) = self.turns.get_mut(&task).filter(|turn| turn.fresh && !was_made) {
            turn.fresh = false;
            let session = turn.session.clone();
            self.session(&session).fresh = true;
            self.count("fresh start passed on");
        }
    }

    fn accepted(&mut self, session: String, message: &Message, way: Way) -> Result<(), String> {
        let state = match way {
            Way::Steer { turn } => MessageState::Pending(turn),
            Way::Line | Way::Both { .. } => MessageState::Waiting,
        };
        let known = KnownMessage {
            session,
            message: message.clone(),
            state,
            moved: false,
            hastened: false,
            tries: 0,
            alone: false,
            retry_at: Timestamp(0),
            yields: false,
            fence: None,
            end: None,
            turns: 0,
        };
        match self.messages.insert(message.id, known) {
            Some(_) => Err("accepted twice".into()),
            None => Ok(()),
        }
    }

    fn began(
        &mut self,
        now: Timestamp,
        session: String,
        turn: TaskId,
        messages: &[MessageId],
        summary: Option<&Arc<Address>>,
    ) -> Result<(), String> {
        self.check_turn(now, &session, messages)?;
        self.count(if messages.len() > 1 { "turn of several" } else { "turn of one" });
        let note = self.session(&session);
        let fresh = std::mem::take(&mut note.fresh);
        let summary = match summary {
            None => None,
            Some(address) => {
                let at = note.unreported.iter().position(|unreported| unreported.address == *address);
                Some(note.unreported.remove(at.ok_or("a summary without dropped messages")?))
            }
        };
        if summary.is_some() {
            self.count("turn with a summary");
        }
        if fresh {
            self.count("fresh turn");
        }
        if messages.is_empty() && summary.is_none() {
            return Err("a turn about nothing".into());
        }
        for id in messages {
            let known = self.known(*id)?;
            if known.state != MessageState::Waiting || known.session != session {
                return Err(format!("{id:?} became a turn from {:?}", known.state));
            }
            known.state = MessageState::Turn(turn);
            known.turns += 1;
            if known.turns > u32::from(laneway_core::ATTEMPTS_MAX) {
                return Err(format!("{id:?} was in {} turns", known.turns));
            }
        }
        self.turns.insert(turn, Turn { session, fresh, summary, ..Turn::default() });
        Ok(())
    }

    fn taken(&mut self, turn: TaskId, fence: Fence, messages: &[MessageId]) -> Result<(), String> {
        if messages.is_empty() {
            return Err("nothing was taken".into());
        }
        for id in messages {
            let known = self.known(*id)?;
            let again = known.state == MessageState::Steered(turn);
            if again && known.fence == Some(fence) {
                return Err(format!("{id:?} was taken twice by one attempt"));
            }
            match known.state {
                MessageState::Pending(for_turn) | MessageState::Steered(for_turn) if for_turn == turn => {
                    (known.state, known.fence) = (MessageState::Steered(turn), Some(fence));
                }
                // A copy: the message itself waits or is in a turn.
                MessageState::Waiting | MessageState::Turn(_) => {}
                other => return Err(format!("{id:?} was taken from {other:?}")),
            }
            self.count(if again { "taken again" } else { "taken" });
        }
        Ok(())
    }

    fn returned(&mut self, turn: TaskId, messages: &[MessageId]) -> Result<(), String> {
        for id in messages {
            let known = self.known(*id)?;
            match known.state {
                MessageState::Pending(from) | MessageState::Steered(from) if from == turn => {
                    known.state = MessageState::Waiting
                }
                // A copy.
                MessageState::Waiting => {}
                other => return Err(format!("{id:?} was returned from {other:?}")),
            }
            self.count("returned");
        }
        Ok(())
    }

    fn retrying(
        &mut self,
        now: Timestamp,
        turn: TaskId,
        at: Timestamp,
        alone: bool,
        (redelivered, yields): (bool, bool),
    ) -> Result<(), String> {
        if alone {
            self.count("each alone");
        }
        if yields {
            self.count("after all others");
        }
        self.check_back_off(now, turn, at, alone, redelivered)?;
        let Some(note) = self.turns.get_mut(&turn) else { return Err("no such turn".into()) };
        let (session, summary) = (note.session.clone(), note.summary.take());
        for known in self.messages.values_mut() {
            if [MessageState::Turn(turn), MessageState::Steered(turn)].contains(&known.state) {
                (known.state, known.moved, known.hastened) = (MessageState::Waiting, false, false);
                known.tries += 1;
                known.alone |= alone;
                (known.retry_at, known.yields) = (at, yields);
            }
        }
        let session = self.session(&session);
        if let Some(UnreportedDrops { address, count, tries, .. }) = summary {
            match session.unreported.iter_mut().find(|unreported| unreported.address == address) {
                Some(newer) => {
                    (newer.count, newer.tries, newer.retry_at) = (newer.count + count, tries + 1, at);
                }
                None => {
                    session.unreported.push(UnreportedDrops {
                        address,
                        count,
                        tries: tries + 1,
                        retry_at: at,
                    });
                }
            }
        }
        Ok(())
    }

    fn ended(
        &mut self,
        now: Timestamp,
        session: &str,
        id: MessageId,
        end: &MessageEnd,
    ) -> Result<(), String> {
        let word = match end {
            MessageEnd::Delivered { .. } => "delivered".to_owned(),
            MessageEnd::Steered { .. } => "steered".to_owned(),
            MessageEnd::Dropped { rule } => format!("dropped {}", rule.as_str()),
            MessageEnd::Cancelled { .. } => "cancelled".to_owned(),
            MessageEnd::Parked { .. } => "parked".to_owned(),
        };
        self.count(&word);
        if !self.messages.contains_key(&id) && matches!(end, MessageEnd::Dropped { .. }) {
            // The session refused this new message.
            return Ok(());
        }
        self.check_end(id, end)?;
        let known = self.known(id)?;
        known.state = MessageState::Ended;
        known.end = Some((end.clone(), now));
        let address = Arc::clone(&known.message.address);
        match end {
            MessageEnd::Parked { .. } => self.parked.push(id),
            MessageEnd::Dropped { rule: laneway_core::Dropped::Summarize } => {
                let session = self.session(session);
                match session.unreported.iter_mut().find(|unreported| unreported.address == address) {
                    Some(unreported) => unreported.count += 1,
                    None => session.unreported.push(UnreportedDrops {
                        address,
                        count: 1,
                        tries: 0,
                        retry_at: Timestamp(0),
                    }),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

pub(crate) fn in_turn(known: &KnownMessage, turn: TaskId) -> bool {
    [MessageState::Turn(turn), MessageState::Steered(turn), MessageState::Pending(turn)]
        .contains(&known.state)
}
