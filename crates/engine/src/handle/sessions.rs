//! Sessions: sending messages, asking what became of them, editing what waits, steering what runs.

use std::sync::Arc;

use laneway_core::{
    Command, EffectiveQueue, Fence, Incoming, LaneName, MessageEnd, MessageId, MessageReply, MessageSettings,
    MessageStatus, QueueOverrides, Rejection, Reply, SessionCommand, SessionView, StopReason, TaskId,
    Timestamp, TurnContent,
};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::driver::mailbox::{Output, ReplyTo, Request};
use crate::error::Error;
use crate::events::subscription::{Filter, Subscription};
use crate::events::update::Update;
use crate::handle::Handle;
use crate::handle::message::NewMessage;
use crate::runs::turn_payload::{SteeringMessage, TurnPayload};

/// The answer to a worker's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// When the lease lapses now.
    pub until: Timestamp,
    /// The attempt should stop, and why.
    pub stopping: Option<StopReason>,
    /// Messages for the turn. It has taken them now, unless it is one that says so itself: then they stay on offer
    /// until it has.
    pub steer: Vec<SteeringMessage>,
}

/// What a worker's sign of life says besides that the attempt runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatReport {
    /// Whether the turn takes steering from now on; `None`: as before, and no messages are handed over.
    pub takes_steering: Option<bool>,
    /// The messages that the turn has taken, see [`heartbeat_with`](Handle::heartbeat_with).
    pub taken: Option<Vec<MessageId>>,
    /// How far it is. Published, and not stored.
    pub progress: Option<Value>,
    /// More of the text that it produces. Published, and not stored.
    pub delta: Option<String>,
    /// What it has used so far, such as tokens. Published, and not stored.
    pub usage: Option<Value>,
}

impl HeartbeatReport {
    /// What to publish of it, in order.
    fn output(&mut self, task: TaskId, fence: Fence) -> Output {
        let delta = self.delta.take().filter(|text| !text.is_empty());
        let delta = delta.map(|text| Update::Delta { task, fence, text: text.into() });
        let progress = self.progress.take().map(Arc::new);
        let progress = progress.map(|value| Update::Progress { task, fence, name: None, value });
        let usage = self.usage.take().map(|value| Update::Usage { task, fence, value: Arc::new(value) });
        Output(delta.into_iter().chain(progress).chain(usage).collect())
    }
}

impl Handle {
    /// Sends a message to a session. Its mode says what becomes of it if the session is busy; what did is in the
    /// answer, with the message's id for [`message`](Handle::message) and
    /// [`message_ended`](Handle::message_ended). It is kept, as far as the store keeps anything, when this
    /// returns.
    pub async fn send_message(&self, message: NewMessage) -> Result<MessageReply, Error> {
        let incoming = message.incoming(MessageId(self.new_id().0))?;
        self.send_incoming(incoming).await
    }

    /// Sends a message that the caller has put together, id and all.
    pub async fn send_incoming(&self, incoming: Box<Incoming>) -> Result<MessageReply, Error> {
        match self.ask_session(SessionCommand::Send(incoming)).await? {
            Reply::Message(reply) => Ok(*reply),
            _ => Err(Error::Closed),
        }
    }

    async fn ask_session(&self, command: SessionCommand) -> Result<Reply, Error> {
        self.ask(Command::Session(Box::new(command))).await
    }

    /// What has become of a message, as long as that is remembered.
    pub async fn message(&self, message: MessageId) -> Result<Option<MessageStatus>, Error> {
        self.read(move |lanes| lanes.message(message)).await
    }

    /// The session in which a message is that has not ended, or is parked.
    pub async fn session_of(&self, message: MessageId) -> Result<Option<String>, Error> {
        self.read(move |lanes| lanes.session_of(message)).await
    }

