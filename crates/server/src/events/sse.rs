//! Events over SSE, from acceptance on.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use laneway_core::{LaneName, TaskId, TaskStatus};
use laneway_engine::{Error, TaskHandle};
use laneway_protocol::EventName;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::app::App;
use crate::events::client_event::{Happening, end_data, end_name};
use crate::events::hub::{Filter, Watch};
use crate::events::pump::place_data;
use crate::http::error::ApiResult;
use crate::http::limits::InFlight;

/// How often a quiet stream shows that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often to look whether whoever listens still may.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// A stream of events to one client.
pub(crate) struct Telling {
    app: Arc<App>,
    watch: Watch,
    /// Told first.
    prelude: VecDeque<Arc<Happening>>,
    /// It ends with the last event of this task.
    pub(crate) until_end_of: Option<TaskId>,
    /// The caller's hold on the task: dropped with the stream.
    pub(crate) hold: Option<TaskHandle>,
    /// Told when there is nothing else to tell.
    epilogue: VecDeque<Arc<Happening>>,
    /// Taken from those above, and not told yet.
    untold: Option<Arc<Happening>>,
    is_over: bool,
}

/// One event in words.
pub(crate) struct Told {
    pub(crate) name: EventName,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
    pub(crate) task: Option<TaskId>,
    lanes: Arc<[LaneName]>,
}

impl Told {
    pub(crate) fn fits(&self, filter: &Filter) -> bool {
        filter.task.is_none_or(|task| self.task == Some(task))
            && filter.lane.as_ref().is_none_or(|lane| self.lanes.contains(lane))
    }
}

impl Telling {
    pub(crate) fn new(app: Arc<App>, watch: Watch) -> Telling {
        let prelude = VecDeque::new();
        let epilogue = VecDeque::new();
        Telling {
            app,
            watch,
            prelude,
            until_end_of: None,
            hold: None,
            epilogue,
            untold: None,
            is_over: false,
        }
    }

    pub(crate) fn of_task(mut self, task: TaskId, prelude: Vec<Happening>) -> Telling {
        self.until_end_of = Some(task);
        self.prelude = prelude.into_iter().map(Arc::new).collect();
        self
    }

    /// Says how the task ended, after what is kept, should that not hold the end.
    pub(crate) fn then_ends_with(mut self, story: Vec<Happening>) -> Telling {
        if !self.watch.holds_end() {
            self.epilogue = story.into_iter().map(Arc::new).collect();
        }
        self
    }

    pub(crate) fn hold(mut self, hold: Option<TaskHandle>) -> Telling {
        self.hold = hold;
        self
    }

    /// The next event; `None` when the stream is over. Whoever stops waiting for it is told it the next time.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        if self.is_over {
            return None;
        }
        let happening = match self.untold.take() {
            Some(happening) => happening,
            None => match self.next_happening().await {
                Some(happening) => happening,
                None => return self.last_word(),
            },
        };
        let mut data = happening.data();
        if happening.name == EventName::Completed
            && let Some(task) = happening.task
        {
            self.untold = Some(Arc::clone(&happening));
            data["result"] = self.app.result_of(task).await;
            self.untold = None;
        }
        self.is_over = happening.is_last() && self.until_end_of.is_some();
        let id = (happening.seq > 0).then(|| self.app.bus.id_of(happening.seq));
        Some(Told {
            name: happening.name,
            id,
            data,
            task: happening.task,
            lanes: Arc::clone(&happening.lanes),
        })
    }

    /// What is told of a task that has not ended when the server stops.
    fn last_word(&mut self) -> Option<Told> {
        self.is_over = true;
        let task = self.until_end_of?;
        let refusal = self.app.unfinished(task, Error::Closed);
        let data = serde_json::to_value(&*refusal.problem).unwrap_or_default();
        Some(Told { name: EventName::Error, id: None, data, task: Some(task), lanes: Arc::new([]) })
    }

    /// Says first that events are missing.
    pub(crate) fn after(mut self, gap: Option<Happening>) -> Telling {
        if let Some(gap) = gap {
            self.prelude.push_front(Arc::new(gap));
        }
        self
    }

    async fn next_happening(&mut self) -> Option<Arc<Happening>> {
        if let Some(happening) = self.prelude.pop_front() {
            return Some(happening);
        }
        if self.watch.is_at_now() && !self.epilogue.is_empty() {
            return self.epilogue.pop_front();
        }
        let closing = self.app.closing.token();
        tokio::select! {
            biased;
            next = self.watch.next() => next,
            () = closing.cancelled() => None,
        }
    }

    /// The next event of what was there before; `None` when all of that is told.
    pub(crate) async fn next_of_story(&mut self) -> Option<Told> {
        match self.prelude.is_empty() {
            true => None,
            false => self.next().await,
        }
    }

    /// The stream as an HTTP answer.
    pub(crate) fn into_response(self) -> Response {
        let stream = futures_util::stream::unfold(self, |mut telling| async move {
            let told = telling.next().await?;
            let event = Event::default().event(told.name.as_str()).data(told.data.to_string());
            let event = match told.id {
                Some(id) => event.id(id),
                None => event,
            };
            Some((Ok::<Event, Infallible>(event), telling))
        });
        Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
    }
}

