//! What edits of the line must do, to messages in any state.

use laneway_core::{
    Command, Event, LaneName, MessageId, Rejection, Reply, Scheduler, SendOutcome, SessionChange,
    SessionCommand,
};

use crate::ledger::{Ledger, Where, in_turn};

impl Ledger {
    /// What an edit did to the message that it named, whatever state that was in.
    pub(crate) fn check_edited(
        &mut self,
        live: &Scheduler,
        before: &Before,
        asked: &SessionCommand,
        reply: &Result<Reply, Rejection>,
    ) -> Result<(), String> {
        let now = |id: &MessageId| self.messages.get(id).map(|known| known.place);
        let line = |id: &MessageId| {
            let session = self.messages.get(id).map(|known| known.session.as_str())?;
            let view = live.sessions().into_iter().find(|view| view.lane.as_str() == session)?;
            Some(view.waiting.iter().map(|waiting| waiting.id).collect::<Vec<_>>())
        };
        let is_right = match (asked, reply) {
            (SessionCommand::Withdraw { message }, Ok(_)) => {
                let was_aside = before.aside.contains(message) && !self.aside.contains(message);
                let is_gone = before.is_in_reach && now(message) == Some(Where::Ended);
                let others_stay = before.with_it.iter().all(|other| now(other) != Some(Where::Ended));
                was_aside || (is_gone && others_stay)
            }
            (SessionCommand::SendNow { message }, Ok(_)) => match now(message) {
                Some(Where::Waiting) => line(message).is_some_and(|line| line.first() == Some(message)),
                Some(Where::Turn(_)) => before.place == Some(Where::Waiting),
                _ => false,
            },
            (SessionCommand::Move { message, before: None }, Ok(_)) => match now(message) {
                Some(Where::Waiting) => line(message).is_some_and(|line| line.last() == Some(message)),
                place => place.is_some() && before.place == Some(Where::Waiting),
            },
            (SessionCommand::Move { message, before: Some(other) }, Ok(_)) => {
                match (now(message), now(other)) {
                    (Some(Where::Waiting), Some(Where::Waiting)) => line(message)
                        .is_some_and(|line| line.windows(2).any(|pair| pair == [*message, *other])),
                    _ => before.place == Some(Where::Waiting),
                }
            }
            (SessionCommand::Resend { message, .. }, Ok(Reply::Message(reply))) => {
                let is_dropped = matches!(reply.outcome, SendOutcome::Dropped(_));
                before.aside.contains(message) && self.aside.contains(message) == is_dropped
            }
            (SessionCommand::Resend { message, .. }, Err(_)) => {
                before.aside.contains(message) == self.aside.contains(message)
            }
            (SessionCommand::Withdraw { message }, Err(rejection)) => {
                !before.is_in_reach && !before.aside.contains(message) && is_out(rejection, before)
            }
            (SessionCommand::SendNow { .. }, Err(rejection)) => {
                before.place != Some(Where::Waiting) && is_out(rejection, before)
            }
            (SessionCommand::Move { before: None, .. }, Err(rejection)) => {
                before.place != Some(Where::Waiting) && is_out(rejection, before)
            }
            _ => true,
        };
        if is_right { Ok(()) } else { Err(format!("{:?} became {reply:?}", before.place)) }
    }

    /// What is known of the message that an edit names, before.
    pub(crate) fn before(&self, live: &Scheduler, asked: &SessionCommand) -> Option<Before> {
        let message = match asked {
            SessionCommand::Withdraw { message }
            | SessionCommand::SendNow { message }
            | SessionCommand::Move { message, .. }
            | SessionCommand::Resend { message, .. } => message,
            _ => return None,
        };
        let place = self.messages.get(message).map(|known| known.place);
        let turn = match place {
            Some(Where::Turn(turn) | Where::Steered(turn) | Where::Pending(turn)) => Some(turn),
            _ => None,
        };
        let starts_later = turn.is_some_and(|turn| {
            let is_direct = self.turns.get(&turn).is_none_or(|note| note.is_direct);
            !is_direct && live.task(turn).is_some_and(|task| task.running.is_none())
        });
        let others = self
            .messages
            .values()
            .filter(|known| turn.is_some_and(|turn| in_turn(known, turn)) && known.message.id != *message);
        Some(Before {
            place,
            is_in_reach: place == Some(Where::Waiting) || starts_later,
            with_it: others.map(|known| known.message.id).collect(),
            aside: self.aside.clone(),
        })
    }

    /// After a session was cleared or stopped, nothing waits in it.
    pub(crate) fn check_emptied(&self, live: &Scheduler, asked: &Command) -> Result<(), String> {
        let Command::Session(command) = asked else { return Ok(()) };
        let (SessionCommand::Clear { session } | SessionCommand::Stop { session }) = &**command else {
            return Ok(());
        };
        let lane = LaneName::session(session).unwrap();
        let waits = |place: Where| match place {
            Where::Waiting => true,
            Where::Turn(turn) => live.task(turn).is_some_and(|task| task.running.is_none()),
            // A message for the running turn goes on, unless everything is stopped.
            Where::Pending(_) => matches!(**command, SessionCommand::Stop { .. }),
            _ => false,
        };
        let left = self.messages.values().find(|known| known.session == lane.as_str() && waits(known.place));
        left.map_or(Ok(()), |known| Err(format!("{:?} still waits", known.message.id)))
    }
}

/// An attempt takes only messages that it names, and the reply holds exactly those.
pub(crate) fn check_taken(
    asked: &SessionCommand,
    reply: &Result<Reply, Rejection>,
    events: &[Event],
) -> Result<(), String> {
    let SessionCommand::TakeSteering { only, .. } = asked else { return Ok(()) };
    let given: Vec<MessageId> = match reply {
        Ok(Reply::Steering(given)) => given.iter().map(|message| message.id).collect(),
        _ => vec![],
    };
    let taken = events.iter().find_map(|event| match event {
        Event::Session(event) => match &event.change {
            SessionChange::Taken { messages, .. } => Some(messages.clone()),
            _ => None,
        },
        _ => None,
    });
    let is_named = |id: &MessageId| only.as_ref().is_none_or(|only| only.contains(id));
    if taken.unwrap_or_default() == given && given.iter().all(is_named) {
        Ok(())
    } else {
        Err(format!("{given:?} were given"))
    }
}

/// What was known of a message before an edit of the line.
pub(crate) struct Before {
    place: Option<Where>,
    is_in_reach: bool,
    with_it: Vec<MessageId>,
    aside: Vec<MessageId>,
}

/// Whether the refusal of an edit matches the place of the message.
fn is_out(rejection: &Rejection, before: &Before) -> bool {
    match before.place {
        None | Some(Where::Ended) => matches!(rejection, Rejection::NoSuchMessage { .. }),
        _ => matches!(rejection, Rejection::MessageInTurn { .. }),
    }
}
