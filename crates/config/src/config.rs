//! The configuration as plain values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use laneway_core::{Block, LaneName, Name, Pattern, ToolLane};

use crate::blocks::lanes::{Lane, layers};
use crate::blocks::message_types::Messages;
use crate::blocks::places::{Listen, StoreLocation};
use crate::blocks::server::ServerConfig;
use crate::report::Sources;
use crate::source::ValueSource;

/// A checked configuration. Settings that the file leaves out have their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address that the server listens on. Default `127.0.0.1:7717`.
    pub listen: Listen,
    /// The store. Default `./laneway-data`.
    pub store: StoreLocation,
    /// The lanes with settings, by name. Settings come from `lane`, `agent` and `queue` blocks, from the environment and
    /// from the [`Profile`].
    pub lanes: Vec<Lane>,
    /// The agents, by name.
    pub agents: Vec<AgentConfig>,
    /// The handlers of the server, by kind.
    pub handlers: Vec<KindHandler>,
    /// The schedules, by name.
    pub schedules: Vec<Schedule>,
    /// How messages to busy sessions are queued.
    pub messages: Messages,
    /// The tool lanes of every session. `None`: tool calls run one after another, without lanes.
    pub tools: Option<ToolLaneConfig>,
    /// How the server treats its clients, and where it keeps its own files.
    pub server: ServerConfig,
    /// Problems that are not errors, one sentence each with its place.
    pub warnings: Vec<String>,
    pub(crate) sources: Sources,
}

impl Config {
    /// The settings of all lanes, for `Command::Configure`.
    pub fn lane_blocks(&self) -> Vec<Block> {
        self.lanes.iter().map(Lane::block).collect()
    }

    /// The lanes that change when this configuration replaces `before`, for `Command::Configure`.
    pub fn lane_changes(&self, before: &Config) -> Vec<Block> {
        let same =
            |lane: &Lane| before.lane(&lane.lanes).is_some_and(|before| before.settings == lane.settings);
        let gone = before.lanes.iter().filter(|lane| self.lane(&lane.lanes).is_none());
        let gone = gone.map(|lane| Block { lanes: lane.lanes.clone(), settings: None });
        gone.chain(self.lanes.iter().filter(|lane| !same(lane)).map(Lane::block)).collect()
    }

    /// The lane or pattern with settings that has this name. Lanes are in order.
    fn lane(&self, lanes: &Pattern) -> Option<&Lane> {
        let place = self.lanes.binary_search_by(|lane| lane.lanes.cmp(lanes)).ok()?;
        self.lanes.get(place)
    }

    /// Resets settings that cannot change while a server runs to those of the running server. Returns their names.
    pub fn hold_until_restart(&mut self, running: &Config) -> Vec<String> {
        let (new, old) = (&mut self.server, &running.server);
        let changed = [
            ("state", put_back(&mut new.state, &old.state)),
            ("otlp", put_back(&mut new.otlp, &old.otlp)),
            ("history_max", put_back(&mut new.history_max, &old.history_max)),
            ("replica_lease", put_back(&mut new.replica_lease, &old.replica_lease)),
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

    /// The source of a value, by block and key as `laneway config check` prints them: `("", "listen")`,
    /// `("schedule \"standup\"", "cron")`, `("lane \"main\"", "max_concurrency")`.
    pub fn source(&self, block: &str, key: &str) -> ValueSource {
        let lane = self.lanes.iter().find(|lane| format!("lane \"{}\"", lane.lanes) == block);
        match lane {
            Some(lane) => {
                let given = layers(&self.lanes, &lane.lanes).iter().find_map(|lane| lane.given(key).cloned());
                given.unwrap_or(ValueSource::Default)
            }
            None => self.given(block, key).unwrap_or(ValueSource::Default),
        }
    }

    pub(crate) fn given(&self, block: &str, key: &str) -> Option<ValueSource> {
        self.sources.get(&(block.to_owned(), key.to_owned())).cloned()
    }

    /// The agent with a name.
    pub fn agent(&self, name: &str) -> Option<&AgentConfig> {
        self.agents.iter().find(|agent| agent.name.as_str() == name)
    }
}

/// Resets a value. Returns whether it changed.
fn put_back<T: Clone + PartialEq>(place: &mut T, value: &T) -> bool {
    let is_changed = place != value;
    place.clone_from(value);
    is_changed
}

/// What depends on the configured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Whether every agent of a schedule must be in the file. A program with its own agents does not require that.
    pub agents_are_in_the_file: bool,
}

impl Profile {
    /// The server.
    pub const SERVER: Profile = Profile { agents_are_in_the_file: true };
    /// The library inside another program.
    pub const LIBRARY: Profile = Profile { agents_are_in_the_file: false };
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its name. Its turns run in the lane `agent:<name>`, its stateless tasks in `task:<name>`.
    pub name: Name,
    /// What runs its turns.
    pub runner: Runner,
    /// Further lanes that its turns need. `None`: `cron` for a schedule, `subagent` for a child, else `main`.
    pub lanes: Option<Vec<LaneName>>,
    /// Further addresses of an HTTP service.
    pub urls: AgentUrls,
}

/// Further addresses of an agent that is an HTTP service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentUrls {
    /// What runs its stateless tasks. `None`: what runs its turns.
    pub task: Option<String>,
    /// Where messages for a running turn go. `None`: its turns take no steering.
    pub steer: Option<String>,
    /// Where the server says that an attempt must stop. `None`: it closes the connection.
    pub cancel: Option<String>,
}

