//! Parked messages: sent once more, or thrown away.
//!
//! An end never changes, so that what is sent once more is a new message that says the same.

use std::sync::Arc;

use crate::api::command::Reply;
use crate::api::name::LaneName;
use crate::api::rejection::Rejection;
use crate::api::session_command::{SendOutcome, SessionDelta};
use crate::scheduler::Scheduler;
use crate::sessions::message::{Agent, BadMessage, Incoming, Message, MessageId};
use crate::step::Step;

impl Step<'_> {
    /// Sends a parked message once more, as it would be sent now. Refused or dropped, it stays where it is; it goes when
    /// it was accepted, or when its sender has sent it again himself.
    pub(crate) fn resend(&mut self, message: MessageId, again: MessageId) -> Result<Reply, Rejection> {
        let Some((lane, kept)) = self.parked_message(message) else { return Err(self.not_parked(message)) };
        let incoming = once_more(&lane, &kept, again);
        self.check_new(&incoming)?;
        let reply = match self.same_message(&lane, &incoming) {
            Some(same) => self.duplicate(again, same),
            None => self.dispatch(&lane, &incoming)?,
        };
        let says_so = match &reply {
            Reply::Message(reply) => match reply.outcome {
                SendOutcome::Dropped(_) => None,
                SendOutcome::Duplicate(same) => Some(same),
                _ => Some(again),
            },
            _ => None,
        };
        if says_so.is_some() {
            self.in_session(&lane, SessionDelta::TakenUp { message, again: says_so });
        }
        Ok(reply)
    }

    /// Throws away a parked message.
    pub(crate) fn throw_away(&mut self, message: MessageId) -> Result<Reply, Rejection> {
        let Some((lane, _)) = self.parked_message(message) else {
            return Err(Rejection::NoSuchMessage { message });
        };
        self.in_session(&lane, SessionDelta::TakenUp { message, again: None });
        Ok(Reply::Cancelled(1))
    }
}

impl Scheduler {
    fn parked_message(&self, message: MessageId) -> Option<(LaneName, Message)> {
        self.parked_messages().find(|(_, kept)| kept.id == message).cloned()
    }

    fn not_parked(&self, message: MessageId) -> Rejection {
        match self.state.sessions.session_with(message) {
            Some(_) => Rejection::BadMessage(BadMessage::NotParked),
            None => Rejection::NoSuchMessage { message },
        }
    }
}

/// A message as its sender would give it once more. What was a directive in it was obeyed already.
fn once_more(lane: &LaneName, kept: &Message, id: MessageId) -> Incoming {
    let address = &kept.address;
    let from = kept.from.as_deref().cloned().unwrap_or_default();
    let key = lane.session_key().unwrap_or_default();
    Incoming {
        place: address.place.clone(),
        sender: from.id,
        sender_name: from.name,
        permissions: address.permissions.clone(),
        message_id: kept.message_id().cloned(),
        queue: kept.queue(),
        asker: kept.asker().cloned(),
        metadata: kept.metadata().cloned(),
        attachments: kept.attachments().cloned(),
        source: address.source,
        priority: address.priority,
        ..Incoming::new(id, key, Agent::clone(&address.agent), Arc::clone(&kept.text))
    }
}
