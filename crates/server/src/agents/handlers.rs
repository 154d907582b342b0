//! The handlers of agents and kinds, as the configuration names them.

use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use laneway_config::{AgentConfig, Config, Protocol, Runner};
use laneway_core::LaneName;
use laneway_engine::{Context, Error, Failure, Handle, Options};
use laneway_protocol::TurnPayloadView;
use serde::Deserialize;
use serde_json::Value;

use crate::agents::program;
use crate::agents::upstream::Upstream;
use crate::http::error::ApiResult;
use crate::service::parse;

const AGENT: &str = "agent:";

/// The kind of an agent's turns and stateless tasks.
pub(crate) fn agent_kind(agent: &str) -> String {
    format!("{AGENT}{agent}")
}

/// The name of the agent whose turns and stateless tasks have this kind.
pub(crate) fn agent_of_kind(kind: &str) -> Option<&str> {
    kind.strip_prefix(AGENT)
}

/// An agent as the core knows it. An agent with an empty list of lanes names its own lane, which its turns need anyway.
pub(crate) fn core_agent(agent: &AgentConfig) -> ApiResult<laneway_core::Agent> {
    let name = agent.name.as_str();
    let lanes = match agent.lanes.as_deref() {
        None => Vec::new(),
        Some([]) => vec![parse::checked(LaneName::agent(name))?],
        Some(further) => further.to_vec(),
    };
    Ok(laneway_core::Agent { name: agent.name.clone(), kind: parse::kind(agent_kind(name))?, lanes })
}

/// Runs agents and handlers. Reads the configuration for each attempt, so that a reload takes effect with the next one.
pub(crate) struct AgentHandlers {
    config: Arc<ArcSwap<Config>>,
    upstream: Upstream,
    /// The address of the server.
    url: RwLock<String>,
}

impl AgentHandlers {
    pub(crate) fn new(config: Arc<ArcSwap<Config>>) -> Result<AgentHandlers, reqwest::Error> {
        Ok(AgentHandlers { config, upstream: Upstream::new()?, url: RwLock::default() })
    }

