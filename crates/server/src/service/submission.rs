//! A checked task on its way into the queue.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{Idempotency, LaneName, Name, Rejection, TaskId, TaskSpec};
use laneway_engine::{Error, OnDrop, Submitted, TaskHandle};
use laneway_protocol::{Code, Scope};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::agents::handlers::agent_kind;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::service::parse::TOKEN_LANE;
use crate::service::request_options::RequestOptions;

/// A checked task, ready to submit.
pub(crate) struct Submission {
    spec: Box<TaskSpec>,
    payload: Bytes,
    /// The parent in the request, and the caller that names it.
    child_of: Option<(TaskId, Caller)>,
}

impl Submission {
    /// A task of a caller, with the lane that bounds the caller's waiting tasks.
    pub(super) fn new(
        app: &App,
        caller: &Caller,
        options: &RequestOptions,
        mut spec: TaskSpec,
        payload: impl Serialize,
    ) -> Submission {
        spec.lanes.extend(token_lane(app, caller));
        spec.caller = caller.token_name();
        spec.trace = options.traceparent.as_deref().map(Arc::from);
        let child_of = spec.parent.map(|parent| (parent.task, caller.clone()));
        // Writing values to memory as JSON cannot fail.
        let payload = serde_json::to_vec(&payload).unwrap_or_default().into();
        Submission { spec: Box::new(spec), payload, child_of }
    }

    async fn check(&self, app: &App) -> ApiResult<()> {
        check_draining(app)?;
        match &self.child_of {
            Some((parent, caller)) => check_parent(app, caller, *parent).await,
            None => Ok(()),
        }
    }
}

/// The lane that bounds the waiting tasks of a caller.
pub(crate) fn token_lane(app: &App, caller: &Caller) -> Option<LaneName> {
    let token = caller.token.as_deref().filter(|_| app.config.load().server.token_waiting.is_some())?;
    LaneName::new(format!("{TOKEN_LANE}{token}")).ok()
}

/// Submits a task whose end the caller may wait for.
pub(super) async fn submit(app: &App, submission: Submission) -> ApiResult<TaskHandle> {
    submit_as(app, app.handle.new_id(), submission).await
}

/// Submits a task under a given id.
pub(crate) async fn submit_as(app: &App, id: TaskId, submission: Submission) -> ApiResult<TaskHandle> {
    submission.check(app).await?;
    let Submission { spec, payload, .. } = submission;
    let task = app.handle.submit_spec(id, spec, Some(payload)).await;
    let task = task.map_err(|error| refused(id, error))?;
    if !task.joined() {
        app.traces.accepted(task.id());
        app.traces.note_wait(task.id(), &task.standing(), &app.handle);
    }
    Ok(task)
}

/// Submits a task that lives as long as the caller's connection, and that this replica runs. A caller that
/// disconnects while the task is being accepted leaves nothing behind.
pub(super) async fn submit_connected(app: &Arc<App>, mut submission: Submission) -> ApiResult<TaskHandle> {
    submission.spec.caller_at = app.handle.here();
    let (sender, receiver) = oneshot::channel();
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let task = submit(&app, submission).await.map(|task| task.on_drop(OnDrop::Cancel));
        // Dropping an undelivered handle cancels the task.
        drop(sender.send(task));
    });
    receiver.await.unwrap_or_else(|_| Err(Error::Closed.into()))
}

/// The home lane of tasks that neither this server nor their own home lane runs.
pub(super) const EXTERNAL: &str = "external";

/// Submits a task whose end the caller does not wait for. If nothing runs the task, it goes to the lane `external`.
pub(super) async fn submit_detached(app: &App, submission: Submission) -> ApiResult<Submitted> {
    submission.check(app).await?;
    let Submission { spec, payload, .. } = submission;
    let id = app.handle.new_id();
    let external = (!app.handlers.runs(spec.kind.as_str())).then(|| (spec.clone(), payload.clone()));
    let mut submitted = app.handle.submit_detached(id, spec, Some(payload)).await;
    if let (Err(Error::NoHandler { .. }), Some((mut spec, payload))) = (&submitted, external) {
        spec.lanes.splice(..0, LaneName::new(EXTERNAL));
        submitted = app.handle.submit_detached(id, spec, Some(payload)).await;
    }
    let submitted = submitted.map_err(|error| refused(id, error))?;
    if !submitted.joined {
        app.traces.accepted(submitted.task);
        app.traces.note_wait(submitted.task, &submitted.standing, &app.handle);
    }
    Ok(submitted)
}

/// Adds the id of a task that found no room, for the caller's logs.
fn refused(task: TaskId, error: Error) -> ApiError {
    let is_full = matches!(error, Error::Rejected(Rejection::LaneFull(_)));
    let error = ApiError::from(error);
    if is_full { error.of_task(task) } else { error }
}

/// Refuses new work while the server shuts down.
pub(crate) fn check_draining(app: &App) -> ApiResult<()> {
    if app.draining.is_given() {
        return Err(ApiError::new(Code::Draining, "the server is shutting down and takes no new work"));
    }
    Ok(())
}

/// Only the token that started the parent, the parent's own agent, a worker for a claimed parent, or an admin may name
/// a parent: its children borrow its slots and make it wait. A turn that answers messages has no owner.
pub(crate) async fn check_parent(app: &App, caller: &Caller, parent: TaskId) -> ApiResult<()> {
    if caller.may(Scope::Admin) {
        return Ok(());
    }
    // The core refuses a parent that is gone.
    let Some(run) = app.handle.task(parent).await? else { return Ok(()) };
    let is_its_agent = caller.agent().is_some_and(|agent| run.kind.as_str() == agent_kind(agent));
    // A token that may report the end of the parent may also ask for its children.
    let is_claimed = run.running.as_ref().is_some_and(|running| running.worker().is_some());
    if is_its_agent
        || (is_claimed && caller.may(Scope::Worker))
        || run.caller.is_none()
        || caller.owns(run.caller.as_ref().map(Name::as_str))
    {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "the parent is a task of another token; only its agent, its token, its worker or the scope admin may name it",
    ))
}

/// The key under which a repeated request joins the first one.
pub(super) fn idempotency(
    caller: &Caller,
    options: &RequestOptions,
    route: &str,
    body: &impl Serialize,
) -> Option<Idempotency> {
    if options.key.is_none() && !options.joins_same {
        return None;
    }
    let body = serde_json::to_vec(body).unwrap_or_default();
    let digest = Sha256::digest(&body);
    let mut fingerprint = [0; 8];
    fingerprint.copy_from_slice(&digest[..8]);
    let key = match &options.key {
        Some(key) => format!("{}\n{route}\n{key}", caller.key_space()),
        // Two agents, or two turns of one agent, are different callers even with the same token.
        None => {
            let agent = options.source_agent.as_deref().unwrap_or_default();
            let parent = options.parent.map(|parent| parent.to_string()).unwrap_or_default();
            let same = Sha256::new().chain_update(format!("{agent}\n{parent}\n")).chain_update(&body);
            format!("{}\nsame/{route}\n{:x}", caller.key_space(), same.finalize())
        }
    };
    let until_end = options.key.is_none();
    Some(Idempotency { key: key.into(), fingerprint: u64::from_le_bytes(fingerprint), until_end })
}
