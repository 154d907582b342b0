//! `laneway trace export` and `laneway simulate`: compare recorded waits with those of another configuration.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use laneway_config::{Profile, StoreLocation};
use laneway_core::Millis;
use laneway_protocol::At;
use laneway_whatif::{
    Comparison, ExportError, Report, Timeline, Trace, TraceStart, plot, read_trace, replay, table,
};

use crate::arguments::ConfigFile;
use crate::commands::transfer;
use crate::error::CliError;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Prints the arrivals in a store, one JSON object per line, without payloads and texts
    Export(TraceExport),
}

#[derive(Debug, Args)]
pub(crate) struct TraceExport {
    /// The store: a directory, redis://… or postgres://… [default: the configured one]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Only arrivals since a moment, such as 2026-11-15T12:00:00Z, or a duration before the last record, such as 2h
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<TraceStart>,
    /// Replaces names with numbers, except lanes that the settings name
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    place: ConfigFile,
}

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// The trace from `laneway trace export`; - reads it from standard input
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// The configuration to try
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    /// The configuration to compare with [default: the recorded waits]
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Draws the comparison into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Reads the configurations with the library's defaults: no limit for all lanes together
    #[arg(long)]
    embedded: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("must be a moment, such as 2026-11-15T12:00:00Z, or a duration, such as 30m, 2h or 7d")]
struct NotAStart;

fn since(text: &str) -> Result<TraceStart, NotAStart> {
    let moment = text.parse::<At>().map(|at| TraceStart::Moment(at.0));
    let length = || laneway_core::duration("since", text, Millis(1)).map(TraceStart::Last);
    moment.or_else(|_| length()).map_err(|_| NotAStart)
}

/// Prints a trace of a store.
pub(crate) async fn export(verb: TraceExport) -> Result<(), CliError> {
    let place = transfer::place_of(&verb.place, verb.store.as_deref())?;
    if let StoreLocation::Path(dir) = &place {
        transfer::exists(dir)?;
    }
    let log = transfer::opened(&place).await?;
    let trace =
        laneway_whatif::export(&log, verb.since, verb.anonymous).await.map_err(|error| match error {
            ExportError::Nothing(_) => CliError::Input(error.to_string()),
            error => CliError::Failure(error.to_string()),
        })?;
    let text = trace.to_text();
    output::text(&text.map_err(|error| CliError::Failure(format!("not writable as JSON: {error}")))?)
}

/// Replays a trace with another configuration and prints the difference.
pub(crate) fn simulate(verb: &Simulate) -> Result<(), CliError> {
    let trace = trace(&verb.trace)?;
    let after = report(&trace, &verb.config, verb)?;
    let before = match &verb.against {
        Some(file) => report(&trace, file, verb)?,
        None => Report::new("recorded", &trace, &Timeline::recorded(&trace)),
    };
    let comparison = Comparison {
        arrivals: trace.arrivals.len(),
        from: trace.header.from,
        to: trace.header.to,
        missing: trace.header.missing.clone(),
        before,
        after,
    };
    if let Some(file) = &verb.svg {
        let written = std::fs::write(file, plot(&comparison));
        written.map_err(|error| CliError::Failure(format!("cannot write {}: {error}", file.display())))?;
    }
    if verb.json { output::json(&comparison) } else { output::text(&table(&comparison)) }
}

fn trace(file: &Path) -> Result<Trace, CliError> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| CliError::Input(format!("cannot read {}: {error}", file.display())))?;
    read_trace(&text).map_err(|error| CliError::Input(format!("{}, {error}", file.display())))
}

fn report(trace: &Trace, file: &Path, verb: &Simulate) -> Result<Report, CliError> {
    let profile = if verb.embedded { Profile::LIBRARY } else { Profile::SERVER };
    // Variables of this machine must not change the simulated server.
    let none: [(String, String); 0] = [];
    let config = laneway_config::load(file, profile, none);
    let config = config.map_err(|errors| CliError::Input(errors.to_string()))?;
    let played = replay(trace, config.lane_blocks());
    let played = played.map_err(|error| CliError::Input(format!("{}: {error}", file.display())))?;
    let is_short = verb.against.as_ref().is_none_or(|other| other.file_name() != verb.config.file_name());
    let name = file.file_name().filter(|_| is_short).unwrap_or(file.as_os_str());
    Ok(Report::new(name.to_string_lossy(), trace, &played))
}