    /// Waits for a message to come to its end.
    pub async fn message_ended(&self, message: MessageId) -> Result<MessageEnd, Error> {
        let mut session: Option<Subscription> = None;
        loop {
            let (status, key) =
                self.read(move |lanes| (lanes.message(message), lanes.session_of(message))).await?;
            match (status, key) {
                (Some(MessageStatus::Ended { end, .. }), _) => return Ok(end),
                (Some(_), Some(key)) if session.is_none() => {
                    // It is looked at once more, from when on nothing is missed.
                    session = Some(self.session_events(&key)?);
                    continue;
                }
                (Some(_), _) => {}
                (None, _) => return Err(Error::Rejected(Rejection::NoSuchMessage { message })),
            }
            let Some(updates) = &mut session else { return Err(Error::Closed) };
            if updates.next().await.is_none() {
                return Err(Error::Closed);
            }
        }
    }

    /// Everything that happens in a session from now on.
    pub fn session_events(&self, session: &str) -> Result<Subscription, Error> {
        let lane = LaneName::session(session)?;
        Ok(self.subscribe(Filter::lane(lane)))
    }

    /// A session of which there is something to remember, or in which a turn is live.
    pub async fn session(&self, session: impl Into<Arc<str>>) -> Result<Option<SessionView>, Error> {
        let key = session.into();
        self.read(move |lanes| lanes.session(&key)).await
    }

