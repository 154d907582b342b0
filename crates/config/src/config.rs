//! What a configuration says, as plain values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use laneway_core::{Block, LaneName, Name, ToolLane};

use crate::blocks::lanes::Lane;
use crate::blocks::message_types::Messages;
use crate::blocks::places::{Listen, StoreLocation};
use crate::blocks::server::ServerConfig;
use crate::report::Sources;
use crate::source::ValueSource;

/// A whole configuration, checked. Whatever the file leaves out has its default here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the server listens. Default `127.0.0.1:7717`.
    pub listen: Listen,
    /// Where the state is kept. Default `./laneway-data`.
    pub store: StoreLocation,
    /// The lanes that are spoken of, by name: in `lane`, `agent` and `queue` blocks, by the environment and
    /// by the [`Profile`].
    pub lanes: Vec<Lane>,
    /// Who runs turns, by name.
    pub agents: Vec<AgentConfig>,
    /// How tasks of a kind run here, by kind.
    pub handlers: Vec<KindHandler>,
    /// What is asked of agents by the clock, by name.
    pub schedules: Vec<Schedule>,
    /// How messages to busy sessions are queued.
    pub messages: Messages,
    /// The tool lanes of every session. `None`: tool calls run one after another, directly.
    pub tools: Option<ToolLaneConfig>,
    /// What the server asks of those who reach it, and what it keeps beside the store.
    pub server: ServerConfig,
    /// What is odd without being wrong, one sentence each with its place.
    pub warnings: Vec<String>,
    pub(crate) sources: Sources,
}

impl Config {
    /// The settings of lanes, for `Command::Configure`.
    pub fn lane_blocks(&self) -> Vec<Block> {
        self.lanes.iter().map(Lane::block).collect()
    }

    /// What changes about lanes when this configuration takes the place of `before`, for
    /// `Command::Configure`.
    pub fn lane_changes(&self, before: &Config) -> Vec<Block> {
        let same = |lane: &Lane, other: &Config| {
            other.lanes.iter().any(|old| old.lanes == lane.lanes && old.settings == lane.settings)
        };
        let speaks = |lane: &Lane| self.lanes.iter().any(|new| new.lanes == lane.lanes);
        let gone = before.lanes.iter().filter(|lane| !speaks(lane));
        let gone = gone.map(|lane| Block { lanes: lane.lanes.clone(), settings: None });
        gone.chain(self.lanes.iter().filter(|lane| !same(lane, before)).map(Lane::block)).collect()
    }

    /// Puts back what cannot change while a server runs, as the configuration of the running one has it, and names what
    /// it put back.
    pub fn hold_until_restart(&mut self, running: &Config) -> Vec<String> {
        let (new, old) = (&mut self.server, &running.server);
        let changed = [
            ("state", put_back(&mut new.state, &old.state)),
            ("otlp", put_back(&mut new.otlp, &old.otlp)),
            ("history_max", put_back(&mut new.history_max, &old.history_max)),
        ];
        let mut held = Vec::new();
        for (key, _) in changed.into_iter().filter(|(_, is_changed)| *is_changed) {
            let place = ("server".to_owned(), key.to_owned());
            match running.sources.get(&place) {
                Some(source) => drop(self.sources.insert(place, source.clone())),
                None => drop(self.sources.remove(&place)),
            }
            held.push(format!("server.{key}"));
        }
        held
    }

    /// Where a value came from, by block and key as the listing names them: `("", "listen")`,
    /// `("schedule \"standup\"", "cron")`, `("lane \"main\"", "max_concurrency")`.
    pub fn source(&self, block: &str, key: &str) -> ValueSource {
        let lane = self.lanes.iter().find(|lane| format!("lane \"{}\"", lane.lanes) == block);
        match lane {
            Some(lane) => lane.source(key),
            None => self.given(block, key).unwrap_or(ValueSource::Default),
        }
    }

