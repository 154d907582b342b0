//! Slots for work of a caller's own, on another machine: a lease that the caller renews.
//!
//! To the queue a slot is a task whose run does nothing but wait: for its completion, for a sign of life that does not
//! come, or to be told to stop. Signs of life are looked for here, where the run is; a server that hears one of a slot which
//! another gave notes it for that one. After a restart the run is gone and its fence with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_core::{
    End, Event, Fence, Millis, Name, NoteChange, Retry, Scheduler, TaskId, TaskSpec, Timestamp,
};
use laneway_engine::{Clock, Context, Failure, OnDrop, Options, RunError, SteadyClock, TaskHandle};
use laneway_protocol::{At, Code, CompleteBody, SlotAnswer, SlotRequest};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use utoipa::IntoParams;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::service::envelope::Envelope;
use crate::service::parse::{level, session_lane, task_lane};
use crate::service::request_options::RequestOptions;
use crate::service::submission::{Submission, submit_connected};

/// The kind of tasks that hold a slot for somebody elsewhere.
pub(crate) const KIND: &str = "laneway.remote-slot";

/// What the keys of signs of life begin with that were heard at another server than the one that gave the slot.
const ALIVE: &str = "slot alive\n";

/// The slots that are held from elsewhere.
pub(crate) struct Slots {
    clock: SteadyClock,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    held: HashMap<TaskId, Held>,
    /// Who waits for one: as many as there are requests for slots under way.
    waiting: HashMap<TaskId, oneshot::Sender<Granted>>,
}

/// With which fence, and until when.
type Granted = (Fence, Timestamp);

struct Held {
    fence: Fence,
    lease: Millis,
    until: Timestamp,
    signs: mpsc::Sender<Sign>,
    /// Tells of its end whoever ends it; there once its holder has been told that it is his.
    end: Option<TaskHandle>,
}

/// What the holder of a slot says.
enum Sign {
    /// It is alive, until then.
    Alive(Timestamp),
    Done(Result<Value, Failure>),
}

impl Slots {
    pub(crate) fn new(clock: SteadyClock) -> Arc<Slots> {
        Arc::new(Slots { clock, book: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says who runs such tasks.
    pub(crate) fn into_options(
        self: &Arc<Slots>,
        options: Options,
    ) -> Result<Options, laneway_engine::Error> {
        let slots = Arc::clone(self);
        options.holder(KIND, move |context: Context, payload: Value| {
            let slots = Arc::clone(&slots);
            async move { slots.hold(context, payload).await }
        })
    }

    async fn hold(&self, context: Context, payload: Value) -> Result<Value, Failure> {
        let lease = lease_of(&Envelope::of(payload));
        let (signs, mut heard) = mpsc::channel(16);
        let mut until = self.clock.now() + lease;
        let (task, fence) = (context.task(), context.fence());
        let held = Held { fence, lease, until, signs, end: None };
        let waiting = {
            let mut book = self.lock();
            book.held.insert(task, held);
            book.waiting.remove(&task)
        };
        let _gone = Gone { slots: self, task };
        if let Some(waiting) = waiting {
            // One who has gone meanwhile has left the task, which is told to stop.
            waiting.send((fence, until)).ok();
        }
        loop {
            let left = Duration::from_millis(until.since(self.clock.now()).0);
            tokio::select! {
                sign = heard.recv() => match sign {
                    Some(Sign::Alive(later)) => until = later,
                    Some(Sign::Done(outcome)) => return outcome,
                    None => return Err(Failure::fatal("its holder is gone")),
                },
                _ = tokio::time::sleep(left) => {
                    return Err(Failure::fatal("its holder gave no sign of life"));
                }
                _ = context.stop().wait() => return Err(Failure::fatal("it was told to stop")),
            }
        }
    }

    /// Leaves the end of a slot to whoever will end it.
    fn give(&self, task: TaskHandle) {
        if let Some(held) = self.lock().held.get_mut(&task.id()) {
            held.end = Some(task);
        }
    }

    /// Hears of the signs of life that another server has noted.
    pub(crate) fn heed(&self, event: &Event) {
        let Event::Noted { changes } = event else { return };
        for (key, text) in changes {
            let task = key.strip_prefix(ALIVE).and_then(|id| task_id(id).ok());
            let fence = text.as_ref().and_then(|text| text.split_once(' ')?.0.parse().ok());
            if let (Some(task), Some(fence)) = (task, fence) {
                // One that is over needs no sign of life.
                let _over = self.renew(task, Fence(fence));
            }
        }
    }

    /// Renews a slot that was given here; `None`: it was not.
    fn renew(&self, task: TaskId, fence: Fence) -> Option<ApiResult<Timestamp>> {
        let mut book = self.lock();
        let held = book.held.get_mut(&task)?;
        if held.fence != fence {
            return Some(Err(stale(task)));
        }
        held.until = self.clock.now() + held.lease;
        Some(match held.signs.try_send(Sign::Alive(held.until)) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(held.until),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(stale(task)),
        })
    }

    /// Ends a slot and says who can tell of its end; `None`: it is no slot that is held from elsewhere.
    pub(crate) async fn end(
        &self,
        task: TaskId,
        body: &CompleteBody,
    ) -> Option<ApiResult<Option<TaskHandle>>> {
        let (signs, end) = {
            let mut book = self.lock();
            let held = book.held.get_mut(&task)?;
            if held.fence != Fence(body.fence) {
                return Some(Err(stale(task)));
            }
            (held.signs.clone(), held.end.take())
        };
        let outcome = match body.success {
            true => Ok(body.result.clone().unwrap_or_default()),
            false => {
                let error = body.error.clone().unwrap_or_else(|| "its holder says it failed".to_owned());
                Err(Failure { error, retryable: false })
            }
        };
        Some(signs.send(Sign::Done(outcome)).await.map(|()| end).map_err(|_| stale(task)))
    }

    /// Waits until the slot is held.
    async fn granted(&self, task: TaskId) -> Granted {
        let granted = {
            let mut book = self.lock();
            if let Some(held) = book.held.get(&task) {
                return (held.fence, held.until);
            }
            let (tell, granted) = oneshot::channel();
            book.waiting.insert(task, tell);
            granted
        };
        let _left = Left { slots: self, task };
        match granted.await {
            Ok(granted) => granted,
            // Nobody else takes the sender away.
            Err(_) => std::future::pending().await,
        }
    }
}

/// A slot that is not held any more.
struct Gone<'a> {
    slots: &'a Slots,
    task: TaskId,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let held = self.slots.lock().held.remove(&self.task);
        drop(held);
    }
}

