//! Who runs what: agents and the handlers of kinds, as the configuration names them.

use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use laneway_config::{AgentConfig, Config, Protocol, Runner};
use laneway_engine::{Context, Failure, Handle, Options};
use serde_json::Value;

use crate::agents::program;
use crate::agents::upstream::Upstream;
use crate::http::error::ApiResult;
use crate::service::envelope::{Envelope, Turn};
use crate::service::parse;

const AGENT: &str = "agent:";

/// The kind of an agent's turns and stateless tasks.
pub(crate) fn agent_kind(agent: &str) -> String {
    format!("{AGENT}{agent}")
}

/// An agent as the core knows it. One that wants no further lane names its own, which its turns need anyway.
pub(crate) fn core_agent(agent: &AgentConfig) -> ApiResult<laneway_core::Agent> {
    let name = agent.name.as_str();
    let lanes = match agent.lanes.as_deref() {
        None => Vec::new(),
        Some([]) => vec![parse::lane(format!("agent:{name}"))?],
        Some(further) => further.to_vec(),
    };
    Ok(laneway_core::Agent { name: agent.name.clone(), kind: parse::kind(agent_kind(name))?, lanes })
}

/// Runs agents and handlers. Knows the configuration in force, so that a reload takes effect with the next run.
pub(crate) struct Runners {
    config: Arc<ArcSwap<Config>>,
    pub(crate) upstream: Upstream,
    /// Where the server listens.
    listens: RwLock<String>,
}

/// Whose run it is.
#[derive(Clone, Debug)]
enum Who {
    Agent(String),
    Kind(String),
}

impl Runners {
    pub(crate) fn new(config: Arc<ArcSwap<Config>>) -> Result<Runners, reqwest::Error> {
        Ok(Runners { config, upstream: Upstream::new()?, listens: RwLock::new(String::new()) })
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    pub(crate) fn set_listens(&self, url: String) {
        *self.listens.write().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// What programs find in `LANEWAY_URL`.
    pub(crate) fn url(&self) -> String {
        let configured = self.config().server.url.clone();
        configured.unwrap_or_else(|| self.listens.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Everybody who runs something here, by kind. External agents do not: workers claim their turns.
    fn all(&self) -> Vec<(String, Who)> {
        let config = self.config();
        let here = config.agents.iter().filter(|agent| agent.runner != Runner::External);
        let agents = here.map(|agent| (agent_kind(agent.name.as_str()), Who::Agent(agent.name.to_string())));
        let kinds = config
            .handlers
            .iter()
            .map(|handler| (handler.kind.to_string(), Who::Kind(handler.kind.to_string())));
        agents.chain(kinds).collect()
    }

    /// The agent whose turns are of this kind.
    pub(crate) fn agent_of(&self, kind: &str) -> Option<String> {
        let name = kind.strip_prefix(AGENT)?;
        self.config().agent(name).map(|agent| agent.name.to_string())
    }

    /// Whether tasks of this kind run here.
    pub(crate) fn runs(&self, kind: &str) -> bool {
        let config = self.config();
        let agent = kind.strip_prefix(AGENT).and_then(|name| config.agent(name));
        agent.is_some_and(|agent| agent.runner != Runner::External)
            || config.handlers.iter().any(|handler| handler.kind.as_str() == kind)
    }

    /// Says who runs what before anything runs.
    pub(crate) fn into_options(
        self: &Arc<Runners>,
        mut options: Options,
    ) -> Result<Options, laneway_engine::Error> {
        for (kind, who) in self.all() {
            let runners = Arc::clone(self);
            options = options.handler(kind, move |context: Context, payload: Value| {
                let (runners, who) = (Arc::clone(&runners), who.clone());
                async move { runners.run(who, context, payload).await }
            })?;
        }
        Ok(options)
    }

    /// Says who runs what after the configuration has changed.
    pub(crate) fn register(self: &Arc<Runners>, handle: &Handle) -> Result<(), laneway_engine::Error> {
        for (kind, who) in self.all() {
            let runners = Arc::clone(self);
            handle.handler(kind, move |context: Context, payload: Value| {
                let (runners, who) = (Arc::clone(&runners), who.clone());
                async move { runners.run(who, context, payload).await }
            })?;
        }
        Ok(())
    }

    async fn run(&self, who: Who, context: Context, payload: Value) -> Result<Value, Failure> {
        let config = self.config();
        let envelope = Envelope::of(payload);
        let runner = match &who {
            Who::Agent(name) => config.agent(name).map(|agent| agent.runner.clone()),
            Who::Kind(kind) => {
                let handler = config.handlers.iter().find(|handler| handler.kind.as_str() == kind.as_str());
                handler.map(|handler| handler.runner.clone())
            }
        };
        let Some(runner) = runner else {
            return Err(Failure::fatal("the configuration names nobody any more who could run it"));
        };
        let turn = match &who {
            Who::Agent(name) => {
                let turn = envelope.turn();
                Some(turn.unwrap_or_else(|| Turn {
                    agent: name.clone(),
                    // A turn that answers messages says it all in one text.
                    message: text_of(envelope.payload.get("text").unwrap_or(&envelope.payload)),
                    session: envelope.payload.get("session").and_then(Value::as_str).map(str::to_owned),
                    ..Turn::default()
                }))
            }
            Who::Kind(_) => None,
        };
        let run = Run { context, envelope, turn, url: self.url() };
        match runner {
            Runner::Echo => {
                let text = run.input();
                run.context.delta(text.as_str());
                Ok(Value::String(text))
            }
            Runner::Program(program) => match program.protocol {
                Protocol::Text => program::text(&program, run).await,
                Protocol::Jsonl => program::jsonl(&program, run).await,
            },
            Runner::Url(url) => self.upstream.ask(&url, run).await,
            _ => Err(Failure::fatal("workers run this, and it was started here")),
        }
    }
}

/// One attempt, as its runner sees it.
pub(crate) struct Run {
    pub(crate) context: Context,
    pub(crate) envelope: Envelope,
    /// What an agent is asked; `None`: a task of a kind.
    pub(crate) turn: Option<Turn>,
    pub(crate) url: String,
}

impl Run {
    /// What goes in, as text: the message of a turn, else the payload.
    pub(crate) fn input(&self) -> String {
        match &self.turn {
            Some(turn) => turn.message.clone(),
            None => text_of(&self.envelope.payload),
        }
    }

    /// What goes in, as JSON.
    pub(crate) fn body(&self) -> Value {
        match &self.turn {
            Some(turn) => serde_json::to_value(turn).unwrap_or_default(),
            None => self.envelope.payload.clone(),
        }
    }

    /// What comes out of a run that produced text: an agent's answer is that text, a tool's may be JSON.
    pub(crate) fn output(&self, text: String) -> Value {
        match &self.turn {
            Some(_) => Value::String(text),
            None => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    }
}

/// A text as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
