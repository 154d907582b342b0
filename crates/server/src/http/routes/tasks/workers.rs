//! Workers: claim tasks, renew leases, complete.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use laneway_core::{Fence, LiveTaskView, MessageId, Outcome, Scheduler, TaskId};
use laneway_engine::{Claim, ClaimRequest, Filter, HeartbeatReport, Since, SteeringMessage};
use laneway_protocol::{
    At, ClaimAnswer, ClaimBody, ClaimedTask, ClientEvent, Code, CompleteBody, ExternalTask, HeartbeatAnswer,
    HeartbeatBody, LeaseView, Page, TurnMessageView, WorkerView,
};

use crate::app::{App, Shared};
use crate::events::encode::heartbeat_wanted;
use crate::events::stream::EventStream;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::http::paging::PageQuery;
use crate::service::parse;
use crate::service::task_view;
use crate::service::{slots, tasks};

const CLAIM_MAX: u32 = 1000;
const WAIT_MS_MAX: u64 = 60_000;
/// The most messages that a worker may name at once: more than a turn can have.
const STEERED_MAX: usize = 1000;

/// Claims the best tasks that may run now.
#[utoipa::path(
    post, path = "/api/claim", tag = "workers", request_body = ClaimBody,
    responses((status = 200, body = ClaimAnswer))
)]
pub(crate) async fn claim(State(app): Shared, Body(body): Body<ClaimBody>) -> ApiJson<ClaimAnswer> {
    let wait = body.wait_ms.unwrap_or(0);
    if wait > WAIT_MS_MAX {
        return Err(ApiError::invalid(format!("wait_ms must be at most {WAIT_MS_MAX}")));
    }
    let request = claim_request(body)?;
    let claims = match wait {
        _ if app.draining.is_given() => Vec::new(),
        0 => app.handle.claim(request).await?,
        wait => {
            let waited = async {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(wait)) => {}
                    () = app.draining.given() => {}
                }
            };
            app.handle.claim_until(request, waited).await?
        }
    };
    let now = app.now();
    Ok(Json(ClaimAnswer { tasks: claims.into_iter().map(|claim| claimed(claim, now)).collect() }))
}

fn claim_request(body: ClaimBody) -> ApiResult<ClaimRequest> {
    if body.lease_ms == Some(0) {
        return Err(ApiError::invalid("lease_ms must be at least 1"));
    }
    let worker = parse::name("worker", body.worker)?;
    let mut request = if body.ids.is_empty() {
        let max = body.max.unwrap_or(1);
        if !(1..=CLAIM_MAX).contains(&max) {
            return Err(ApiError::invalid(format!("max must be from 1 to {CLAIM_MAX}")));
        }
        if body.lanes.is_empty() {
            return Err(ApiError::invalid("lanes must name at least one lane or pattern, or ids a task"));
        }
        ClaimRequest::new(worker.as_str(), &body.lanes).max(max)
    } else {
        if !body.lanes.is_empty() || !body.kinds.is_empty() || body.max.is_some() {
            return Err(ApiError::invalid("ids name the tasks: leave out lanes, kinds and max"));
        }
        if body.ids.len() > CLAIM_MAX as usize {
            return Err(ApiError::invalid(format!("ids must be at most {CLAIM_MAX}")));
        }
        let ids = body.ids.iter().map(|id| task_id(id)).collect::<ApiResult<Vec<TaskId>>>();
        let ids = ids.map_err(|_| ApiError::invalid("ids must be ids of tasks"))?;
        ClaimRequest::these(worker.as_str(), ids)
    };
    for kind in body.kinds {
        request = request.kind(parse::name("kind", kind)?.as_str());
    }
    if let Some(lease) = body.lease_ms {
        request = request.lease(Duration::from_millis(lease));
    }
    Ok(request)
}

