//! The same message once more: by its sender's own id, to the same place.

use std::sync::Arc;

use crate::api::command::Reply;
use crate::api::ids::Fence;
use crate::api::name::LaneName;
use crate::api::session_command::{MessageReply, SendOutcome};
use crate::scheduler::Scheduler;
use crate::sessions::message::{Incoming, Message, MessageId};
use crate::sessions::send::told;
use crate::sessions::session::{Session, Turn};

impl Scheduler {
    /// A live or delivered message, or an answered directive with its answer, that has the same sender's id and place.
    pub(super) fn same_message(
        &self,
        lane: &LaneName,
        incoming: &Incoming,
    ) -> Option<(MessageId, Option<Arc<str>>)> {
        let message_id = incoming.message_id.as_ref()?;
        let session = &self.state.sessions[self.state.sessions.find(lane)?];
        let is_same = |message: &&Message| {
            message.message_id() == Some(message_id) && message.address.place == incoming.place
        };
        if let Some(live) = session.messages().filter(is_same).find(|same| !self.is_doomed(session, same)) {
            return Some((live.id, None));
        }
        let is_same = |seen: &&crate::sessions::session::Seen| {
            seen.message_id == *message_id && seen.place == incoming.place
        };
        let seen = session.extras.seen.iter().find(is_same)?;
        Some((seen.message, seen.reply.clone()))
    }

    /// Whether a message will be cancelled with its turn, so that the same message may come again.
    fn is_doomed(&self, session: &Session, message: &Message) -> bool {
        let has_it = |turn: &Turn, fence: Option<Fence>| {
            let steered =
                turn.extras.steered.iter().filter(|steered| steered.fence == fence && !steered.is_copy);
            let mut with_it = turn.messages.iter().chain(steered.map(|steered| &steered.message));
            with_it.any(|one| one.id == message.id)
        };
        session.turns.iter().any(|turn| {
            let task = self.state.tasks.find(turn.task).map(|idx| &self.state.tasks[idx]);
            task.filter(|task| task.is_being_cancelled())
                .is_some_and(|task| has_it(turn, task.attempt().map(|attempt| attempt.fence)))
        })
    }

    /// Answers a repeated message. The sender sees typing only while the first one has not ended.
    pub(super) fn duplicate(
        &self,
        message: MessageId,
        (same, answered): (MessageId, Option<Arc<str>>),
    ) -> Reply {
        let outcome = SendOutcome::Duplicate(same);
        if let Some(answered) = answered {
            return told(message, outcome, answered.to_string());
        }
        let typing = self.state.sessions.session_with(same).is_some();
        let reply = MessageReply { message, outcome, turn: None, position: None, typing, reply: None };
        Reply::Message(Box::new(reply))
    }
}
