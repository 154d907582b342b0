//! Slots that guard code of the caller's own: a task that is granted to the caller as a worker, which renews its lease
//! by heartbeat and completes it, at any replica.

use std::sync::Arc;

use axum::http::StatusCode;
use laneway_core::{
    End, Event, Fence, LiveTaskView, Millis, Name, Owner, Parent, Retry, TaskId, TaskSpec, Timestamp,
};
use laneway_engine::{Error, Filter, RunError, Subscription, TaskHandle, Update};
use laneway_protocol::{At, Code, PriorityRequest, SlotAnswer, SlotRequest};
use tokio::sync::oneshot;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::task_id;
use crate::service::parse::{self, level, millis, session_lane, source, task_lane};
use crate::service::request_options::RequestOptions;
use crate::service::submission::{Submission, submit_as};

/// The kind of tasks that hold a slot for a caller, which the history knows them by.
const KIND: &str = "laneway.remote-slot";

/// The answer, and a channel on which the request confirms that it read it: a request that is dropped may leave it unread.
type Reply = oneshot::Sender<(ApiResult<SlotAnswer>, oneshot::Sender<()>)>;

/// Waits for a slot of each lane and hands it to the caller, unless `has_left` says that the caller closed its connection.
pub(crate) async fn take(
    app: &Arc<App>,
    caller: &Caller,
    options: &RequestOptions,
    request: SlotRequest,
    has_left: impl Fn() -> bool,
) -> ApiResult<SlotAnswer> {
    let id = match &request.id {
        Some(id) => unused_id(app, id).await?,
        None => app.handle.new_id(),
    };
    let submission = submission(app, caller, options, request).await?;
    let (reply, answer) = oneshot::channel();
    tokio::spawn(acquire(Arc::clone(app), id, submission, reply));
    let (answer, confirm) = answer.await.map_err(|_| Error::Closed)?;
    if !has_left() {
        // A refusal needs no confirmation.
        confirm.send(()).ok();
    }
    answer
}

/// The id that a caller chose for its slot, if no task has or had it.
async fn unused_id(app: &App, id: &str) -> ApiResult<TaskId> {
    let bad = |_| ApiError::invalid("id must be a UUID with hyphens, such as a new one of version 7");
    let id = task_id(id).map_err(bad)?;
    let is_live = app.handle.task(id).await?.is_some();
    if is_live || app.handle.finished(id).await?.is_some() {
        let detail = if is_live { "a live task has this id" } else { "a task that has ended had this id" };
        let refusal = ApiError::invalid(format!("{detail}: choose another one")).status(StatusCode::CONFLICT);
        return Err(refusal.of_task(id));
    }
    Ok(id)
}

async fn submission(
    app: &App,
    caller: &Caller,
    options: &RequestOptions,
    request: SlotRequest,
) -> ApiResult<Submission> {
    if request.lanes.is_empty() {
        return Err(ApiError::invalid("lanes must name at least one lane"));
    }
    let mut lanes = request.lanes.iter().map(task_lane).collect::<ApiResult<Vec<_>>>()?;
    if let Some(session) = &request.session {
        lanes.push(session_lane(session)?);
    }
    let home = app.handle.settings(lanes[0].clone()).await?;
    let lease = millis(request.lease_ms).unwrap_or(home.lease);
    if lease == Millis(0) || lease > Millis::MAX {
        return Err(ApiError::invalid("lease_ms must be from 1 to ten years"));
    }
    let name = |text: String| Name::new(text).map_err(Error::from);
    let mut spec = TaskSpec::new(name(KIND.to_owned())?, lanes);
    spec.priority = level(app, request.priority.as_ref()).await?;
    let word = request.source.as_deref().or(request.priority.as_ref().and_then(PriorityRequest::word));
    spec.source = word.map_or(Ok(options.source()), source)?;
    spec.label = request.label.map(|label| parse::name("label", label)).transpose()?;
    spec.parent = options.parent.map(|task| Parent { task, detached: false });
    spec.wait_timeout = millis(request.wait_ms);
    spec.retry = Some(Retry::NONE);
    let holder = match request.worker {
        Some(worker) => parse::name("worker", worker)?,
        None => name(format!("slot:{}", caller.key_space()))?,
    };
    spec.owner = Some(Owner::Worker(holder));
    spec.lease = Some(lease);
    let payload = serde_json::json!({ "lease_ms": lease.0 });
    Ok(Submission::new(app, caller, options, spec, payload))
}

