//! What edits of waiting messages must do, to messages in any state.

use laneway_core::{
    BadMessage, Command, Event, LaneName, MessageId, Rejection, Reply, Scheduler, SendOutcome,
    SessionCommand, SessionDelta,
};

use crate::ledger::{Ledger, MessageState, in_turn};

impl Ledger {
    /// Checks what an edit did to the message that it named, whatever the state of the message.
    pub(crate) fn check_edited(
        &mut self,
        live: &Scheduler,
        before: &Before,
        asked: &SessionCommand,
        reply: &Result<Reply, Rejection>,
    ) -> Result<(), String> {
        let now = |id: &MessageId| self.messages.get(id).map(|known| known.state);
        let line = |id: &MessageId| {
            let session = self.messages.get(id).map(|known| known.session.as_str())?;
            let view = live.sessions().into_iter().find(|view| view.lane.as_str() == session)?;
            Some(view.waiting.iter().map(|waiting| waiting.id).collect::<Vec<_>>())
        };
        let is_right = match (asked, reply) {
            (SessionCommand::Withdraw { message }, Ok(_)) => {
                let was_parked = before.parked.contains(message) && !self.parked.contains(message);
                let is_gone = before.is_editable && now(message) == Some(MessageState::Ended);
                let others_stay = before.with_it.iter().all(|other| now(other) != Some(MessageState::Ended));
                was_parked || (is_gone && others_stay)
            }
            (SessionCommand::SendNow { message }, Ok(_)) => match now(message) {
                Some(MessageState::Waiting) => {
                    line(message).is_some_and(|line| line.first() == Some(message))
                }
                Some(MessageState::Turn(_)) => before.state == Some(MessageState::Waiting),
                _ => false,
            },
            (SessionCommand::Promote { message }, Ok(_)) => {
                before.state == Some(MessageState::Waiting)
                    && matches!(now(message), Some(MessageState::Pending(_)))
            }
            (SessionCommand::Promote { .. }, Err(Rejection::BadMessage(BadMessage::NotSteerable))) => {
                before.state == Some(MessageState::Waiting)
            }
            (SessionCommand::Promote { .. }, Err(rejection)) => {
                before.state != Some(MessageState::Waiting) && is_right_refusal(rejection, before)
            }
            (SessionCommand::Move { message, before: None }, Ok(_)) => match now(message) {
                Some(MessageState::Waiting) => line(message).is_some_and(|line| line.last() == Some(message)),
                state => state.is_some() && before.state == Some(MessageState::Waiting),
            },
            (SessionCommand::Move { message, before: Some(other) }, Ok(_)) => {
                match (now(message), now(other)) {
                    (Some(MessageState::Waiting), Some(MessageState::Waiting)) => line(message)
                        .is_some_and(|line| line.windows(2).any(|pair| pair == [*message, *other])),
                    _ => before.state == Some(MessageState::Waiting),
                }
            }
            (SessionCommand::Resend { message, .. }, Ok(Reply::Message(reply))) => {
                let is_dropped = matches!(reply.outcome, SendOutcome::Dropped(_));
                before.parked.contains(message) && self.parked.contains(message) == is_dropped
            }
            (SessionCommand::Resend { message, .. }, Err(_)) => {
                before.parked.contains(message) == self.parked.contains(message)
            }
            (SessionCommand::Withdraw { message }, Err(rejection)) => {
                !before.is_editable && !before.parked.contains(message) && is_right_refusal(rejection, before)
            }
            (SessionCommand::SendNow { .. }, Err(rejection)) => {
                before.state != Some(MessageState::Waiting) && is_right_refusal(rejection, before)
            }
            (SessionCommand::Move { before: None, .. }, Err(rejection)) => {
                before.state != Some(MessageState::Waiting) && is_right_refusal(rejection, before)
            }
            _ => true,
        };
        if is_right { Ok(()) } else { Err(format!("{:?} became {reply:?}", before.state)) }
    }

    /// What is known before an edit about the message that it names.
    pub(crate) fn before(&self, live: &Scheduler, asked: &SessionCommand) -> Option<Before> {
        let message = match asked {
            SessionCommand::Withdraw { message }
            | SessionCommand::SendNow { message }
            | SessionCommand::Promote { message }
            | SessionCommand::Move { message, .. }
            | SessionCommand::Resend { message, .. } => message,
            _ => return None,
        };
        let state = self.messages.get(message).map(|known| known.state);
        let turn = match state {
            Some(MessageState::Turn(turn) | MessageState::Steered(turn) | MessageState::Pending(turn)) => {
                Some(turn)
            }
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
            state,
            is_editable: matches!(state, Some(MessageState::Waiting | MessageState::Pending(_)))
                || starts_later,
            with_it: others.map(|known| known.message.id).collect(),
            parked: self.parked.clone(),
        })
    }

    /// After a session was cleared or stopped, nothing waits in it.
    pub(crate) fn check_emptied(&self, live: &Scheduler, asked: &Command) -> Result<(), String> {
        let Command::Session(command) = asked else { return Ok(()) };
        let (SessionCommand::Clear { session } | SessionCommand::Stop { session }) = &**command else {
            return Ok(());
        };
        let lane = LaneName::session(session).unwrap();
        let waits = |state: MessageState| match state {
            MessageState::Waiting => true,
            MessageState::Turn(turn) => live.task(turn).is_some_and(|task| task.running.is_none()),
            // A message for the running turn continues, unless the session is stopped.
            MessageState::Pending(_) => matches!(**command, SessionCommand::Stop { .. }),
            _ => false,
        };
        let left = self.messages.values().find(|known| known.session == lane.as_str() && waits(known.state));
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
            SessionDelta::Taken { messages, .. } => Some(messages.clone()),
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

/// What was known about a message before an edit.
pub(crate) struct Before {
    state: Option<MessageState>,
    is_editable: bool,
    with_it: Vec<MessageId>,
    parked: Vec<MessageId>,
}

/// Whether the rejection of an edit matches the state of the message.
fn is_right_refusal(rejection: &Rejection, before: &Before) -> bool {
    match before.state {
        None | Some(MessageState::Ended) => matches!(rejection, Rejection::NoSuchMessage { .. }),
        _ => matches!(rejection, Rejection::MessageInTurn { .. }),
    }
}