    pub(crate) fn given(&self, block: &str, key: &str) -> Option<ValueSource> {
        self.sources.get(&(block.to_owned(), key.to_owned())).cloned()
    }

    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&AgentConfig> {
        self.agents.iter().find(|agent| agent.name.as_str() == name)
    }
}

/// Puts a value back, and says whether it was another.
fn put_back<T: Clone + PartialEq>(place: &mut T, value: &T) -> bool {
    let is_changed = place != value;
    place.clone_from(value);
    is_changed
}

/// What depends on the program that is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How many tasks may run at once in the lane `global` where nothing is said; `None`: any number.
    pub global_max_concurrency: Option<u32>,
    /// Whether every agent that a schedule names must be in the file. A program that brings agents of its own
    /// cannot ask for that.
    pub agents_are_in_the_file: bool,
}

impl Profile {
    /// The server: ten tasks at once.
    pub const SERVER: Profile = Profile { global_max_concurrency: Some(10), agents_are_in_the_file: true };
    /// The library inside another program: no limit over all lanes.
    pub const LIBRARY: Profile = Profile { global_max_concurrency: None, agents_are_in_the_file: false };
}

/// Something that can run a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its name; its lane is `agent:<name>`, its stateless tasks' `task:<name>`.
    pub name: Name,
    /// What runs its turns.
    pub runner: Runner,
    /// Further lanes that its turns need. `None`: `main`, or `cron` when a schedule and `subagent` when
    /// another task asked.
    pub lanes: Option<Vec<LaneName>>,
}

/// What runs a turn or a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Runner {
    /// A program on this machine.
    Program(ProgramConfig),
    /// A service, by its URL.
    Url(String),
    /// A worker that claims the work. Only for agents.
    External,
    /// The message is the answer: for trying things out. Only for agents.
    Echo,
}

/// A program, which is started anew for each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramConfig {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// How it is talked to. Default text.
    pub protocol: Protocol,
    /// Which variables of the server's environment it gets. `None`: the server's usual choice.
    pub env: Option<Vec<String>>,
    /// The directory in which it runs. `None`: the server's.
    pub cwd: Option<PathBuf>,
}

/// How a program is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The message on stdin; what it writes to stdout is the response.
    Text,
    /// A JSON object on each line, both ways.
    Jsonl,
}

/// How tasks of one kind run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindHandler {
    /// The kind.
    pub kind: Name,
    /// What runs them.
    pub runner: Runner,
}

/// Something that is asked of an agent by the clock.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: Name,
    /// When, as five or six fields of cron, or `@daily` and the like. Whether it ever fires is not checked
    /// here.
    pub cron: String,
    /// In which time zone, as in `Europe/Berlin`. Default `UTC`. Whether there is such a zone is not checked
    /// here.
    pub timezone: String,
    /// Who is asked.
    pub agent: Name,
    /// What is asked.
    pub message: String,
    /// In which conversation. `None`: the agent's own.
    pub session: Option<String>,
    /// Whether it fires at all. Default true.
    pub enabled: bool,
    /// What happens about firings that were missed. Default skip.
    pub catch_up: CatchUp,
}

/// What happens about firings that were missed while the server was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CatchUp {
    /// Nothing.
    Skip,
    /// However many were missed, it fires once.
    One,
}

/// The tool lanes of every session. Their limits are among [`Config::lanes`], as `session:*/query` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLaneConfig {
    /// Whether the tool lanes are counted in the metrics. Default true.
    pub metrics: bool,
    /// Whether the tool lanes give alerts. Default true; off is also in their thresholds.
    pub alerts: bool,
    /// Where tools belong, beside what is built in.
    pub tools: BTreeMap<String, ToolLane>,
}

impl ToolLaneConfig {
    /// Where a tool belongs.
    pub fn lane_of(&self, tool: &str) -> ToolLane {
        self.tools.get(tool).copied().unwrap_or_else(|| ToolLane::of_tool(tool))
    }
}
