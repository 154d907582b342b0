//! A message as a program sends it.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{
    Agent, DropRule, Incoming, LaneName, MessageId, Mode, Name, NameError, Otherwise, Source, Steer, TaskId,
};
use serde_json::Value;

use crate::driver::clock::millis;
use crate::error::Error;

/// One message to a session. What is not said comes from the settings of the session, its channel, or everywhere.
///
/// An invalid name is an error when the message is sent, so that building needs no `?`.
#[derive(Clone, Debug)]
#[must_use]
pub struct NewMessage {
    incoming: Result<Box<Incoming>, NameError>,
}

impl NewMessage {
    /// What is said to `agent` in a session. Its turns are of the kind of the agent's name.
    pub fn new(
        session: impl Into<Arc<str>>,
        agent: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
    ) -> NewMessage {
        let (session, text) = (session.into(), text.into());
        let incoming = Name::new(agent)
            .map(|agent| Box::new(Incoming::new(MessageId(0), session, Agent::new(agent), text)));
        NewMessage { incoming }
    }

    /// Which handler runs the turn, if it is not called like the agent.
    pub fn kind(self, kind: impl Into<Arc<str>>) -> NewMessage {
        self.checked(Name::new(kind), |incoming, kind| incoming.agent.kind = kind)
    }

    /// A lane that the agent's turns need, in place of `main`.
    pub fn lane(self, lane: impl AsRef<str>) -> NewMessage {
        self.checked(LaneName::new(lane), |incoming, lane| incoming.agent.lanes.push(lane))
    }

    /// A further lane that a turn needs which this message begins: that of the sender, say, so that it bounds how many of
    /// theirs wait. With which others the message is answered does not depend on it.
    pub fn asker(self, lane: LaneName) -> NewMessage {
        self.set(|incoming| incoming.asker = Some(lane))
    }

    /// The channel that it came through and the answer goes to.
    pub fn channel(self, channel: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.place.channel = Some(channel.into()))
    }

    /// The recipient in the channel.
    pub fn to(self, to: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.place.to = Some(to.into()))
    }

    /// The account that speaks in the channel.
    pub fn account(self, account: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.place.account = Some(account.into()))
    }

    /// The thread in the channel.
    pub fn thread(self, thread: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.place.thread = Some(thread.into()))
    }

    /// Who wrote it.
    pub fn sender(self, sender: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.sender = Some(sender.into()))
    }

    /// The sender's name to show.
    pub fn sender_name(self, name: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.sender_name = Some(name.into()))
    }

    /// Something that the sender may do. Only messages with the same permissions are answered together.
    pub fn permission(self, permission: impl Into<Arc<str>>) -> NewMessage {
        self.checked(Name::new(permission), |incoming, name| incoming.permissions.push(name))
    }

    /// The sender's own id: the same one to the same place is taken once.
    pub fn message_id(self, id: impl Into<Arc<str>>) -> NewMessage {
        self.set(|incoming| incoming.message_id = Some(id.into()))
    }

    /// JSON that goes to the agent with the message.
    pub fn metadata(self, metadata: &Value) -> NewMessage {
        self.set(|incoming| incoming.metadata = Some(metadata.to_string().into()))
    }

    /// What the sender attached, as JSON that goes to the agent with the message. A message with attachments may have an empty
    /// text.
    pub fn attachments(self, attachments: Vec<Value>) -> NewMessage {
        let attachments = Some(attachments).filter(|list| !list.is_empty()).map(Value::Array);
        self.set(|incoming| incoming.attachments = attachments.map(|list| list.to_string().into()))
    }

    /// What happens to it if the session is busy.
    pub fn mode(self, mode: Mode) -> NewMessage {
        self.set(|incoming| incoming.queue.mode = Some(mode))
    }

    /// How long it must have been quiet before its turn starts.
    pub fn debounce(self, length: Duration) -> NewMessage {
        self.set(|incoming| incoming.queue.debounce = Some(millis(length)))
    }

    /// After how long its turn starts although it is not quiet.
    pub fn max_wait(self, length: Duration) -> NewMessage {
        self.set(|incoming| incoming.queue.max_wait = Some(millis(length)))
    }

    /// How many may wait.
    pub fn cap(self, cap: u32) -> NewMessage {
        self.set(|incoming| incoming.queue.cap = Some(cap))
    }

    /// What happens to those that are too many.
    pub fn drop_rule(self, rule: DropRule) -> NewMessage {
        self.set(|incoming| incoming.queue.drop = Some(rule))
    }

    /// It is worth nothing later: dropped when the session is busy.
    pub fn heartbeat(self) -> NewMessage {
        self.set(|incoming| incoming.heartbeat = true)
    }

    /// The sender may change settings: `/queue …`, `/stop` and `/new` in the text count.
    pub fn may_configure(self) -> NewMessage {
        self.set(|incoming| incoming.may_configure = true)
    }

    /// Which turn it means to steer, and what becomes of it if that is over.
    pub fn steer(self, turn: TaskId, otherwise: Otherwise) -> NewMessage {
        self.set(|incoming| incoming.steer = Some(Steer { turn, otherwise }))
    }

    /// Who asks; gives the priority of the turn where nothing else does. Default: a user.
    pub fn source(self, source: Source) -> NewMessage {
        self.set(|incoming| incoming.source = source)
    }

    /// 0 to 9; larger is more urgent.
    pub fn priority(self, priority: u8) -> NewMessage {
        self.set(|incoming| incoming.priority = Some(priority))
    }

    fn set(mut self, change: impl FnOnce(&mut Incoming)) -> NewMessage {
        if let Ok(incoming) = &mut self.incoming {
            change(incoming);
        }
        self
    }

    fn checked<T>(
        mut self,
        value: Result<T, NameError>,
        change: impl FnOnce(&mut Incoming, T),
    ) -> NewMessage {
        match (&mut self.incoming, value) {
            (Ok(incoming), Ok(value)) => change(incoming, value),
            (Ok(_), Err(error)) => self.incoming = Err(error),
            (Err(_), _) => {}
        }
        self
    }

    /// What is sent, under this id.
    pub(super) fn incoming(self, id: MessageId) -> Result<Box<Incoming>, Error> {
        let mut incoming = self.incoming?;
        incoming.id = id;
        Ok(incoming)
    }
}
