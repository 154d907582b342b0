//! Reads a file and the environment into a [`Config`].

use std::io::Read;
use std::path::Path;

use laneway_core::{Handler, LaneName, Pattern};

use crate::blocks::agents;
use crate::blocks::lanes::{Lane, Lanes, take_settings};
use crate::blocks::messages;
use crate::blocks::places::{Listen, StoreLocation};
use crate::blocks::queue;
use crate::bounds::unreached_limits;
use crate::config::{AgentConfig, Config, Profile, Runner};
use crate::environment;
use crate::error::{ConfigProblem, Error, Errors};
use crate::fields::Fields;
use crate::formats::{Entry, Format, Node, Value};
use crate::report::Report;
use crate::source::ValueSource;

/// The longest configuration file.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

pub(crate) const LISTEN: &str = "must be a host and a port, such as \"127.0.0.1:7717\"";

/// Reads and checks a file. Reports all errors, not only the first.
pub fn load<K: AsRef<str>, V: AsRef<str>>(
    path: &Path,
    profile: Profile,
    environment: impl IntoIterator<Item = (K, V)>,
) -> Result<Config, Errors> {
    parse(&path.display().to_string(), &read_file(path)?, profile, environment)
}

/// Reads a file, up to one byte more than is allowed.
pub(crate) fn read_file(path: &Path) -> Result<String, Errors> {
    let mut text = String::new();
    // The extra byte shows that a file is too long.
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
    let unreadable = |error: std::io::Error| {
        alone(&path.display().to_string(), ConfigProblem::Unreadable(error.to_string()))
    };
    read.map(|_| text).map_err(unreadable)
}

/// Checks the text of a file. Its name gives the format and is part of every error.
pub fn parse<K: AsRef<str>, V: AsRef<str>>(
    file: &str,
    text: &str,
    profile: Profile,
    environment: impl IntoIterator<Item = (K, V)>,
) -> Result<Config, Errors> {
    interpret(file, &root_of(file, text)?, profile, environment)
}

/// Parses a file into its tree. Its name gives the format.
pub(crate) fn root_of(file: &str, text: &str) -> Result<Node, Errors> {
    if text.len() > FILE_BYTES_MAX {
        return Err(alone(file, ConfigProblem::TooLong));
    }
    let format = Format::of(file).ok_or_else(|| alone(file, ConfigProblem::UnknownFormat))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format.read(text) {
        Ok(root) if matches!(root.value, Value::Table(_)) => Ok(root),
        Ok(_) => Err(alone(file, ConfigProblem::Syntax("the file must hold one object".to_owned()))),
        Err(error) => {
            let at = ValueSource::File { path: file.into(), line: error.line };
            Err(Errors(vec![Error {
                at,
                block: String::new(),
                problem: ConfigProblem::Syntax(error.message),
            }]))
        }
    }
}

/// The configuration of a program without a file.
pub fn without_file<K: AsRef<str>, V: AsRef<str>>(
    profile: Profile,
    environment: impl IntoIterator<Item = (K, V)>,
) -> Result<Config, Errors> {
    let nothing = Node { line: None, value: Value::Table(Vec::new()) };
    interpret("", &nothing, profile, environment)
}

pub(crate) fn alone(file: &str, problem: ConfigProblem) -> Errors {
    let at = ValueSource::File { path: file.into(), line: None };
    Errors(vec![Error { at, block: String::new(), problem }])
}

fn interpret<K: AsRef<str>, V: AsRef<str>>(
    file: &str,
    root: &Node,
    profile: Profile,
    environment: impl IntoIterator<Item = (K, V)>,
) -> Result<Config, Errors> {
    let mut report = Report::new(file);
    let mut lanes = Lanes::default();
    let Some(mut top) = Fields::of(&mut report, "", "", root) else { return Err(Errors(report.errors)) };
    let mut listen = listen(&mut report, &mut top);
    let store = top.text(&mut report, "store");
    lane_blocks(&mut report, &mut top, &mut lanes);
    agents::defaults(&mut report, &mut top, &mut lanes);
    let (agents, agent_names) = agents::agents(&mut report, &mut top, &mut lanes);
    let (tools, storage_path) = queue::queue(&mut report, &mut top, &mut lanes).unzip();
    let mut store = choose_store(&mut report, store, storage_path.flatten());
    let handlers = agents::handlers(&mut report, &mut top);
    let messages = messages::messages(&mut report, &mut top);
    let server = crate::blocks::server::server(&mut report, &mut top);
    let schedules = agents::schedules(&mut report, &mut top, &agent_names, profile);
    top.finish(&mut report);
    agent_lanes(&mut report, &agents, &mut lanes);
    environment::apply(&mut report, environment, (&mut listen, &mut store), &mut lanes);
    if profile == Profile::SERVER {
        // Lists have this lane even if nothing sets it.
        lanes.declared(&Pattern::from(&LaneName::global()));
    }
    if !report.errors.is_empty() {
        report.errors.sort_by_key(|error| match &error.at {
            ValueSource::File { line, .. } => (0, *line),
            _ => (1, None),
        });
        return Err(Errors(report.errors));
    }
    let (mut warnings, sources) = (report.warnings, report.sources);
    let lanes = lanes.into_vec();
    warnings.extend(unreached_limits(&lanes, &agents));
    Ok(Config {
        listen,
        store,
        lanes,
        agents,
        handlers,
        schedules,
        messages,
        tools,
        server,
        warnings,
        sources,
    })
}

