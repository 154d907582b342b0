//! `laneway scenario`: plays a script and prints a timeline.

use std::io::{self, ErrorKind, IsTerminal, Write};

use laneway_scenario::{Line, ScriptError, Tone, play};

const TOUR: &str = include_str!("../../../../examples/tour.scenario");

/// Why a scenario is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotShown {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("{name}, {source}")]
    Script { name: String, source: ScriptError },
    #[error("cannot write: {0}")]
    Unwritable(#[source] io::Error),
}

/// Plays the built-in scenario.
pub(crate) fn tour() -> Result<(), NotShown> {
    show("tour", TOUR)
}

/// Plays the script in a file; `-` is standard input.
pub(crate) fn file(path: &str) -> Result<(), NotShown> {
    let script =
        if path == "-" { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(path) };
    show(path, &script.map_err(|source| NotShown::Unreadable { path: path.to_owned(), source })?)
}

fn show(name: &str, script: &str) -> Result<(), NotShown> {
    let lines = play(script).map_err(|source| NotShown::Script { name: name.to_owned(), source })?;
    let mut out = std::io::stdout();
    let in_colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match out.write_all(timeline(&lines, in_colour).as_bytes()) {
        // The reader closed standard output, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(NotShown::Unwritable),
    }
}

/// Two columns, time and text. Lines of one moment show its time once, and the script's own words are above their lines.
fn timeline(lines: &[Line], in_colour: bool) -> String {
    let width = lines.iter().map(|line| seconds(line.at.0).len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut last = None;
    for line in lines {
        let (start, end) = if in_colour { (colour(line.tone), "\u{1b}[0m") } else { ("", "") };
        if line.tone == Tone::Narration {
            text.push_str(&format!("\n{start}{}{end}\n", line.text));
            last = None;
            continue;
        }
        let time = if last == Some(line.at) { String::new() } else { seconds(line.at.0) };
        last = Some(line.at);
        text.push_str(&format!("{time:>width$}  {start}{}{end}\n", line.text));
    }
    text.trim_start_matches('\n').to_owned()
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Waiting => "\u{1b}[2m",
        Tone::Start => "\u{1b}[36m",
        Tone::Success => "\u{1b}[32m",
        Tone::Trouble => "\u{1b}[33m",
        Tone::Refusal => "\u{1b}[31m",
        Tone::Lane => "\u{1b}[35m",
        Tone::Answer => "\u{1b}[34m",
        Tone::Narration => "\u{1b}[1m",
    }
}
