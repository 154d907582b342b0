//! The configuration in force: the file, and what the API has changed since: new agents, and settings of lanes. The log
//! keeps those as notes, so all replicas know them, also after a restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use laneway_config::{Config, Runner};
use laneway_core::{Event, HeldSettings, Note, Pattern, Scheduler};
use laneway_protocol::Code;
use serde_json::{Map, Value};

use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::word;
use crate::notes;

/// The prefix of the keys. A name has no line breaks.
const CREATED: &str = "agent made\n";
/// How many agents the API can create.
pub(crate) const CREATED_MAX: usize = 1000;

/// The longest setting of an agent, in JSON. All servers keep the agents in memory.
const SETTING_BYTES_MAX: usize = 8 * 1024;

/// The prefix of the keys of changed settings, followed by the lane or pattern.
const HELD: &str = "lane set\n";

/// How many lanes and patterns can have settings that the API has changed.
pub(crate) const HELD_MAX: usize = 1000;

/// The longest text about a wrong setting.
const ERROR_CHARS_MAX: usize = 500;

/// An agent that was created through the API; `None` removes it.
pub(crate) fn note(name: &str, block: Option<Arc<str>>) -> Note {
    (format!("{CREATED}{name}").into(), block)
}

/// The key of the settings of a lane or pattern that the API has changed.
pub(crate) fn held_key(lanes: &Pattern) -> Arc<str> {
    format!("{HELD}{lanes}").into()
}

/// The settings of a lane or pattern that the API has changed; an empty list removes the note.
pub(crate) fn held_note(lanes: &Pattern, held: &HeldSettings) -> Note {
    let text = if held.is_empty() { None } else { serde_json::to_string(held).ok().map(Arc::from) };
    (held_key(lanes), text)
}

/// How many lanes and patterns have settings that the API has changed.
pub(crate) fn held_count(lanes: &Scheduler) -> usize {
    notes::kept(lanes, HELD).count()
}

fn read_held(lanes: &str, text: &str) -> Option<(Pattern, HeldSettings)> {
    Some((Pattern::new(lanes).ok()?, serde_json::from_str(text).ok()?))
}