    pub(crate) fn set_url(&self, url: String) {
        *self.url.write().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// The value of `LANEWAY_URL` for programs.
    fn url(&self) -> String {
        let configured = self.config.load().server.url.clone();
        configured.unwrap_or_else(|| self.url.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The agent with this kind.
    pub(crate) fn agent_of(&self, kind: &str) -> Option<String> {
        let name = agent_of_kind(kind)?;
        self.config.load().agent(name).map(|agent| agent.name.to_string())
    }

    /// Whether tasks of this kind run here.
    pub(crate) fn runs(&self, kind: &str) -> bool {
        let config = self.config.load();
        let agent = agent_of_kind(kind).and_then(|name| config.agent(name));
        agent.is_some_and(|agent| agent.runner != Runner::External)
            || config.handlers.iter().any(|handler| handler.kind.as_str() == kind)
    }

    /// The kinds that run here. Workers claim the turns of external agents.
    fn kinds(&self) -> Vec<String> {
        let config = self.config.load();
        let here = config.agents.iter().filter(|agent| agent.runner != Runner::External);
        let agents = here.map(|agent| agent_kind(agent.name.as_str()));
        agents.chain(config.handlers.iter().map(|handler| handler.kind.to_string())).collect()
    }

    /// Adds the handlers to the options of an engine that is about to start.
    pub(crate) fn into_options(self: &Arc<Self>, options: Options) -> Result<Options, Error> {
        let mut kinds = self.kinds().into_iter();
        kinds.try_fold(options, |options, kind| options.handler(kind.clone(), self.handler(kind)))
    }

    /// Registers the handlers of a new configuration.
    pub(crate) fn register(self: &Arc<Self>, handle: &Handle) -> Result<(), Error> {
        self.kinds().into_iter().try_for_each(|kind| handle.handler(kind.clone(), self.handler(kind)))
    }

    /// Registers the handlers of agents, as far as their turns run here.
    pub(crate) fn register_agents(self: &Arc<Self>, handle: &Handle, names: &[String]) -> Result<(), Error> {
        let mut kinds = names.iter().map(|name| agent_kind(name)).filter(|kind| self.runs(kind));
        kinds.try_for_each(|kind| handle.handler(kind.clone(), self.handler(kind)))
    }

    fn handler(
        self: &Arc<Self>,
        kind: String,
    ) -> impl Fn(Context, Value) -> BoxFuture<'static, Result<Value, Failure>> + use<> {
        let handlers = Arc::clone(self);
        move |context, payload| {
            let (handlers, kind) = (Arc::clone(&handlers), kind.clone());
            Box::pin(async move { handlers.run(&kind, context, payload).await })
        }
    }

    async fn run(&self, kind: &str, context: Context, payload: Value) -> Result<Value, Failure> {
        let config = self.config.load_full();
        let agent = agent_of_kind(kind).and_then(|name| config.agent(name));
        let handler = || config.handlers.iter().find(|handler| handler.kind.as_str() == kind);
        let runner = agent.map(|agent| &agent.runner).or_else(|| Some(&handler()?.runner));
        let turn = agent.map(|agent| turn_of(agent.name.as_str(), &payload));
        let run = Run { context, payload, turn, url: self.url() };
        match runner {
            Some(Runner::Echo) => {
                let text = run.input();
                run.context.delta(text.as_str());
                Ok(Value::String(text))
            }
            Some(Runner::Program(program)) => match program.protocol {
                Protocol::Text => program::text(program, run).await,
                Protocol::Jsonl => program::jsonl(program, run).await,
            },
            Some(Runner::Url(url)) => {
                let urls = agent.map(|agent| agent.urls.clone()).unwrap_or_default();
                let is_stateless = run.turn.as_ref().is_some_and(|turn| turn.stateless);
                let url = urls.task.as_deref().filter(|_| is_stateless).unwrap_or(url);
                self.upstream.ask(url, &urls, run).await
            }
            Some(_) => Err(Failure::fatal("only workers run tasks of this kind")),
            None => Err(Failure::fatal("its agent or handler was removed: nothing runs tasks of this kind")),
        }
    }
}

/// What an agent is asked. The payload of a task of that kind that is no turn becomes its text.
fn turn_of(agent: &str, payload: &Value) -> TurnPayloadView {
    TurnPayloadView::deserialize(payload).unwrap_or_else(|_| TurnPayloadView {
        agent: agent.to_owned(),
        message: text_of(payload.get("text").unwrap_or(payload)),
        text: text_of(payload.get("text").unwrap_or(payload)),
        session: payload.get("session").and_then(Value::as_str).map(str::to_owned),
        ..TurnPayloadView::default()
    })
}

/// One attempt at a task of an agent or a handler.
pub(super) struct Run {
    pub(super) context: Context,
    payload: Value,
    /// What an agent is asked; `None` for a handler of a kind.
    pub(crate) turn: Option<TurnPayloadView>,
    pub(super) url: String,
}

impl Run {
    /// Whether this is a turn of a session, which messages can steer.
    pub(super) fn is_session_turn(&self) -> bool {
        self.context.lanes().iter().any(LaneName::is_session)
    }

    /// The input as text: the message of a turn, else the payload.
    pub(super) fn input(&self) -> String {
        match &self.turn {
            Some(turn) => turn.message.clone(),
            None => text_of(&self.payload),
        }
    }

    /// The input as JSON.
    pub(super) fn body(&self) -> Value {
        match &self.turn {
            Some(turn) => serde_json::to_value(turn).unwrap_or_default(),
            None => self.payload.clone(),
        }
    }

    /// The result of an attempt that wrote text: an agent answers with the text, a handler may answer with JSON.
    pub(super) fn output(&self, text: String) -> Value {
        match &self.turn {
            Some(_) => Value::String(text),
            None => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    }
}

/// A string as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
