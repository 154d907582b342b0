//! Explains in sentences why a task waits.

use laneway_protocol::{BlockerView, ExplainView, TaskView};

use crate::output::format;

/// How many blocking tasks a sentence names.
const NAMED_MAX: usize = 3;

/// The whole explanation, the most important sentence first.
pub(crate) fn of(explained: &ExplainView, task: &TaskView) -> Vec<String> {
    if explained.status == "running" {
        let since = task.started_at.map(format::since).unwrap_or_default();
        return vec![format!("The task does not wait: attempt {} has run for {since}.", task.attempts)];
    }
    let waited = format::since(task.submitted_at);
    let mut sentences = vec![match explained.position {
        Some(position) => format!("The task has waited for {waited} and is at position {position}."),
        None => format!("The task was accepted {waited} ago and has no position yet."),
    }];
    if explained.blockers.is_empty() {
        sentences.push("Nothing blocks it; it is about to start.".to_owned())
    } else {
        sentences.extend(explained.blockers.iter().map(blocker))
    }
    sentences.push(match explained.eta_ms {
        Some(eta) => format!("It starts in about {}.", format::duration(eta)),
        None => "There is no estimate of its start yet.".to_owned(),
    });
    sentences
}

/// A short explanation for a screen, without the names of blocking tasks.
pub(crate) fn brief(explained: &ExplainView) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for blocker in &explained.blockers {
        let since = blocker.since.map(|since| format!(" for {}", format::since(since))).unwrap_or_default();
        sentences.push(format!("{}{since}.", capital(&blocker.detail)));
    }
    sentences.extend(explained.eta_ms.map(|eta| format!("Starts in about {}.", format::duration(eta))));
    sentences.join(" ")
}

fn blocker(blocker: &BlockerView) -> String {
    let mut sentence = capital(&blocker.detail);
    if !blocker.tasks.is_empty() {
        let named: Vec<&str> = blocker.tasks.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = match blocker.tasks.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        sentence.push_str(&format!(", by {}{more}", named.join(", ")));
    }
    if let Some(since) = blocker.since {
        sentence.push_str(&format!(", for {}", format::since(since)));
    }
    if let Some(until) = blocker.until {
        sentence.push_str(&format!(", for another {}", format::until(until)));
    }
    sentence.push('.');
    if let Some(remedy) = remedy(blocker) {
        sentence.push_str(&format!(" {remedy}"));
    }
    sentence
}

/// What an operator can do about a blocker.
fn remedy(blocker: &BlockerView) -> Option<String> {
    let lane = blocker.lane.as_deref()?;
    match blocker.kind.as_str() {
        "paused" => Some(format!("`laneway lanes resume {lane}` ends the pause.")),
        "lane_full" => Some(format!("`laneway lanes set {lane} max_concurrency=N` makes room.")),
        _ => None,
    }
}

fn capital(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}
