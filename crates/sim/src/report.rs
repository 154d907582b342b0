//! Histories in words.

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
