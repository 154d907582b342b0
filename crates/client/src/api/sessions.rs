//! Sessions and their messages.

use laneway_protocol::{
    CancelManyAnswer, MessageAnswer, MessageRequest, MoveRequest, Page, Receipt, SessionChange, SessionStats,
    SessionSummary, SteerRequest,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// One page of sessions.
    pub async fn sessions(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<SessionSummary>, Error> {
        self.page(["api", "sessions"], limit, cursor).await
    }

    /// One session.
    pub async fn session(&self, key: &str) -> Result<SessionSummary, Error> {
        self.get(["api", "sessions", key]).await
    }

    /// The tool lanes of a session.
    pub async fn session_stats(&self, key: &str) -> Result<SessionStats, Error> {
        self.get(["api", "sessions", key, "stats"]).await
    }

    /// Changes how messages of a session are queued.
    pub async fn change_session(&self, key: &str, change: &SessionChange) -> Result<SessionSummary, Error> {
        self.patch(["api", "sessions", key], change).await
    }

    /// Sends a message. One with a `message_id` is the same message however often it is sent, so it may be repeated.
    pub async fn send_message(&self, key: &str, message: &MessageRequest) -> Result<MessageAnswer, Error> {
        let call = self.call(Method::POST, ["api", "sessions", key, "messages"]).body(message);
        match message.message_id {
            Some(_) => call.repeatable().send().await,
            None => call.send().await,
        }
    }

    /// The state of a message.
    pub async fn receipt(&self, key: &str, id: &str) -> Result<Receipt, Error> {
        self.get(["api", "sessions", key, "messages", id]).await
    }

    /// Withdraws a waiting message.
    pub async fn withdraw_message(&self, key: &str, id: &str) -> Result<(), Error> {
        self.delete(["api", "sessions", key, "messages", id]).await
    }

    /// Moves a waiting message before another, or to the end.
    pub async fn move_message(&self, key: &str, id: &str, before: Option<&str>) -> Result<(), Error> {
        let body = MoveRequest { before: before.map(str::to_owned) };
        self.post(["api", "sessions", key, "messages", id, "move"], &body).await
    }

    /// Passes a waiting message into the running turn.
    pub async fn promote(&self, key: &str, id: &str) -> Result<MessageAnswer, Error> {
        self.call(Method::POST, ["api", "sessions", key, "messages", id, "promote"]).send().await
    }

    /// Makes a message the next turn.
    pub async fn send_now(&self, key: &str, id: &str) -> Result<(), Error> {
        self.call(Method::POST, ["api", "sessions", key, "messages", id, "send-now"]).send().await
    }

    /// Sends a parked message again, as a new one.
    pub async fn resend(&self, key: &str, id: &str) -> Result<MessageAnswer, Error> {
        self.call(Method::POST, ["api", "sessions", key, "messages", id, "resend"]).send().await
    }

    /// Stops the running turn.
    pub async fn interrupt(&self, key: &str) -> Result<(), Error> {
        self.call(Method::POST, ["api", "sessions", key, "interrupt"]).send().await
    }

    /// Drops all waiting messages.
    pub async fn clear_session(&self, key: &str) -> Result<CancelManyAnswer, Error> {
        self.call(Method::POST, ["api", "sessions", key, "clear"]).send().await
    }

    /// Passes a message into the running turn.
    pub async fn steer(&self, key: &str, text: &str) -> Result<MessageAnswer, Error> {
        self.post(["api", "sessions", key, "steer"], &SteerRequest { text: text.to_owned() }).await
    }
}
