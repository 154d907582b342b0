//! What is known of tasks that were accepted before the log begins: from the history of finished work, and from the state.

use laneway_core::{LiveTaskView, Source, TaskSpec};
use laneway_store::{Finished, Try};

use crate::recorder::{Known, KnownParent, asked, attempt_end, outcome};
use crate::trace::{Arrival, AttemptEnd, RecordedAttempt};

/// A finished task.
pub(crate) fn finished(task: Finished) -> Known {
    let submitted = task.submitted.0;
    let (outcome, reason) = outcome(&task.end);
    let span = |start: u64, end: u64, how: AttemptEnd| RecordedAttempt {
        start_ms: start.saturating_sub(submitted),
        run_ms: end.saturating_sub(start),
        end: how,
        stop_ms: None,
        borrowed: Vec::new(),
    };
    let tried = |tried: &Try| Some(span(tried.started?.0, tried.ended.0, AttemptEnd::Failed));
    let mut attempts: Vec<RecordedAttempt> = task.tries.iter().filter_map(tried).collect();
    // What was cancelled while it waited for its next attempt has no last run.
    let last = task.started.filter(|started| {
        task.tries.last().and_then(|tried| tried.started).is_none_or(|tried| tried < *started)
    });
    attempts.extend(last.map(|started| span(started.0, task.ended.0, attempt_end(outcome))));
    let parent = task.parent.map(|parent| KnownParent { task: parent, detached: None });
    let mut spec = TaskSpec::new(task.kind, task.lanes);
    (spec.source, spec.priority) = (task.source, asked_priority(task.source, task.priority));
    let ended_ms = Some(task.ended.since(task.submitted).0);
    let arrival = Arrival { attempts, outcome, reason, ended_ms, ..asked(submitted, spec) };
    Known { task: task.task, parent, after: None, arrival }
}

/// A task that was not over when the trace ends at `to`.
pub(crate) fn live(task: LiveTaskView, to: u64) -> Known {
    let run = task.running.as_ref().map(|running| RecordedAttempt {
        start_ms: running.started.since(task.submitted).0,
        run_ms: to.saturating_sub(running.started.0),
        end: AttemptEnd::Cut,
        stop_ms: None,
        borrowed: Vec::new(),
    });
    let parent = task.parent.map(|parent| KnownParent { task: parent, detached: None });
    let mut spec = TaskSpec::new(task.kind, task.lanes);
    (spec.source, spec.priority) = (task.source, asked_priority(task.source, task.priority));
    spec.deadline = task.deadline.map(|at| at.since(task.submitted));
    let arrival = Arrival { attempts: run.into_iter().collect(), ..asked(task.submitted.0, spec) };
    Known { task: task.id, parent, after: None, arrival }
}

/// Whether a priority was asked for is not kept; one that is not its source's was, or came from the lane's settings.
fn asked_priority(source: Source, priority: u8) -> Option<u8> {
    Some(priority).filter(|priority| *priority != laneway_core::Priorities::default().of(source))
}