fn claimed(claim: Claim, now: laneway_core::Timestamp) -> ClaimedTask {
    let remaining = claim.timeout_at.map(|at| at.since(now).0);
    ClaimedTask {
        id: claim.task.to_string(),
        session: task_view::session_of(&claim.lanes),
        lane: claim.lanes.first().map_or_else(|| "main".to_owned(), |lane| lane.to_string()),
        kind: claim.kind.to_string(),
        payload: task_view::json(claim.payload.as_deref()),
        attempt: claim.attempt,
        fence: claim.fence.0,
        lease_until: At(claim.lease_until),
        timeout_ms: remaining,
        remaining_ms: remaining,
        traceparent: claim.trace.as_deref().map(str::to_owned),
    }
}

/// Renews the lease of an attempt.
#[utoipa::path(
    post, path = "/api/tasks/{id}/heartbeat", tag = "workers", params(("id" = String, Path)),
    request_body = HeartbeatBody, responses((status = 200, body = HeartbeatAnswer))
)]
pub(crate) async fn heartbeat(
    State(app): Shared,
    Path(id): Path<String>,
    Body(body): Body<HeartbeatBody>,
) -> ApiJson<HeartbeatAnswer> {
    let task = task_id(&id)?;
    let HeartbeatBody { fence, progress, delta, usage, takes_steering, steered } = body;
    let taken = steered.map(|ids| message_ids(&ids)).transpose()?;
    let report = HeartbeatReport { takes_steering, taken, progress, delta, usage };
    let renewed = app.handle.heartbeat_with(task, Fence(fence), report).await?;
    let steering: Vec<TurnMessageView> = renewed.steer.into_iter().map(steering_view).collect();
    let steer = steering.iter().map(|message| message.text.clone()).collect();
    let (lease_until, cancel_requested) = (At(renewed.until), renewed.stopping.is_some());
    Ok(Json(HeartbeatAnswer { lease_until, cancel_requested, steer, steering }))
}

fn steering_view(message: SteeringMessage) -> TurnMessageView {
    let SteeringMessage { id, text, sender, sender_name, message_id, redelivered, metadata, attachments } =
        message;
    TurnMessageView { id, text, sender, sender_name, message_id, redelivered, metadata, attachments }
}

fn message_ids(ids: &[String]) -> ApiResult<Vec<MessageId>> {
    if ids.len() > STEERED_MAX {
        return Err(ApiError::invalid(format!("steered must be at most {STEERED_MAX}")));
    }
    let ids =
        ids.iter().map(|id| task_id(id).map(|id| MessageId(id.0))).collect::<ApiResult<Vec<MessageId>>>();
    ids.map_err(|_| ApiError::invalid("steered must be ids of messages"))
}

/// Sends `heartbeat_wanted` when the worker should send a heartbeat for one of its attempts or slots before it is due. The
/// stream starts with those that have something to hear already.
#[utoipa::path(
    get, path = "/api/workers/{worker}/events", tag = "workers", params(("worker" = String, Path)),
    responses((status = 200, body = ClientEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(State(app): Shared, Path(worker): Path<String>) -> ApiResult<Response> {
    let worker = parse::name("worker", worker)?;
    let hub = app.handle.hub().clone();
    let look = move |state: &Scheduler| {
        let is_its =
            |view: &LiveTaskView| view.running.as_ref().and_then(|running| running.worker()) == Some(&worker);
        let claimed = state.claimed().into_iter().filter(is_its).map(|view| view.id);
        let wanted: Vec<TaskId> = claimed.filter(|task| state.wants_heartbeat(*task)).collect();
        (wanted, hub.subscribe(Filter::worker(worker), Since::Now))
    };
    let (wanted, subscription) = app.handle.read(look).await?;
    let past = wanted.into_iter().map(|task| (task, heartbeat_wanted(task)));
    Ok(EventStream::new(Arc::clone(&app), subscription).starts_with(past).into_response())
}

/// Ends an attempt.
#[utoipa::path(
    post, path = "/api/tasks/{id}/complete", tag = "workers", params(("id" = String, Path)),
    request_body = CompleteBody, responses((status = 200, body = laneway_protocol::TaskView))
)]
pub(crate) async fn complete(
    State(app): Shared,
    Path(id): Path<String>,
    Body(body): Body<CompleteBody>,
) -> ApiJson<laneway_protocol::TaskView> {
    let task = task_id(&id)?;
    if body.success && body.error.is_some() {
        return Err(ApiError::invalid("a success has no error: leave out error, or set success to false"));
    }
    finish(&app, task, body).await?;
    Ok(Json(tasks::view(&app, task).await?))
}

