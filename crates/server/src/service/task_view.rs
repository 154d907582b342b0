//! Tasks as clients see them.

use laneway_core::{BlobId, Blocker, End, Explanation, LaneName, LiveTaskView as Live, Timestamp};
use laneway_engine::{Handle, Standing};
use laneway_protocol::{
    At, BlockerView, TaskView, TurnPayloadView, cancel_reason, end_word, source_word, status_word,
};
use laneway_store::Finished;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::http::error::ApiResult;

/// The key of the session among a task's lanes.
pub(crate) fn session_of(lanes: &[LaneName]) -> Option<String> {
    let lane = lanes.iter().find(|lane| lane.is_session_family())?;
    let key = lane.as_str().strip_prefix("session:")?;
    let key = key.split_once('/').map_or(key, |(key, _)| key);
    Some(percent_decode_str(key).decode_utf8_lossy().into_owned())
}

fn texts(lanes: &[LaneName]) -> Vec<String> {
    lanes.iter().map(|lane| lane.as_str().to_owned()).collect()
}

fn text(value: Option<&impl ToString>) -> Option<String> {
    value.map(ToString::to_string)
}

/// A payload as clients see it; `null` if there is none.
pub(crate) async fn payload_of(handle: &Handle, payload: Option<BlobId>) -> ApiResult<Value> {
    let Some(blob) = payload else { return Ok(Value::Null) };
    Ok(json(handle.payload(blob).await?.as_deref()))
}

/// What an agent is asked with a task, unless the task answers messages.
pub(crate) async fn turn_of(handle: &Handle, view: &Live) -> ApiResult<Option<TurnPayloadView>> {
    Ok(serde_json::from_value(payload_of(handle, view.payload).await?).ok())
}

/// A payload or result from the store; `null` if there is none.
pub(crate) fn json(bytes: Option<&[u8]>) -> Value {
    bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}

/// A live task.
pub(crate) fn live(view: &Live, standing: Standing) -> TaskView {
    let running = view.running.as_ref();
    TaskView {
        id: view.id.to_string(),
        status: status_word(view.status).to_owned(),
        kind: view.kind.to_string(),
        lanes: texts(&view.lanes),
        session: session_of(&view.lanes),
        source: source_word(view.source).to_owned(),
        priority: view.priority,
        effective_priority: Some(view.effective_priority),
        attempts: view.attempts,
        position: standing.position.map(|position| position as u64),
        eta_ms: standing.starts_in.map(|length| length.0),
        submitted_at: At(view.submitted),
        started_at: running.map(|running| At(running.started)),
        lease_until: running.map(|running| At(running.lease_until)),
        wait_until: view.wait_until.filter(|_| running.is_none()).map(At),
        deadline_at: view.deadline.map(At),
        timeout_ms: view.timeout.map(|length| length.0),
        worker: running.and_then(|running| text(running.worker())),
        group: text(view.group.as_ref()),
        label: text(view.label.as_ref()),
        parent: text(view.parent.as_ref()),
        cancel_requested: running.is_some_and(|running| running.stopping),
        ..TaskView::default()
    }
}

/// A task that has ended.
pub(crate) fn finished(finished: &Finished) -> TaskView {
    let (error, reason) = match &finished.end {
        End::Failed { error } => (Some(error.to_string()), None),
        End::Cancelled { reason } => (None, Some(cancel_reason(*reason).to_owned())),
        _ => (None, None),
    };
    TaskView {
        id: finished.task.to_string(),
        status: end_word(&finished.end).to_owned(),
        kind: finished.kind.to_string(),
        lanes: texts(&finished.lanes),
        session: session_of(&finished.lanes),
        error,
        reason,
        source: source_word(finished.source).to_owned(),
        priority: finished.priority,
        attempts: finished.attempts,
        submitted_at: At(finished.submitted),
        started_at: finished.started.map(At),
        ended_at: Some(At(finished.ended)),
        worker: text(finished.worker.as_ref()),
        group: text(finished.group.as_ref()),
        label: text(finished.label.as_ref()),
        parent: text(finished.parent.as_ref()),
        ..TaskView::default()
    }
}

/// The reasons why a task waits, in order.
pub(super) fn blockers(explanation: &Explanation) -> Vec<BlockerView> {
    explanation.blockers.iter().map(blocker).collect()
}

fn blocker(blocker: &Blocker) -> BlockerView {
    let view =
        |kind: &str, detail: String| BlockerView { kind: kind.to_owned(), detail, ..BlockerView::default() };
    let of_lane = |kind: &str, lane: &LaneName, detail: String| BlockerView {
        lane: Some(lane.to_string()),
        ..view(kind, detail)
    };
    let until = |until: &Timestamp, view: BlockerView| BlockerView { until: Some(At(*until)), ..view };
    match blocker {
        Blocker::NotYet { until: at } => until(at, view("not_yet", "its time has not come".to_owned())),
        Blocker::After { task } => {
            let view = view("after", "it starts when another task has ended".to_owned());
            BlockerView { tasks: vec![task.to_string()], ..view }
        }
        Blocker::BackingOff { until: at } => {
            until(at, view("backing_off", "its next attempt waits for its time".to_owned()))
        }
        Blocker::Paused { lane } => of_lane("paused", lane, format!("lane {lane} is paused")),
        Blocker::RateLimited { lane, until: at } => {
            until(at, of_lane("rate_limited", lane, format!("the rate limit of lane {lane} is used up")))
        }
        Blocker::SessionBusy { lane, turn, since } => {
            let view = of_lane("session_busy", lane, "its session has a turn that runs".to_owned());
            BlockerView { tasks: vec![turn.to_string()], since: Some(At(*since)), ..view }
        }
        Blocker::LaneFull { lane, max_concurrency, holders } => {
            let detail = match max_concurrency {
                1 => format!("the slot of lane {lane} is taken"),
                _ => format!("all {max_concurrency} slots of lane {lane} are taken"),
            };
            let tasks = holders.iter().map(|(task, _)| task.to_string()).collect();
            let since = holders.first().map(|(_, since)| At(*since));
            BlockerView { tasks, since, ..of_lane("lane_full", lane, detail) }
        }
        Blocker::Reserved { lane, task } => {
            let detail =
                format!("the free slot of lane {lane} is kept for a task that was passed over too often");
            BlockerView { tasks: vec![task.to_string()], ..of_lane("reserved", lane, detail) }
        }
        Blocker::Unclaimed => view("unclaimed", "no worker has claimed it".to_owned()),
        Blocker::Behind { tasks } => {
            let come = if *tasks == 1 { "comes" } else { "come" };
            let view = view("behind", format!("{tasks} in its home lane {come} first"));
            BlockerView { count: Some(*tasks as u64), ..view }
        }
        _ => view("other", "another rule holds it up".to_owned()),
    }
}
