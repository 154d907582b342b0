//! What is known of every message from the events alone.

use std::collections::BTreeMap;

use laneway_core::{
    Command, Event, Message, MessageEnd, MessageId, MessageStatus, Rejection, Reply, Scheduler,
    SessionChange, SessionCommand, TaskId, Timestamp, Way,
};

use crate::script::MAX_WAIT_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Waiting,
    Pending(TaskId),
    Steered(TaskId),
    Turn(TaskId),
    Ended,
}

pub(crate) struct Known {
    pub(crate) session: String,
    pub(crate) message: Message,
    pub(crate) place: Where,
    pub(crate) moved: bool,
    turns: u32,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) messages: BTreeMap<MessageId, Known>,
    /// Of each session: nothing is tried again before.
    retry_at: BTreeMap<String, Timestamp>,
    pub(crate) counts: BTreeMap<String, u64>,
}

impl Ledger {
    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn live(&self) -> usize {
        self.messages.values().filter(|known| known.place != Where::Ended).count()
    }

    pub(crate) fn hear(&mut self, now: Timestamp, event: &Event) -> Result<(), String> {
        let Event::Session(event) = event else { return Ok(()) };
        let session = event.session.to_string();
        match &event.change {
            SessionChange::Accepted { message, way } => self.accepted(session, message, *way),
            SessionChange::TurnBegan { turn, messages, summary } => {
                if messages.len() > 1 {
                    self.count("turn of several");
                }
                if summary.is_some() {
                    self.count("turn with a summary");
                }
                self.began(&session, *turn, messages)
            }
            SessionChange::Taken { turn, messages, .. } => self.taken(*turn, messages),
            SessionChange::Returned { turn, messages } => self.returned(*turn, messages),
            SessionChange::Retrying { turn, at, alone, redelivered } => {
                self.count("trying again");
                if *alone {
                    self.count("each alone");
                }
                if *redelivered {
                    self.count("redelivered");
                }
                if *at < now {
                    return Err("tried again in the past".into());
                }
                self.retry_at.insert(session, *at);
                for known in self.messages.values_mut() {
                    if [Where::Turn(*turn), Where::Steered(*turn)].contains(&known.place) {
                        (known.place, known.moved) = (Where::Waiting, false);
                    }
                }
                Ok(())
            }
            SessionChange::Ended { message, end } => self.ended(*message, end),
            SessionChange::TurnOver { turn } => {
                match self.messages.values().find(|known| in_turn(known, *turn)) {
                    Some(known) => Err(format!("{:?} is left in a turn that is over", known.message.id)),
                    None => Ok(()),
                }
            }
            SessionChange::Moved { message, .. } | SessionChange::Hastened { message } => {
                let hastened = matches!(event.change, SessionChange::Hastened { .. });
                self.count(if hastened { "hastened" } else { "moved" });
                self.known(*message)?.moved = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn known(&mut self, id: MessageId) -> Result<&mut Known, String> {
        let known = self.messages.get_mut(&id).ok_or(format!("{id:?} was never accepted"))?;
        if known.place == Where::Ended { Err(format!("{id:?} has ended")) } else { Ok(known) }
    }

    fn accepted(&mut self, session: String, message: &Message, way: Way) -> Result<(), String> {
        let place = match way {
            Way::Steer { turn } => Where::Pending(turn),
            Way::Line | Way::Both { .. } => Where::Waiting,
        };
        let known = Known { session, message: message.clone(), place, moved: false, turns: 0 };
        match self.messages.insert(message.id, known) {
            Some(_) => Err("accepted twice".into()),
            None => Ok(()),
        }
    }

    /// Whoever was accepted earlier, to the same place with the same permissions, is not left behind.
    fn began(&mut self, session: &str, turn: TaskId, messages: &[MessageId]) -> Result<(), String> {
        for id in messages {
            let known = self.known(*id)?;
            if known.place != Where::Waiting || known.session != session {
                return Err(format!("{id:?} became a turn from {:?}", known.place));
            }
            known.place = Where::Turn(turn);
            known.turns += 1;
            if known.turns > 9 {
                return Err(format!("{id:?} was in {} turns", known.turns));
            }
        }
        for id in messages {
            let taken = &self.messages[id];
            let is_overtaken = |other: &&Known| {
                let (one, two) = (&taken.message, &other.message);
                let same = one.address.place == two.address.place
                    && one.address.permissions == two.address.permissions
                    && taken.session == other.session;
                same && other.place == Where::Waiting && !other.moved && two.number < one.number
            };
            if let Some(other) = self.messages.values().find(is_overtaken)
                && !taken.moved
            {
                return Err(format!("{id:?} overtook {:?}", other.message.id));
            }
        }
        Ok(())
    }

    fn taken(&mut self, turn: TaskId, messages: &[MessageId]) -> Result<(), String> {
        for id in messages {
            let known = self.known(*id)?;
            let again = known.place == Where::Steered(turn);
            match known.place {
                Where::Pending(for_turn) if for_turn == turn => known.place = Where::Steered(turn),
                Where::Steered(for_turn) if for_turn == turn => {}
                // A copy: the message itself is elsewhere.
                Where::Waiting | Where::Turn(_) => {}
                other => return Err(format!("{id:?} was taken from {other:?}")),
            }
            self.count(if again { "taken again" } else { "taken" });
        }
        Ok(())
    }

    fn returned(&mut self, turn: TaskId, messages: &[MessageId]) -> Result<(), String> {
        for id in messages {
            let known = self.known(*id)?;
            match known.place {
                Where::Pending(from) | Where::Steered(from) if from == turn => known.place = Where::Waiting,
                // A copy.
                Where::Waiting => {}
                other => return Err(format!("{id:?} was returned from {other:?}")),
            }
            self.count("returned");
        }
        Ok(())
    }

    fn ended(&mut self, id: MessageId, end: &MessageEnd) -> Result<(), String> {
        let word = match end {
            MessageEnd::Delivered { .. } => "delivered".to_owned(),
            MessageEnd::Steered { .. } => "steered".to_owned(),
            MessageEnd::Dropped { rule } => format!("dropped {}", rule.as_str()),
            MessageEnd::Cancelled { .. } => "cancelled".to_owned(),
            MessageEnd::SetAside { .. } => "set aside".to_owned(),
        };
        self.count(&word);
        if !self.messages.contains_key(&id) && matches!(end, MessageEnd::Dropped { .. }) {
            // A newcomer that was never let in.
            return Ok(());
        }
        let known = self.known(id)?;
        let right = match end {
            MessageEnd::Delivered { turn } => known.place == Where::Turn(*turn),
            MessageEnd::Steered { turn } => known.place == Where::Steered(*turn),
            MessageEnd::Dropped { .. } => known.place == Where::Waiting,
            MessageEnd::SetAside { .. } => matches!(known.place, Where::Turn(_) | Where::Steered(_)),
            MessageEnd::Cancelled { .. } => true,
        };
        if !right {
            return Err(format!("{id:?} ended as {end:?} from {:?}", known.place));
        }
        known.place = Where::Ended;
        Ok(())
    }

    pub(crate) fn answer(&mut self, asked: &Command, reply: &Result<Reply, Rejection>) {
        let Command::Session(command) = asked else { return };
        if let (SessionCommand::Send(_), Ok(Reply::Message(reply))) = (&**command, reply) {
            self.count(reply.outcome.as_str());
        }
    }

    /// What the scheduler says of each message is what the events said; nothing waits for too long.
    pub(crate) fn compare(&self, scheduler: &Scheduler) -> Result<(), String> {
        for (id, known) in &self.messages {
            let status = scheduler.message(*id);
            let right = match (&status, known.place) {
                (Some(MessageStatus::Waiting { .. }), Where::Waiting) => true,
                (Some(MessageStatus::Steering { turn }), Where::Pending(known)) => *turn == known,
                (Some(MessageStatus::Steered { turn, .. }), Where::Steered(known)) => *turn == known,
                (Some(MessageStatus::InTurn { turn }), Where::Turn(known)) => *turn == known,
                (Some(MessageStatus::Ended { .. }), Where::Ended) => true,
                _ => false,
            };
            if !right {
                return Err(format!("{id:?} is {status:?}, the events say {:?}", known.place));
            }
        }
        for session in scheduler.sessions() {
            let Some(oldest) = session.waiting.iter().map(|message| message.at).min() else { continue };
            let retry_at = self.retry_at.get(session.lane.as_str()).copied().unwrap_or_default();
            let latest = (oldest + MAX_WAIT_MAX).max(retry_at);
            if !session.busy && scheduler.now() > latest {
                return Err(format!("{} waits at {}, later than {latest}", session.lane, scheduler.now()));
            }
        }
        Ok(())
    }
}

fn in_turn(known: &Known, turn: TaskId) -> bool {
    [Where::Turn(turn), Where::Steered(turn), Where::Pending(turn)].contains(&known.place)
}