pub(crate) struct Directory {
    /// The configuration in force: the file, and what the API has changed.
    config: Arc<ArcSwap<Config>>,
    known: Mutex<Known>,
    /// Held while agents or the file change, so that the settings of their lanes follow in the same order.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

struct Known {
    file: Arc<Config>,
    /// What the API was given for each of its agents, by name.
    created: BTreeMap<String, Arc<str>>,
    /// The settings that the API has changed.
    held: BTreeMap<Pattern, HeldSettings>,
}

/// Settings that the API has changed, and that the file has changed since.
pub(crate) struct Outdated {
    pub(crate) lanes: Pattern,
    pub(crate) keys: Vec<String>,
    before: HeldSettings,
    after: HeldSettings,
}

impl Outdated {
    /// The note before and after the settings are withdrawn.
    pub(crate) fn notes(&self) -> (Note, Note) {
        (held_note(&self.lanes, &self.before), held_note(&self.lanes, &self.after))
    }
}

impl Directory {
    pub(crate) fn new(config: Arc<ArcSwap<Config>>) -> Directory {
        let known = Known { file: config.load_full(), created: BTreeMap::new(), held: BTreeMap::new() };
        Directory { config, known: Mutex::new(known), changing: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what the API has changed by what is in the notes.
    pub(crate) fn load(&self, lanes: &Scheduler) {
        let mut known = self.known();
        let own = |(name, text): (&str, &Arc<str>)| (name.to_owned(), Arc::clone(text));
        known.created = notes::kept(lanes, CREATED).map(own).collect();
        known.held = notes::kept(lanes, HELD).filter_map(|(lanes, text)| read_held(lanes, text)).collect();
        self.config.store(Arc::new(known.merged()));
    }

    /// Follows an event. Returns the names of the agents that it changed.
    pub(crate) fn follow(&self, event: &Event) -> Vec<String> {
        let mut known = self.known();
        let mut is_setting = false;
        for (lanes, text) in notes::changed(event, HELD) {
            is_setting = true;
            match text.and_then(|text| read_held(lanes, text)) {
                Some((lanes, held)) => drop(known.held.insert(lanes, held)),
                None => known.held.retain(|other, _| other.as_str() != lanes),
            }
        }
        let changes: Vec<_> = notes::changed(event, CREATED).collect();
        if changes.is_empty() && !is_setting {
            return Vec::new();
        }
        // The engine waits for this, so it reads only the agents that have changed.
        let mut config = (*self.config.load_full()).clone();
        for (name, text) in &changes {
            match text {
                Some(text) => known.created.insert((*name).to_owned(), Arc::clone(text)),
                None => known.created.remove(*name),
            };
            if known.file.agent(name).is_none() {
                config.remove_agent(name, &known.file);
                if let Some(text) = text {
                    add(&mut config, name, text);
                }
            }
        }
        // Changed settings depend on the blocks of agents.
        let config = if known.held.is_empty() && !is_setting { config } else { known.merged() };
        self.config.store(Arc::new(config));
        changes.into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// The configuration without the settings that the API has changed.
    pub(crate) fn configured(&self) -> Config {
        self.known().with_agents()
    }

    /// The settings that the API has changed, and that the configuration has changed since.
    pub(crate) fn outdated(&self) -> Vec<Outdated> {
        let known = self.known();
        let config = known.with_agents();
        let outdated = known.held.iter().map(|(lanes, before)| {
            let mut after = before.clone();
            let keys = after.yield_to(&config.asked_for(lanes));
            Outdated { lanes: lanes.clone(), keys, before: before.clone(), after }
        });
        outdated.filter(|outdated| !outdated.keys.is_empty()).collect()
    }

    /// What holds if this is the configuration file.
    pub(crate) fn with_file(&self, file: Config) -> (Arc<Config>, Config) {
        let file = Arc::new(file);
        let (created, held) = {
            let known = self.known();
            (known.created.clone(), known.held.clone())
        };
        let known = Known { file: Arc::clone(&file), created, held };
        (file, known.merged())
    }

    /// Takes over a configuration file.
    pub(crate) fn set_file(&self, file: Arc<Config>) {
        let mut known = self.known();
        known.file = file;
        self.config.store(Arc::new(known.merged()));
    }

    /// What the API was given for an agent; `None` for an agent of the file.
    pub(crate) fn created(&self, name: &str) -> Option<Arc<str>> {
        self.known().created.get(name).cloned()
    }

    pub(crate) fn is_in_file(&self, name: &str) -> bool {
        self.known().file.agent(name).is_some()
    }

    /// Where an agent comes from: `file` or `api`.
    pub(crate) fn origin(&self, name: &str) -> &'static str {
        if self.is_in_file(name) { "file" } else { "api" }
    }

    pub(crate) fn created_count(&self) -> usize {
        self.known().created.len()
    }

    /// Checks what the API was given for an agent, and returns it as a note keeps it.
    pub(crate) fn check(&self, name: &str, block: &Map<String, Value>) -> ApiResult<Arc<str>> {
        let text = serde_json::to_string(block).unwrap_or_default();
        let length = |value: &Value| value.to_string().len();
        if let Some((key, _)) = block.iter().find(|(_, value)| length(value) > SETTING_BYTES_MAX) {
            let key = word(key).unwrap_or("a setting");
            let detail =
                format!("{key} is too long: a setting of an agent has at most {SETTING_BYTES_MAX} bytes");
            return Err(ApiError::new(Code::TooLarge, detail));
        }
        let mut config = (*self.known().file).clone();
        config.add_agent(name, &text).map_err(|errors| {
            let sentences: Vec<String> = errors.iter().map(|error| error.problem.to_string()).collect();
            let sentences = sentences.join("; ");
            ApiError::invalid(
                sentences.chars().filter(|char| !char.is_control()).take(ERROR_CHARS_MAX).collect::<String>(),
            )
        })?;
        match config.agent(name).map(|agent| &agent.runner) {
            Some(Runner::Program(_)) => Err(ApiError::invalid(
                "an agent with a command must be in the configuration file; the API takes url, external or echo",
            )),
            _ => Ok(text.into()),
        }
    }
}

impl Known {
    /// The file with what the API has changed. A setting that the file has changed since is the file's.
    fn merged(&self) -> Config {
        let config = self.with_agents();
        let mut merged = config.clone();
        let mut all: Vec<_> = self.held.iter().collect();
        // A block begins with the settings of the pattern over it, which may be changed too.
        all.sort_by_key(|(lanes, _)| (lanes.is_exact(), lanes.as_str().len()));
        for (lanes, held) in all {
            let mut held = held.clone();
            held.yield_to(&config.asked_for(lanes));
            if !held.is_empty() {
                merged.hold(lanes, &held);
            }
        }
        merged
    }

    /// The file with the agents of the API. An agent of the file hides one of the API with the same name.
    fn with_agents(&self) -> Config {
        let mut config = (*self.file).clone();
        for (name, block) in self.created.iter().filter(|(name, _)| self.file.agent(name).is_none()) {
            add(&mut config, name, block);
        }
        config
    }
}

fn add(config: &mut Config, name: &str, block: &str) {
    #[cfg(test)]
    tests::READ.set(tests::READ.get() + 1);
    if let Err(errors) = config.add_agent(name, block) {
        tracing::warn!(agent = name, %errors, "an agent of the API does not fit the configuration file");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use std::cell::Cell;

    use laneway_config::{Profile, parse};

    use super::*;

    thread_local! {
        /// How many blocks of agents were read.
        pub(super) static READ: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_change_of_one_agent_of_many_reads_that_agent_alone() {
        let file = "lane \"agent:*\" { max_queued = 7 }\nlane \"agent:a3\" { weight = 2 }\nagent \"fixed\" { echo = true }";
        let nothing: [(&str, &str); 0] = [];
        let config = parse("laneway.hcl", file, Profile::SERVER, nothing).unwrap();
        let directory = Directory::new(Arc::new(ArcSwap::from_pointee(config)));
        let follow = |name: &str, block: Option<&str>| {
            let change = note(name, block.map(Arc::from));
            assert_eq!(directory.follow(&Event::Noted { changes: vec![change] }), [name]);
        };
        let names: Vec<String> = (0..300).map(|number| format!("a{number}")).collect();
        for name in &names {
            follow(name, Some("{\"echo\": true, \"max_queued\": 5}"));
        }
        READ.set(0);
        follow("a1", Some("{\"external\": true, \"timeout\": \"1m\"}"));
        follow("a2", None);
        follow("a3", None);
        // The file has an agent of that name.
        follow("fixed", Some("{\"external\": true}"));
        assert_eq!(READ.get(), 1);
        assert_eq!(*directory.config.load_full(), directory.known().merged());
    }
}
