//! Asking agents, and how their lines stand.

use laneway_protocol::{
    AcceptedTurn, AgentView, ChatAnswer, ChatRequest, ClearedQueue, Page, QueueView, ReleasedQueue,
};
use reqwest::Method;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::events::{self, Events};

/// What is asked of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One turn of a conversation, after the others.
    #[default]
    Chat,
    /// One stateless task, beside the others.
    Task,
}

/// How an agent is asked, beside what.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// The agent that asks.
    pub source_agent: Option<String>,
    /// The running task that asks and waits.
    pub parent: Option<String>,
    /// Asking twice under one key is asking once.
    pub key: Option<String>,
    /// It goes on when the caller has gone.
    pub detach: bool,
    /// The trace that it belongs to.
    pub traceparent: Option<String>,
}

impl Client {
    /// All agents.
    pub async fn agents(&self) -> Result<Page<AgentView>, Error> {
        self.get(["api", "agents"]).await
    }

    /// One agent.
    pub async fn agent(&self, agent: &str) -> Result<AgentView, Error> {
        self.get(["api", "agents", agent]).await
    }

    fn ask(&self, agent: &str, form: Form, request: &ChatRequest, manner: &Manner) -> Call {
        let last = match form {
            Form::Chat => "chat",
            Form::Task => "task",
        };
        self.call(Method::POST, ["api", "agents", agent, last])
            .body(request)
            .key(manner.key.as_deref())
            .header("x-source-agent", manner.source_agent.as_deref())
            .header("x-laneway-parent", manner.parent.as_deref())
            .header("x-detach", manner.detach.then_some("true"))
            .header("traceparent", manner.traceparent.as_deref())
    }

    /// Asks an agent and waits for the answer, for as long as it takes.
    pub async fn chat(
        &self,
        agent: &str,
        form: Form,
        request: &ChatRequest,
        manner: &Manner,
    ) -> Result<ChatAnswer, Error> {
        self.ask(agent, form, request, manner).within(None).send().await
    }

    /// Asks an agent and does not wait.
    pub async fn chat_later(
        &self,
        agent: &str,
        form: Form,
        request: &ChatRequest,
        manner: &Manner,
    ) -> Result<AcceptedTurn, Error> {
        self.ask(agent, form, request, manner).header("prefer", Some("respond-async")).send().await
    }

    /// Asks an agent and follows what becomes of it. Dropping the events cancels the run, unless it is detached.
    pub async fn chat_events(
        &self,
        agent: &str,
        form: Form,
        request: &ChatRequest,
        manner: &Manner,
    ) -> Result<Events, Error> {
        let response = events::open(self.ask(agent, form, request, manner)).await?;
        Ok(Events::new(self.clone(), None, response))
    }

    /// How the line of an agent stands.
    pub async fn queue(&self, agent: &str) -> Result<QueueView, Error> {
        self.get(["api", "agents", agent, "queue"]).await
    }

    /// Cancels everything that waits for an agent.
    pub async fn clear_queue(&self, agent: &str) -> Result<ClearedQueue, Error> {
        self.call(Method::POST, ["api", "agents", agent, "queue", "clear"]).send().await
    }

    /// Takes the slots away from what an agent runs.
    pub async fn release_queue(&self, agent: &str) -> Result<ReleasedQueue, Error> {
        self.call(Method::POST, ["api", "agents", agent, "queue", "release"]).send().await
    }
}