/// What runs a turn or a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Runner {
    /// A program on this machine.
    Program(ProgramConfig),
    /// An HTTP service, by its URL.
    Url(String),
    /// A worker that claims the tasks. Only for agents.
    External,
    /// Answers with the message, for tests. Only for agents.
    Echo,
}

/// A program. Each attempt starts a new process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramConfig {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// The protocol of its input and output. Default text.
    pub protocol: Protocol,
    /// The variables of the server's environment that it gets. `None`: the server's default.
    pub env: Option<Vec<String>>,
    /// The directory in which it runs. `None`: the server's.
    pub cwd: Option<PathBuf>,
}

/// The protocol of a program's input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The message on stdin, and the response on stdout.
    Text,
    /// One JSON object per line, in both directions.
    Jsonl,
}

/// A handler of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindHandler {
    /// The kind of its tasks.
    pub kind: Name,
    /// What runs the tasks.
    pub runner: Runner,
}

/// A schedule, which sends a message to an agent at certain times.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: Name,
    /// Its times, as five or six cron fields or a word such as `@daily`. This crate does not check that it ever fires.
    pub cron: String,
    /// The time zone, such as `Europe/Berlin`. Default `UTC`. This crate does not check that it exists.
    pub timezone: String,
    /// The agent.
    pub agent: Name,
    /// The message.
    pub message: String,
    /// The session, if it has one.
    pub session: Option<String>,
    /// The person whose schedule it is. Its turns run on behalf of that person.
    #[serde(default)]
    pub user: Option<String>,
    /// The email address of that person.
    #[serde(default)]
    pub user_email: Option<String>,
    /// Whether it fires at all. Default true.
    pub enabled: bool,
    /// What to do about missed firings. Default skip.
    pub catch_up: CatchUp,
}

/// What to do about firings that a schedule missed while the server was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CatchUp {
    /// Do nothing.
    Skip,
    /// Fire once, however many were missed.
    One,
}

/// The tool lanes of every session. Their limits are in [`Config::lanes`], as `session:*/query` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLaneConfig {
    /// Whether the metrics count the tool lanes. Default true.
    pub metrics: bool,
    /// Whether the tool lanes give alerts. Default true. If false, their thresholds are also out of reach.
    pub alerts: bool,
    /// The lanes of tools, in addition to the built-in ones.
    pub tools: BTreeMap<String, ToolLane>,
}

impl ToolLaneConfig {
    /// The lane of a tool.
    pub fn lane_of(&self, tool: &str) -> ToolLane {
        self.tools.get(tool).copied().unwrap_or_else(|| ToolLane::of_tool(tool))
    }
}