    /// All sessions of which there is something to remember.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, Error> {
        self.read(|lanes| lanes.sessions()).await
    }

    /// How a message in this channel would be queued in a session, each value with where it comes from.
    pub async fn queue_for(
        &self,
        session: impl Into<Arc<str>>,
        channel: Option<Arc<str>>,
    ) -> Result<EffectiveQueue, Error> {
        let key = session.into();
        self.read(move |lanes| lanes.queue_for(&key, channel.as_deref())).await
    }

    /// Changes how messages are queued everywhere, at once and for what waits already.
    pub async fn configure_messages(&self, settings: MessageSettings) -> Result<(), Error> {
        self.ask_session(SessionCommand::ConfigureMessages(Box::new(settings))).await.map(drop)
    }

    /// Says how the messages of one session are queued, in place of what was said before.
    pub async fn configure_session(
        &self,
        session: impl Into<Arc<str>>,
        queue: QueueOverrides,
    ) -> Result<(), Error> {
        self.ask_session(SessionCommand::Configure { session: session.into(), queue }).await.map(drop)
    }

    /// Changes some of how the messages of one session are queued; what is not said stays.
    pub async fn amend_session(
        &self,
        session: impl Into<Arc<str>>,
        queue: QueueOverrides,
    ) -> Result<(), Error> {
        self.ask_session(SessionCommand::Amend { session: session.into(), queue }).await.map(drop)
    }

    /// Sends a parked message once more, as a new one.
    pub async fn resend(&self, message: MessageId) -> Result<MessageReply, Error> {
        let again = MessageId(self.new_id().0);
        match self.ask_session(SessionCommand::Resend { message, again }).await? {
            Reply::Message(reply) => Ok(*reply),
            _ => Err(Error::Closed),
        }
    }

    /// Passes a waiting message into the running turn.
    pub async fn promote(&self, message: MessageId) -> Result<MessageReply, Error> {
        match self.ask_session(SessionCommand::Promote { message }).await? {
            Reply::Message(reply) => Ok(*reply),
            _ => Err(Error::Closed),
        }
    }

    /// Takes back a message that waits, also for a running turn to take it, or throws away a parked one.
    pub async fn withdraw(&self, message: MessageId) -> Result<(), Error> {
        self.ask_session(SessionCommand::Withdraw { message }).await.map(drop)
    }

    /// Gives a waiting message another place in line: before this one, or at the end.
    pub async fn move_message(&self, message: MessageId, before: Option<MessageId>) -> Result<(), Error> {
        self.ask_session(SessionCommand::Move { message, before }).await.map(drop)
    }

    /// Sends a waiting message next, without waiting for quiet or the end of a back-off.
    pub async fn send_now(&self, message: MessageId) -> Result<(), Error> {
        self.ask_session(SessionCommand::SendNow { message }).await.map(drop)
    }

    /// Cancels the messages of a session that wait; says how many.
    pub async fn clear_session(&self, session: impl Into<Arc<str>>) -> Result<usize, Error> {
        self.cancelled(SessionCommand::Clear { session: session.into() }).await
    }

    /// Cancels the turn of a session that is under way; what waits goes on.
    pub async fn interrupt(&self, session: impl Into<Arc<str>>) -> Result<(), Error> {
        self.ask_session(SessionCommand::Interrupt { session: session.into() }).await.map(drop)
    }

    /// Cancels the turn and everything that waits; says how much that was.
    pub async fn stop_session(&self, session: impl Into<Arc<str>>) -> Result<usize, Error> {
        self.cancelled(SessionCommand::Stop { session: session.into() }).await
    }

    async fn cancelled(&self, command: SessionCommand) -> Result<usize, Error> {
        match self.ask_session(command).await? {
            Reply::Cancelled(count) => Ok(count),
            _ => Err(Error::Closed),
        }
    }

    /// A running turn says whether it takes steering from now on.
    pub async fn set_steering(&self, turn: TaskId, fence: Fence, open: bool) -> Result<(), Error> {
        self.ask_session(SessionCommand::Steering { turn, fence, open }).await.map(drop)
    }

    /// A running turn takes the messages that were accepted for it.
    pub async fn take_steering(&self, turn: TaskId, fence: Fence) -> Result<Vec<SteeringMessage>, Error> {
        self.take_some(turn, fence, None).await
    }

    pub(crate) async fn take_some(
        &self,
        turn: TaskId,
        fence: Fence,
        only: Option<Vec<MessageId>>,
    ) -> Result<Vec<SteeringMessage>, Error> {
        match self.ask_session(SessionCommand::TakeSteering { turn, fence, only }).await? {
            Reply::Steering(messages) => Ok(messages.iter().map(SteeringMessage::from).collect()),
            _ => Err(Error::Closed),
        }
    }

    /// A worker's heartbeat with a report: renews the lease, says whether steering is taken from now on, and hands over what
    /// was accepted for the turn. Only a task of a session can take any.
    ///
    /// The answer may be lost on its way. So a worker names what it has `taken`, also
    /// if that is nothing: then messages stay on offer, in each answer, until they are named, and what is not
    /// named when the turn ends goes back to the line. For one that never names any (`None`) they count as taken with the
    /// answer.
    pub async fn heartbeat_with(
        &self,
        task: TaskId,
        fence: Fence,
        mut report: HeartbeatReport,
    ) -> Result<Heartbeat, Error> {
        let output = report.output(task, fence);
        let HeartbeatReport { takes_steering, taken, .. } = report;
        let command = SessionCommand::HeartbeatOfTurn { turn: task, fence, takes_steering, taken };
        let (answer, reply) = oneshot::channel();
        let mut request = Request::new(Command::Session(Box::new(command)), ReplyTo::Reply(answer));
        request.output = Some(Box::new(output)).filter(|output| !output.0.is_empty());
        self.send(request).await?;
        match reply.await.map_err(|_| Error::Closed)?? {
            Reply::TurnRenewed { until, stopping, steering } => {
                let steer = steering.iter().map(SteeringMessage::from).collect();
                Ok(Heartbeat { until, stopping, steer })
            }
            _ => Err(Error::Closed),
        }
    }

    /// What a live turn is about, if it was made of messages: the payload that its handler gets.
    pub async fn turn(&self, turn: TaskId) -> Result<Option<TurnPayload>, Error> {
        let content: Option<TurnContent> = self.read(move |lanes| lanes.turn_content(turn)).await?;
        Ok(content.as_ref().map(TurnPayload::from))
    }
}
