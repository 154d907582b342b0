//! Agents: asking them, and the lines in front of them.

use laneway_protocol::{
    AcceptedTurn, AgentView, ChatAnswer, ChatRequest, ClearedQueue, Page, QueueView, ReleasedQueue,
};
use reqwest::Method;
use serde_json::Value;

use crate::api_call::ApiCall;
use crate::client::Client;
use crate::error::Error;
use crate::events::{self, Events};

/// How an agent answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskKind {
    /// A turn of a session, after the others.
    #[default]
    Chat,
    /// A stateless task, at the same time as others.
    Task,
}

/// Options of a request to an agent.
#[derive(Clone, Debug, Default)]
pub struct AskOptions {
    /// The agent that asks.
    pub source_agent: Option<String>,
    /// The running task that asks and waits. Default: the task of the [`Worker`](crate::Worker)'s handler that asks.
    pub parent: Option<String>,
    /// A second request with the same key joins the first.
    pub key: Option<String>,
    /// The task goes on when the caller has gone.
    pub detach: bool,
    /// The trace that the task belongs to.
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

    /// Creates an agent. `block` has its name, and what an `agent` block of a configuration would say.
    pub async fn create_agent(&self, block: &Value) -> Result<AgentView, Error> {
        self.post(["api", "agents"], block).await
    }

    /// Changes settings of an agent that the API has created; `null` removes one.
    pub async fn change_agent(&self, agent: &str, changes: &Value) -> Result<AgentView, Error> {
        self.patch(["api", "agents", agent], changes).await
    }

    /// Removes an agent that the API has created, and cancels its waiting tasks.
    pub async fn remove_agent(&self, agent: &str) -> Result<(), Error> {
        self.delete(["api", "agents", agent]).await
    }

    fn ask(&self, agent: &str, kind: AskKind, request: &ChatRequest, options: &AskOptions) -> ApiCall {
        let last = match kind {
            AskKind::Chat => "chat",
            AskKind::Task => "task",
        };
        self.call(Method::POST, ["api", "agents", agent, last])
            .body(request)
            .key(options.key.as_deref())
            .header("x-source-agent", options.source_agent.as_deref())
            .child_of(options.parent.as_deref())
            .header("x-detach", options.detach.then_some("true"))
            .header("traceparent", options.traceparent.as_deref())
    }

    /// Asks an agent and waits for the answer, for as long as it takes.
    pub async fn chat(
        &self,
        agent: &str,
        kind: AskKind,
        request: &ChatRequest,
        options: &AskOptions,
    ) -> Result<ChatAnswer, Error> {
        self.ask(agent, kind, request, options).within(None).send().await
    }

    /// Asks an agent and does not wait.
    pub async fn chat_later(
        &self,
        agent: &str,
        kind: AskKind,
        request: &ChatRequest,
        options: &AskOptions,
    ) -> Result<AcceptedTurn, Error> {
        self.ask(agent, kind, request, options).header("prefer", Some("respond-async")).send().await
    }

    /// Asks an agent and follows the task. Dropping the events cancels the task, unless it is detached.
    pub async fn chat_events(
        &self,
        agent: &str,
        kind: AskKind,
        request: &ChatRequest,
        options: &AskOptions,
    ) -> Result<Events, Error> {
        let response = events::open(self.ask(agent, kind, request, options)).await?;
        Ok(Events::new(self.clone(), None, response))
    }

    /// The line of an agent.
    pub async fn queue(&self, agent: &str) -> Result<QueueView, Error> {
        self.get(["api", "agents", agent, "queue"]).await
    }

    /// Cancels all tasks that wait for an agent.
    pub async fn clear_queue(&self, agent: &str) -> Result<ClearedQueue, Error> {
        self.call(Method::POST, ["api", "agents", agent, "queue", "clear"]).send().await
    }

    /// Takes the slots of an agent's running tasks away.
    pub async fn release_queue(&self, agent: &str) -> Result<ReleasedQueue, Error> {
        self.call(Method::POST, ["api", "agents", agent, "queue", "release"]).send().await
    }
}
