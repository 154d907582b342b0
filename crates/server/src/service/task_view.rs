//! Tasks as clients see them.

use laneway_core::{Blocker, End, Explanation, LaneName, TaskId, TaskView as Live};
use laneway_engine::{Handle, Standing};
use laneway_protocol::{At, BlockerView, TaskView, cancel_reason, end_word, source_word, status_word};
use laneway_store::Finished;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::http::error::ApiResult;
use crate::service::envelope::Envelope;

/// The conversation among a task's lanes, as its key.
pub(crate) fn session_of(lanes: &[LaneName]) -> Option<String> {
    let lane = lanes.iter().find(|lane| lane.is_session())?;
    let key = lane.as_str().strip_prefix("session:")?;
    let key = key.split_once('/').map_or(key, |(key, _)| key);
    Some(percent_decode_str(key).decode_utf8_lossy().into_owned())
}

fn texts(lanes: &[LaneName]) -> Vec<String> {
    lanes.iter().map(|lane| lane.as_str().to_owned()).collect()
}

/// What a payload holds, with who asked; nothing if it is gone.
pub(crate) async fn envelope_of(handle: &Handle, view: &Live) -> ApiResult<Envelope> {
    let Some(blob) = view.payload else { return Ok(Envelope::default()) };
    let bytes = handle.payload(blob).await?;
    Ok(bytes.map(|bytes| Envelope::open(&bytes)).unwrap_or_default())
}

/// A live task.
pub(crate) fn live(view: &Live, standing: Standing, envelope: Option<Envelope>) -> TaskView {
    let running = view.running.as_ref();
    let (payload, owner, traceparent) = match envelope {
        Some(envelope) => (Some(envelope.payload), envelope.owner, envelope.traceparent),
        None => (None, None, None),
    };
    TaskView {
        id: view.id.to_string(),
        status: status_word(view.status).to_owned(),
        kind: view.kind.to_string(),
        lanes: texts(&view.lanes),
        session: session_of(&view.lanes),
        payload,
        result: None,
        error: None,
        reason: None,
        source: source_word(view.source).to_owned(),
        priority: view.priority,
        effective_priority: Some(view.effective_priority),
        attempts: view.attempts,
        attempt_list: Vec::new(),
        position: standing.position.map(|place| place as u64),
        lane_position: None,
        eta_ms: standing.starts_in.map(|length| length.0),
        submitted_at: At(view.submitted),
        started_at: running.map(|running| At(running.started)),
        ended_at: None,
        lease_until: running.map(|running| At(running.lease_until)),
        wait_until: view.wait_until.filter(|_| running.is_none()).map(At),
        deadline_at: view.deadline.map(At),
        timeout_ms: view.timeout.map(|length| length.0),
        worker: running.and_then(|running| running.worker.as_ref()).map(|name| name.to_string()),
        group: view.group.as_ref().map(|name| name.to_string()),
        parent: view.parent.map(|task| task.to_string()),
        cancel_requested: running.is_some_and(|running| running.stopping),
        owner,
        traceparent,
    }
}

/// A task that is over, with what it was asked if that is remembered.
pub(crate) fn finished(finished: &Finished, result: Option<Value>, envelope: Option<Envelope>) -> TaskView {
    let (payload, owner, traceparent) = match envelope {
        Some(envelope) => (Some(envelope.payload), envelope.owner, envelope.traceparent),
        None => (None, None, None),
    };
    TaskView {
        id: finished.task.to_string(),
        status: end_word(&finished.end).to_owned(),
        kind: finished.kind.to_string(),
        lanes: texts(&finished.lanes),
        session: session_of(&finished.lanes),
        payload,
        result,
        error: match &finished.end {
            End::Failed { error } => Some(error.to_string()),
            _ => None,
        },
        reason: match &finished.end {
            End::Cancelled { reason } => Some(cancel_reason(*reason).to_owned()),
            _ => None,
        },
        source: source_word(finished.source).to_owned(),
        priority: finished.priority,
        effective_priority: None,
        attempts: finished.attempts,
        attempt_list: Vec::new(),
        position: None,
        lane_position: None,
        eta_ms: None,
        submitted_at: At(finished.submitted),
        started_at: finished.started.map(At),
        ended_at: Some(At(finished.ended)),
        lease_until: None,
        wait_until: None,
        deadline_at: None,
        timeout_ms: None,
        worker: finished.worker.as_ref().map(|name| name.to_string()),
        group: finished.group.as_ref().map(|name| name.to_string()),
        parent: finished.parent.map(|task| task.to_string()),
        cancel_requested: false,
        owner,
        traceparent,
    }
}

/// What holds a task up, in order.
pub(crate) fn blockers(explanation: &Explanation) -> Vec<BlockerView> {
    explanation.blockers.iter().map(blocker).collect()
}

fn blocker(blocker: &Blocker) -> BlockerView {
    let plain = |kind: &str, detail: String| BlockerView {
        kind: kind.to_owned(),
        detail,
        lane: None,
        tasks: Vec::new(),
        since: None,
        until: None,
        count: None,
    };
    let id = |task: &TaskId| task.to_string();
    match blocker {
        Blocker::NotYet { until } => {
            BlockerView { until: Some(At(*until)), ..plain("not_yet", "its time has not come".to_owned()) }
        }
        Blocker::After { task } => {
            let view = plain("after", "it starts when another task has ended".to_owned());
            BlockerView { tasks: vec![id(task)], ..view }
        }
        Blocker::BackingOff { until } => {
            let view = plain("backing_off", "its next attempt waits for its time".to_owned());
            BlockerView { until: Some(At(*until)), ..view }
        }
        Blocker::Paused { lane } => {
            BlockerView { lane: Some(lane.to_string()), ..plain("paused", format!("lane {lane} is paused")) }
        }
        Blocker::RateLimited { lane, until } => {
            let view = plain("rate_limited", format!("the rate limit of lane {lane} is used up"));
            BlockerView { lane: Some(lane.to_string()), until: Some(At(*until)), ..view }
        }
        Blocker::SessionBusy { lane, turn, since } => {
            let view = plain("session_busy", "its conversation has a turn that runs".to_owned());
            let tasks = vec![id(turn)];
            BlockerView { lane: Some(lane.to_string()), tasks, since: Some(At(*since)), ..view }
        }
        Blocker::LaneFull { lane, max_concurrency, holders } => {
            let detail = match max_concurrency {
                1 => format!("the slot of lane {lane} is taken"),
                _ => format!("all {max_concurrency} slots of lane {lane} are taken"),
            };
            let tasks = holders.iter().map(|(task, _)| id(task)).collect();
            let since = holders.first().map(|(_, since)| At(*since));
            BlockerView { lane: Some(lane.to_string()), tasks, since, ..plain("lane_full", detail) }
        }
        Blocker::Reserved { lane, task } => {
            let detail =
                format!("the free slot of lane {lane} is kept for a task that was passed over too often");
            BlockerView { lane: Some(lane.to_string()), tasks: vec![id(task)], ..plain("reserved", detail) }
        }
        Blocker::Unclaimed => plain("unclaimed", "no worker has claimed it".to_owned()),
        Blocker::Behind { tasks } => {
            let come = if *tasks == 1 { "comes" } else { "come" };
            let view = plain("behind", format!("{tasks} in its home lane {come} first"));
            BlockerView { count: Some(*tasks as u64), ..view }
        }
        _ => plain("other", "something else holds it up".to_owned()),
    }
}