async fn finish(app: &App, task: TaskId, body: CompleteBody) -> ApiResult<()> {
    let taken = message_ids(&body.steered)?;
    // A success without a result has the result null; a failure may have the output of what failed.
    let result = if body.success { Some(body.result.unwrap_or_default()) } else { body.result };
    let result = result.map(|result| serde_json::to_vec(&result).unwrap_or_default().into());
    let outcome = if body.success {
        Outcome::Success
    } else {
        let error = body.error.unwrap_or_else(|| "the worker reported a failure".to_owned());
        Outcome::Failure { error: error.into(), retryable: body.retryable.unwrap_or(true) }
    };
    let finished = app.handle.finish(task, Fence(body.fence), taken, outcome, result).await;
    let Err(error) = finished else { return Ok(()) };
    // The lease of an ended task is stale.
    if error.code() == "NOT_FOUND" && app.handle.finished(task).await?.is_some() {
        return Err(ApiError::new(Code::StaleLease, "the task has ended already").of_task(task));
    }
    Err(error.into())
}

/// The tasks that wait for a worker, in order.
#[utoipa::path(
    get, path = "/api/external-tasks", tag = "workers", params(PageQuery),
    responses((status = 200, body = Page<ExternalTask>))
)]
pub(crate) async fn external_tasks(
    State(app): Shared,
    Query(query): Query<PageQuery>,
) -> ApiJson<Page<ExternalTask>> {
    let (pending, next_cursor) = query.cut(app.handle.read(|lanes| lanes.pending_external()).await?)?;
    let now = app.now();
    let mut items = Vec::with_capacity(pending.len());
    for view in pending {
        items.push(ExternalTask {
            id: view.id.to_string(),
            session: task_view::session_of(&view.lanes),
            lane: view.lanes.first().map_or_else(|| "main".to_owned(), |lane| lane.to_string()),
            kind: view.kind.to_string(),
            payload: task_view::payload_of(&app.handle, view.payload).await?,
            timeout_ms: view.timeout.map(|length| length.0),
            remaining_ms: view
                .wait_until
                .into_iter()
                .chain(view.deadline)
                .min()
                .map(|until| until.since(now).0),
            attempt: view.attempts + 1,
        });
    }
    Ok(Json(Page { items, next_cursor }))
}

/// The workers that hold tasks.
#[utoipa::path(get, path = "/api/workers", tag = "workers", responses((status = 200, body = Page<WorkerView>)))]
pub(crate) async fn workers(State(app): Shared) -> ApiJson<Page<WorkerView>> {
    let claimed = app.handle.read(|lanes| lanes.claimed()).await?;
    let mut workers: BTreeMap<String, WorkerView> = BTreeMap::new();
    for view in claimed {
        let is_slot = slots::is_held(&view);
        let Some(running) = view.running.filter(|_| !is_slot) else { continue };
        let Some(name) = running.worker() else { continue };
        let (lease_until, last_heartbeat) = (At(running.lease_until), At(running.heard));
        let worker = workers.entry(name.to_string()).or_insert_with(|| WorkerView {
            worker: name.to_string(),
            tasks: Vec::new(),
            lease_until,
            last_heartbeat,
            leases: Vec::new(),
        });
        let task = view.id.to_string();
        worker.tasks.push(task.clone());
        worker.lease_until = worker.lease_until.min(lease_until);
        worker.last_heartbeat = worker.last_heartbeat.max(last_heartbeat);
        let (kind, started_at) = (view.kind.to_string(), At(running.started));
        worker.leases.push(LeaseView { task, kind, started_at, last_heartbeat, lease_until });
    }
    Ok(Json(Page { items: workers.into_values().collect(), next_cursor: None }))
}
