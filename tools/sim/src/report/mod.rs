//! Histories in words.

pub(crate) mod shrink;
pub(crate) mod summary;

use laneway_core::Event;

/// An event in a few words.
pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::Submitted { task, spec, .. } => {
            let lanes: Vec<&str> = spec.lanes.iter().map(|lane| lane.as_str()).collect();
            format!("submitted {task} {}", lanes.join("+"))
        }
        Event::Granted { task, fence, .. } => format!("granted {task} #{}", fence.0),
        Event::Renewed { task, fence, .. } => format!("renewed {task} #{}", fence.0),
        Event::Stopping { task, fence, reason, .. } => format!("stopping {task} #{} {reason:?}", fence.0),
        Event::Retrying { task, fence, error, .. } => format!("retrying {task} #{} ({error})", fence.0),
        Event::Redelivered { task, fence } => format!("redelivered {task} #{}", fence.0),
        Event::Ended { task, end } => format!("ended {task} {end:?}"),
        Event::Session(session) => {
            let change = format!("{:?}", session.change);
            let word = change.split([' ', '{']).next().unwrap_or_default().to_lowercase();
            format!("{} {word}", session.session)
        }
        other => {
            let text = format!("{other:?}");
            text.split([' ', '{', '(']).next().unwrap_or_default().to_lowercase()
        }
    }
}

/// What sort of violation this is: its words without times, numbers and names of tasks, and without what is listed as
/// an example. Findings about the state are told apart by what they found.
pub fn gist(violation: &str) -> String {
    let text = violation
        .strip_prefix("at ")
        .and_then(|text| text.split_once(" ms: "))
        .map_or(violation, |(_, text)| text);
    let text = match text.split_once(": ") {
        Some((what, _)) if what != "the state is not sound" => what,
        _ => text,
    };
    let is_word = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit());
    text.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ")
}