/// Somebody who does not wait for a slot any more.
struct Left<'a> {
    slots: &'a Slots,
    task: TaskId,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.slots.lock().waiting.remove(&self.task);
    }
}

fn stale(task: TaskId) -> ApiError {
    ApiError::new(Code::StaleLease, "the slot has lapsed or was given back").of_task(task)
}

/// Renews a slot, whichever server gave it; `None`: it is no slot that is held from elsewhere.
pub(crate) async fn renew(app: &App, task: TaskId, fence: Fence) -> ApiResult<Option<Timestamp>> {
    if let Some(renewed) = app.slots.renew(task, fence) {
        return renewed.map(Some);
    }
    if app.handle.here().is_none() {
        return Ok(None);
    }
    let look = move |lanes: &Scheduler| {
        let is_over = |key: &str| task_id(key).map_or(true, |task| lanes.task(task).is_none());
        let over = lanes.notes(ALIVE).filter(|(key, _)| key.strip_prefix(ALIVE).is_some_and(is_over));
        let view = lanes.task(task).filter(|view| view.kind.as_str() == KIND)?;
        Some((view, over.map(|(key, _)| (Arc::clone(key), None)).collect::<Vec<_>>()))
    };
    let Some((view, mut changes)) = app.handle.read(look).await? else { return Ok(None) };
    let until = app.now() + lease_of(&crate::service::task_view::envelope_of(&app.handle, &view).await?);
    // Always another text, so that it is heard.
    changes.push((format!("{ALIVE}{task}").into(), Some(format!("{} {}", fence.0, until.0).into())));
    let noted = app.handle.note(NoteChange { expected: vec![], changes });
    // Of a server that is gone the queue's own lease is all that is left.
    let (renewed, noted) = tokio::join!(app.handle.heartbeat(task, fence), noted);
    noted?;
    Ok(Some(renewed?.0.min(until)))
}

fn lease_of(envelope: &Envelope) -> Millis {
    Millis(envelope.payload.get("lease_ms").and_then(Value::as_u64).unwrap_or(30_000))
}

