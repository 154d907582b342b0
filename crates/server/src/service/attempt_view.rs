//! The attempts at a task, as clients see them.

use laneway_core::End;
use laneway_engine::TaskRecord;
use laneway_protocol::{At, AttemptView, end_word};
use laneway_store::Try;

/// The known attempts at a task, in order: those that another attempt followed, and the last.
pub(crate) fn of(record: &TaskRecord) -> Vec<AttemptView> {
    let last = last(record);
    let started = match (&record.live, &record.finished) {
        (Some(view), _) => view.attempts,
        (None, finished) => finished.as_ref().map_or(0, |finished| finished.attempts),
    };
    // The record keeps only the newest of many attempts.
    let known = record.tries.len() + usize::from(last.is_some());
    let first = started.saturating_sub(known as u32) + 1;
    let tries = record.tries.iter().map(retried).chain(last);
    tries.zip(first..).map(|(attempt, number)| AttemptView { number, ..attempt }).collect()
}

fn retried(attempt: &Try) -> AttemptView {
    AttemptView {
        outcome: "failed".to_owned(),
        started_at: attempt.started.map(At),
        ended_at: Some(At(attempt.ended)),
        worker: attempt.worker.as_ref().map(|name| name.to_string()),
        error: Some(attempt.error.to_string()),
        ..AttemptView::default()
    }
}

/// The running attempt, or the one that ended the task.
fn last(record: &TaskRecord) -> Option<AttemptView> {
    if let Some(view) = &record.live {
        let running = view.running.as_ref()?;
        return Some(AttemptView {
            outcome: "running".to_owned(),
            started_at: Some(At(running.started)),
            worker: running.worker().map(|name| name.to_string()),
            ..AttemptView::default()
        });
    }
    let finished = record.finished.as_ref()?;
    // A task that ended while it waited for a retry has no last attempt.
    let started = finished.started?;
    Some(AttemptView {
        outcome: end_word(&finished.end).to_owned(),
        started_at: Some(At(started)),
        ended_at: Some(At(finished.ended)),
        worker: finished.worker.as_ref().map(|name| name.to_string()),
        error: match &finished.end {
            End::Failed { error } => Some(error.to_string()),
            _ => None,
        },
        ..AttemptView::default()
    })
}
