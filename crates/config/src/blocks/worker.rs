//! The file of a worker: the server, the lanes to claim from, and the handler of each kind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_core::{Millis, Name, Pattern};

use crate::blocks::agents;
use crate::blocks::template::{Template, code_from_tasks};
use crate::config::{Protocol, Runner};
use crate::error::Errors;
use crate::fields::Fields;
use crate::formats::Entry;
use crate::load::{alone, read_file, root_of};
use crate::report::Report;

/// The file of a worker. The program has the defaults of missing settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// The server's address.
    pub url: Option<String>,
    /// The file with the token.
    pub token_file: Option<PathBuf>,
    /// The worker's name.
    pub name: Option<String>,
    /// The home lanes to claim tasks from: names or patterns.
    pub lanes: Vec<String>,
    /// How many attempts run at once.
    pub concurrency: Option<u32>,
    /// The lease of its attempts.
    pub lease: Option<Duration>,
    /// How long running attempts may continue when the worker stops.
    pub drain_grace: Option<Duration>,
    /// Its handlers, by kind.
    pub handlers: Vec<WorkerHandler>,
}

/// A handler of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHandler {
    /// The kind of its tasks.
    pub kind: Name,
    /// What runs the tasks.
    pub runner: WorkerRunner,
}

/// What runs the tasks of a worker's handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerRunner {
    /// A program on this machine.
    Program(Box<WorkerProgram>),
    /// An HTTP service, by its URL.
    Url(String),
}

/// A program of a worker. Each attempt starts a new process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<Template>,
    /// The protocol of its input and output. Default text.
    pub protocol: Protocol,
    /// The variables of the worker's environment that it gets. `None`: the default.
    pub env: Option<Vec<String>>,
    /// The directory in which it runs. `None`: the worker's.
    pub cwd: Option<PathBuf>,
    /// Whether it gets the payload on its standard input. Default true.
    pub stdin: bool,
    /// How long it may continue after SIGTERM.
    pub grace: Option<Duration>,
    /// How many bytes it may write.
    pub output_bytes_max: Option<u32>,
    /// The limits of each of its processes.
    pub limits: ProcessLimits,
}

/// The limits of each process of a program. `None`: the worker's own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Seconds of processor time.
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space.
    pub memory_bytes: Option<u64>,
    /// Files open at once.
    pub open_files: Option<u64>,
    /// Bytes of each written file.
    pub file_bytes: Option<u64>,
}

impl ProcessLimits {
    /// Whether there is a limit.
    pub fn is_any(&self) -> bool {
        *self != ProcessLimits::default()
    }
}

/// Reads and checks the file of a worker. Reports all errors, not only the first.
pub fn load_worker(path: &Path) -> Result<WorkerConfig, Errors> {
    let name = path.display().to_string();
    parse_worker(&name, &read_file(path)?)
}

/// Checks the text of a worker's file. Its name gives the format and is part of every error.
pub fn parse_worker(file: &str, text: &str) -> Result<WorkerConfig, Errors> {
    let root = root_of(file, text)?;
    let mut report = Report::new(file);
    let Some(mut top) = Fields::of(&mut report, "", "", &root) else { return Err(Errors(report.errors)) };
    let config = WorkerConfig {
        url: url(&mut report, &mut top),
        token_file: top.text(&mut report, "token_file").map(Into::into),
        name: top.text(&mut report, "name"),
        lanes: lanes(&mut report, &mut top),
        concurrency: top.count(&mut report, "concurrency", 1),
        lease: duration(&mut report, &mut top, "lease", 100),
        drain_grace: duration(&mut report, &mut top, "drain_grace", 0),
        handlers: handlers(&mut report, &mut top),
    };
    top.finish(&mut report);
    if !report.errors.is_empty() {
        Err(Errors(report.errors))
    } else if config.handlers.is_empty() {
        Err(alone(file, no_handler()))
    } else {
        Ok(config)
    }
}

fn no_handler() -> crate::error::ConfigProblem {
    crate::error::ConfigProblem::Missing {
        needed: "a handler \"<kind>\" block for at least one kind".to_owned(),
    }
}

fn url(report: &mut Report, top: &mut Fields<'_>) -> Option<String> {
    let url = top.text(report, "url")?;
    agents::check_url(report, top, "url", &url);
    Some(url)
}

fn duration(report: &mut Report, fields: &mut Fields<'_>, key: &str, least: u64) -> Option<Duration> {
    fields.duration(report, key, Millis(least)).map(|length| Duration::from_millis(length.0))
}