/// Ends a slot and waits until that is decided; `None`: it is no slot that is held from elsewhere.
pub(crate) async fn end(app: &App, task: TaskId, body: &CompleteBody) -> Option<ApiResult<()>> {
    Some(match app.slots.end(task, body).await? {
        // Where its end is not told, it is looked up.
        Ok(end) => {
            match end {
                Some(mut end) => end.ended().await.ok(),
                None => app.word_of_end(task).await,
            };
            Ok(())
        }
        Err(refusal) => Err(refusal),
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SlotQuery {
    /// The fence with which the slot was given.
    fence: u64,
}

/// Gives a slot back. Saying so again changes nothing and is no error.
#[utoipa::path(
    delete, path = "/api/slots/{id}", tag = "tasks", params(("id" = String, Path), SlotQuery),
    responses((status = 204, description = "it is free"))
)]
pub(crate) async fn give_back(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<SlotQuery>,
) -> ApiResult<StatusCode> {
    let task = task_id(&id).map_err(|_| ApiError::not_found("slot"))?;
    let body = CompleteBody::success(query.fence);
    if let Some(ended) = end(&app, task, &body).await {
        return ended.map(|()| StatusCode::NO_CONTENT);
    }
    // Another server of the same queue may have given it.
    let kind = app.handle.read(move |lanes| lanes.task(task).map(|view| view.kind)).await?;
    if kind.is_some_and(|kind| kind.as_str() == KIND) {
        app.handle.complete(task, Fence(query.fence), Some("null".into())).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    match app.handle.finished(task).await? {
        Some((finished, _)) if finished.kind.as_str() != KIND => Err(ApiError::not_found("slot")),
        // Only its holder completes it.
        Some((finished, _)) if finished.end == End::Completed => Ok(StatusCode::NO_CONTENT),
        Some(_) => Err(stale(task)),
        None => Err(ApiError::not_found("slot")),
    }
}

/// Takes a slot of each of some lanes, to guard code of the caller's own. Renewed by heartbeat, ended by complete, or by
/// giving it back.
#[utoipa::path(
    post, path = "/api/slots", tag = "tasks", request_body = SlotRequest,
    responses((status = 200, body = SlotAnswer))
)]
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(request): Body<SlotRequest>,
) -> ApiResult<Json<SlotAnswer>> {
    if request.lanes.is_empty() {
        return Err(ApiError::invalid("lanes must name at least one lane"));
    }
    let mut lanes = Vec::with_capacity(request.lanes.len() + 1);
    for lane in &request.lanes {
        lanes.push(task_lane(lane)?);
    }
    if let Some(session) = &request.session {
        lanes.push(session_lane(session)?);
    }
    let home = app.handle.settings(lanes[0].clone()).await?;
    if home.handler == laneway_core::Handler::External {
        return Err(laneway_engine::Error::ExternalLane { lane: lanes[0].clone() }.into());
    }
    let lease = request.lease_ms.map_or(home.lease, Millis);
    if lease == Millis(0) || lease > Millis::MAX {
        return Err(ApiError::invalid("lease_ms must be from 1 to ten years"));
    }
    let kind = Name::new(KIND).map_err(laneway_engine::Error::from)?;
    let mut spec = TaskSpec::new(kind, lanes);
    spec.priority = level(request.priority.as_ref())?;
    spec.wait_timeout = request.wait_ms.map(Millis);
    spec.retry = Some(Retry::NONE);
    let payload = serde_json::json!({ "lease_ms": lease.0 });
    let asked = Submission::new(&app, &caller, &RequestOptions::default(), spec, payload);
    let mut task = submit_connected(&app, asked).await?;
    let id = task.id();
    let ended = tokio::select! {
        biased;
        held = app.slots.granted(id) => Ok(held),
        ending = task.ended() => Err(ending?),
    };
    match ended {
        Ok((fence, until)) => {
            // From here on the lease decides.
            app.slots.give(task.on_drop(OnDrop::Detach));
            Ok(Json(SlotAnswer { id: id.to_string(), fence: fence.0, lease_until: At(until) }))
        }
        Err(ending) => match ending.into_result() {
            Err(RunError::Ended(end)) => Err(ApiError::ended(id, &end)),
            Err(RunError::Refused(error)) => Err(error.into()),
            _ => Err(ApiError::new(Code::Internal, "the slot was given back before it was taken")),
        },
    }
}