impl Config {
    /// Adds an agent that is not in the file. `block` is what an `agent` block of a JSON file would hold. On an error,
    /// nothing changes.
    pub fn add_agent(&mut self, name: &str, block: &str) -> Result<(), Errors> {
        let place = "the API";
        let node =
            Format::Json5.read(block).map_err(|error| alone(place, ConfigProblem::Syntax(error.message)))?;
        let entry = Entry { key: name.to_owned(), line: None, node: node.without_lines() };
        let mut report = Report::new(place);
        // An agent adds nothing but its own lanes.
        let own = own_lanes(name);
        let known = self.lanes.iter().filter(|lane| own.contains(&lane.lanes));
        let mut lanes = Lanes::from(known.cloned().collect::<Vec<_>>());
        let agents: Vec<AgentConfig> = agents::agent(&mut report, &entry, &mut lanes).into_iter().collect();
        agent_lanes(&mut report, &agents, &mut lanes);
        if self.agent(name).is_some() {
            let block = format!("agent \"{name}\"");
            report.contradiction(None, &block, "there is an agent of that name already".to_owned());
        }
        if !report.errors.is_empty() {
            return Err(Errors(report.errors));
        }
        lanes.into_vec().into_iter().for_each(|lane| self.put_lane(lane));
        for agent in agents {
            let place = self.agents.partition_point(|other| other.name < agent.name);
            self.agents.insert(place, agent);
        }
        self.sources.append(&mut report.sources);
        Ok(())
    }

    /// Removes an agent that [`add_agent`](Config::add_agent) has added to `file`.
    pub fn remove_agent(&mut self, name: &str, file: &Config) {
        self.agents.retain(|agent| agent.name.as_str() != name);
        for own in own_lanes(name) {
            self.lanes.retain(|lane| lane.lanes != own);
            if let Some(lane) = file.lanes.iter().find(|lane| lane.lanes == own) {
                self.put_lane(lane.clone());
            }
        }
        let block = format!("agent \"{name}\"");
        self.sources.retain(|(of, _), _| *of != block);
    }

    /// Adds a lane, or replaces the one of that name. Lanes stay in order.
    fn put_lane(&mut self, lane: Lane) {
        match self.lanes.binary_search_by(|other| other.lanes.cmp(&lane.lanes)) {
            Ok(place) => self.lanes[place] = lane,
            Err(place) => self.lanes.insert(place, lane),
        }
    }
}

/// The lanes of an agent.
fn own_lanes(agent: &str) -> Vec<Pattern> {
    ["agent", "task"].iter().filter_map(|prefix| Pattern::new(format!("{prefix}:{agent}")).ok()).collect()
}

fn listen(report: &mut Report, top: &mut Fields<'_>) -> Listen {
    let given = top.text(report, "listen");
    let listen = given.as_deref().map(Listen::read);
    if listen == Some(None) {
        report.wrong(report.line_of("", "listen"), "", "listen", LISTEN);
    }
    listen.flatten().unwrap_or(Listen { host: "127.0.0.1".to_owned(), port: 7717 })
}

/// The value of `store`, else of `queue.storage_path`, else the default. Two different values are an error.
fn choose_store(report: &mut Report, store: Option<String>, storage_path: Option<String>) -> StoreLocation {
    let storage_line = report.line_of("queue", "storage_path");
    let places = [("", "store", store), ("queue", "storage_path", storage_path)];
    let mut chosen: Option<StoreLocation> = None;
    for (block, key, text) in places {
        let Some(text) = text else { continue };
        match (StoreLocation::read(&text), &chosen) {
            (Err(expected), _) => report.wrong(report.line_of(block, key), block, key, &expected.0),
            (Ok(store), Some(first)) if store != *first => {
                let sentence = format!("storage_path is {store} and store is {first}; give one of them");
                report.contradiction(storage_line, block, sentence);
            }
            (Ok(store), None) => {
                if key == "storage_path" {
                    report.remember("", "store", storage_line);
                }
                chosen = Some(store);
            }
            (Ok(_), Some(_)) => {}
        }
    }
    chosen.unwrap_or_else(|| StoreLocation::Path("./laneway-data".into()))
}

fn lane_blocks(report: &mut Report, top: &mut Fields<'_>, lanes: &mut Lanes) {
    for entry in top.named(report, "lane") {
        let block = format!("lane \"{}\"", entry.key);
        let Some(mut fields) = Fields::of(report, &block, "", &entry.node) else { continue };
        match Pattern::new(&entry.key) {
            Ok(pattern) => take_settings(report, &mut fields, lanes.declared(&pattern)),
            Err(error) => {
                report.contradiction(entry.line, &block, error.to_string());
                continue;
            }
        }
        fields.finish(report);
    }
}

/// Gives every agent its two lanes, so that metrics count each lane by name. Both lanes of an external agent are external.
fn agent_lanes(report: &mut Report, agents: &[AgentConfig], lanes: &mut Lanes) {
    for agent in agents {
        for prefix in ["agent", "task"] {
            let Ok(name) = LaneName::new(format!("{prefix}:{}", agent.name)) else { continue };
            let own = lanes.lane(&Pattern::from(&name)).settings.handler;
            let lane = lanes.declared(&Pattern::from(&name));
            if agent.runner != Runner::External || own == Some(Handler::External) {
                continue;
            }
            let block = format!("agent \"{}\"", agent.name);
            let line = report.line_of(&block, "external");
            if own.is_some() {
                let sentence = format!("external = true, but the lane {name} sets another handler");
                report.contradiction(line, &block, sentence);
            } else if let Err(error) = lane.assign("handler", "external", report.at(line)) {
                report.wrong(line, &block, "external", &error.expected);
            }
        }
    }
}