fn lanes(report: &mut Report, top: &mut Fields<'_>) -> Vec<String> {
    let lanes = top.texts(report, "lanes", "[\"external\"]").unwrap_or_default();
    for lane in &lanes {
        if let Err(error) = Pattern::new(lane) {
            report.contradiction(report.line_of("", "lanes"), "", format!("lanes: {error}"));
        }
    }
    lanes
}

fn handlers(report: &mut Report, top: &mut Fields<'_>) -> Vec<WorkerHandler> {
    let entries = top.named(report, "handler");
    let mut handlers: Vec<WorkerHandler> =
        entries.into_iter().filter_map(|entry| handler(report, entry)).collect();
    handlers.sort_by(|a, b| a.kind.cmp(&b.kind));
    handlers
}

fn handler(report: &mut Report, entry: &Entry) -> Option<WorkerHandler> {
    let block = format!("handler \"{}\"", entry.key);
    let kind = agents::name(report, &block, entry);
    let mut fields = Fields::of(report, &block, "", &entry.node)?;
    let runner = agents::runner(report, &mut fields, false);
    let stdin = fields.truth(report, "stdin");
    let grace = duration(report, &mut fields, "grace", 0);
    let output_bytes_max = fields.count(report, "output_bytes_max", 1);
    let limits = limits(report, &mut fields);
    let given = [
        ("stdin", stdin.is_some()),
        ("grace", grace.is_some()),
        ("output_bytes_max", output_bytes_max.is_some()),
        ("limits", limits.is_any()),
    ];
    fields.finish(report);
    let runner = match runner? {
        Runner::Program(program) => {
            let command = words(report, &block, &program.command)?;
            check_cwd(report, &block, program.cwd.as_deref());
            WorkerRunner::Program(Box::new(WorkerProgram {
                command,
                protocol: program.protocol,
                env: program.env,
                cwd: program.cwd,
                stdin: stdin.unwrap_or(true),
                grace,
                output_bytes_max,
                limits,
            }))
        }
        Runner::Url(url) => {
            for (key, _) in given.iter().filter(|(_, given)| *given) {
                let sentence = format!("{key} needs a command");
                report.contradiction(report.line_of(&block, key).or(entry.line), &block, sentence);
            }
            WorkerRunner::Url(url)
        }
        // Only agents have these runners.
        Runner::External | Runner::Echo => return None,
    };
    Some(WorkerHandler { kind: kind?, runner })
}

fn limits(report: &mut Report, fields: &mut Fields<'_>) -> ProcessLimits {
    let Some(mut block) = fields.block(report, "limits") else { return ProcessLimits::default() };
    let limits = ProcessLimits {
        cpu_seconds: block.count(report, "cpu_seconds", 1).map(u64::from),
        memory_bytes: block.count(report, "memory_mb", 1).map(|mb| u64::from(mb) * 1024 * 1024),
        open_files: block.count(report, "open_files", 3).map(u64::from),
        file_bytes: block.count(report, "file_mb", 1).map(|mb| u64::from(mb) * 1024 * 1024),
    };
    block.finish(report);
    limits
}

/// Parses the arguments of a command. A task must not decide which program runs, nor change code.
fn words(report: &mut Report, block: &str, command: &[String]) -> Option<Vec<Template>> {
    let line = report.line_of(block, "command");
    let words = match command.iter().map(|word| Template::read(word)).collect::<Result<Vec<_>, _>>() {
        Ok(words) => words,
        Err(why) => {
            report.contradiction(line, block, format!("command: {why}"));
            return None;
        }
    };
    if words.first().is_some_and(|word| !word.is_fixed()) {
        let sentence = "command: the program itself must be the same for every task".to_owned();
        report.contradiction(line, block, sentence);
        return None;
    }
    if let Some(code) = code_from_tasks(&words) {
        let sentence = format!(
            "command: {:?} is code that tasks could change; pass values as further arguments (\"$1\" in a shell) \
             or on standard input",
            command.get(code).map_or("", String::as_str)
        );
        report.contradiction(line, block, sentence);
        return None;
    }
    Some(words)
}

fn check_cwd(report: &mut Report, block: &str, cwd: Option<&Path>) {
    if cwd.is_some_and(|cwd| cwd.to_string_lossy().contains("{{")) {
        let expected = "must be the same directory for every task";
        report.wrong(report.line_of(block, "cwd"), block, "cwd", expected);
    }
}