/// Submits the task and waits for its grant. A slot whose caller disconnected is given back at once.
async fn acquire(app: Arc<App>, id: TaskId, submission: Submission, mut reply: Reply) {
    let updates = app.handle.subscribe(Filter::task(id));
    let answer = match submit_as(&app, id, submission).await {
        Err(error) => Err(error),
        Ok(task) => tokio::select! {
            biased;
            answer = granted(updates, task) => answer,
            refusal = draining(&app) => {
                abandon(&app, id).await;
                Err(refusal.of_task(id))
            }
            () = reply.closed() => return abandon(&app, id).await,
        },
    };
    let is_held = answer.is_ok();
    let (confirm, confirmed) = oneshot::channel();
    let is_taken = reply.send((answer, confirm)).is_ok() && confirmed.await.is_ok();
    if is_held && !is_taken {
        abandon(&app, id).await;
    }
}

/// Waits until this server stops granting and no other replica can. So a caller need not wait for the end of the drain.
async fn draining(app: &App) -> ApiError {
    if app.handle.here().is_some() {
        return std::future::pending().await;
    }
    app.draining.given().await;
    ApiError::new(Code::Draining, "the server is shutting down and grants no more slots")
}

async fn granted(mut updates: Subscription, mut task: TaskHandle) -> ApiResult<SlotAnswer> {
    let id = task.id();
    let (fence, until) = tokio::select! {
        biased;
        grant = next_grant(&mut updates) => grant,
        ending = task.ended() => return Err(match ending?.into_result() {
            Err(RunError::Ended(end)) => ApiError::ended(id, &end),
            Err(RunError::Refused(error)) => error.into(),
            _ => ApiError::new(Code::Internal, "the slot was given back before it was taken"),
        }),
    };
    Ok(SlotAnswer { id: id.to_string(), fence: fence.0, lease_until: At(until) })
}

/// The next grant among the updates of one task. An engine that ends says so through the task.
async fn next_grant(updates: &mut Subscription) -> (Fence, Timestamp) {
    while let Some(update) = updates.next().await {
        if let Update::Event { event, .. } = update
            && let Event::Granted { fence, lease_until, .. } = &*event
        {
            return (*fence, *lease_until);
        }
    }
    std::future::pending().await
}

/// Cancels a slot whose caller is gone, and confirms the stop in the caller's place.
async fn abandon(app: &App, id: TaskId) {
    let stopped = async {
        app.handle.cancel(id).await?;
        let running = app.handle.task(id).await?.and_then(|view| view.running);
        match running {
            Some(running) => app.handle.stopped(id, running.fence).await,
            None => Ok(()),
        }
    };
    if let Err(error) = stopped.await {
        tracing::debug!(task = %id, %error, "an abandoned slot is free when its lease lapses");
    }
}

/// Whether a task holds a slot for a caller, or waits for one.
pub(crate) fn is_held(view: &LiveTaskView) -> bool {
    view.owner.as_ref().and_then(Owner::worker).is_some()
}

/// Gives a slot back. A repetition changes nothing.
pub(crate) async fn give_back(app: &App, task: TaskId, fence: Fence) -> ApiResult<()> {
    let view = app.handle.task(task).await?;
    if view.is_some_and(|view| is_held(&view)) {
        return Ok(app.handle.complete(task, fence, Some("null".into())).await?);
    }
    match app.handle.finished(task).await? {
        Some((finished, _)) if finished.kind.as_str() != KIND => Err(ApiError::not_found("slot")),
        // Only its holder completes a slot.
        Some((finished, _)) if finished.end == End::Completed => Ok(()),
        Some(_) => {
            Err(ApiError::new(Code::StaleLease, "the slot has lapsed or was given back").of_task(task))
        }
        None => Err(ApiError::not_found("slot")),
    }
}