impl App {
    /// What a task produced, if it is remembered.
    pub(crate) async fn result_of(&self, task: TaskId) -> Value {
        let found = self.handle.finished(task).await.ok().flatten();
        let result = found.and_then(|(_, result)| result);
        result.and_then(|result| serde_json::from_slice(&result).ok()).unwrap_or_default()
    }

    /// How a task stands, as the events that would have told of it. For whoever comes later.
    pub(crate) async fn story_of(&self, task: TaskId) -> ApiResult<Option<Vec<Happening>>> {
        // Live first: a task that ends between the two looks is found by the second.
        let look = move |lanes: &laneway_core::Scheduler| {
            lanes.task(task).map(|view| (view, laneway_engine::Standing::of(lanes, task)))
        };
        let Some((view, standing)) = self.handle.read(look).await? else {
            let Some((finished, _)) = self.handle.finished(task).await? else { return Ok(None) };
            let end = Happening::made(end_name(&finished.end), Some(task), end_data(&finished.end));
            let done = Happening::made(EventName::Done, Some(task), json!({}));
            return Ok(Some(vec![end.at(finished.ended), done.at(finished.ended)]));
        };
        let accepted =
            Happening::made(EventName::Accepted, Some(task), json!({ "kind": view.kind.as_str() }));
        let mut story = vec![accepted.at(view.submitted)];
        match (view.status, &view.running) {
            (TaskStatus::Running, Some(running)) => {
                let data = json!({ "attempt": view.attempts, "fence": running.fence.0 });
                story.push(Happening::made(EventName::Started, Some(task), data).at(running.started));
            }
            _ => story.push(Happening::made(EventName::Queued, Some(task), place_data(&standing))),
        }
        Ok(Some(story))
    }
}

/// A body that counts as under way until it has ended. A stream ends when its caller is not welcome any more.
pub(crate) fn guarded(app: &Arc<App>, body: Body, in_flight: InFlight) -> Body {
    let is_stream = body.size_hint().exact().is_none();
    if !is_stream && in_flight.token().is_none() {
        return body;
    }
    let looks = is_stream.then(|| (Arc::clone(app), looks()));
    Body::new(Guarded { body, in_flight, looks })
}

/// When to look whether a caller is still welcome.
pub(crate) fn looks() -> Interval {
    let mut looks = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

struct Guarded {
    body: Body,
    in_flight: InFlight,
    looks: Option<(Arc<App>, Interval)>,
}

impl Guarded {
    fn is_welcome(&mut self, context: &mut Context<'_>) -> bool {
        let Some((app, looks)) = &mut self.looks else { return true };
        // The tick after the last one wakes whoever reads.
        while looks.poll_tick(context).is_ready() {
            if !app.is_welcome(self.in_flight.token()) {
                return false;
            }
        }
        true
    }
}

impl HttpBody for Guarded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.is_welcome(context) {
            true => Pin::new(&mut self.body).poll_frame(context),
            false => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
