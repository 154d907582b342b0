//! Follows events of a task, a lane, a session, or everything.

use std::collections::VecDeque;
use std::time::Duration;

use laneway_protocol::{Backoff, EventFrame, EventName, SseEvent, SseReader};
use reqwest::{Method, Response};
use serde_json::Value;

use crate::api_call::ApiCall;
use crate::client::Client;
use crate::error::Error;
use crate::retry::jittered;

/// A quiet stream shows every 15 s that it is alive; one that is silent for this long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The longest event that a client reads.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// What to follow.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    task: Option<String>,
    lane: Option<String>,
    session: Option<String>,
    worker: Option<String>,
    after: Option<String>,
    is_lasting: bool,
}

impl Watch {
    /// Everything.
    pub fn everything() -> Watch {
        Watch::default()
    }

    /// One task, from acceptance to its last event, with which the stream ends.
    pub fn task(id: impl Into<String>) -> Watch {
        Watch { task: Some(id.into()), ..Watch::default() }
    }

    /// One lane, and the tasks that name it.
    pub fn lane(lane: impl Into<String>) -> Watch {
        Watch { lane: Some(lane.into()), ..Watch::default() }
    }

    /// One session.
    pub fn session(key: impl Into<String>) -> Watch {
        Watch { session: Some(key.into()), ..Watch::default() }
    }

    /// What a worker should hear: `heartbeat_wanted` for attempts that must stop or have a message.
    pub fn worker(name: impl Into<String>) -> Watch {
        Watch { worker: Some(name.into()), ..Watch::default() }
    }

    /// Continues after the event with this id.
    #[must_use]
    pub fn after(mut self, id: Option<String>) -> Watch {
        self.after = id;
        self
    }

    /// Connects again after the last event that was seen, whenever the connection breaks or the server restarts. The
    /// server reports events that were missed meanwhile as a `gap`.
    #[must_use]
    pub fn lasting(mut self) -> Watch {
        self.is_lasting = true;
        self
    }

    fn call(&self, client: &Client) -> ApiCall {
        let call = match (&self.task, &self.session, &self.worker) {
            (Some(task), ..) => client.call(Method::GET, ["api", "tasks", task, "events"]),
            (None, Some(key), _) => client.call(Method::GET, ["api", "sessions", key, "events"]),
            (None, None, Some(worker)) => client.call(Method::GET, ["api", "workers", worker, "events"]),
            (None, None, None) => {
                client.call(Method::GET, ["api", "events"]).query("lane", self.lane.as_deref())
            }
        };
        call.header("last-event-id", self.after.as_deref())
    }
}

impl Client {
    /// Follows events. Returns when the stream has begun.
    pub async fn events(&self, watch: Watch) -> Result<Events, Error> {
        let response = open(watch.call(self)).await?;
        Ok(Events::new(self.clone(), Some(watch), response))
    }
}

/// Opens a stream, which has no time limit.
pub(crate) async fn open(call: ApiCall) -> Result<Response, Error> {
    call.header("accept", Some("text/event-stream")).within(None).open().await
}

/// A stream of events.
pub struct Events {
    client: Client,
    /// `None`: it cannot be opened a second time.
    watch: Option<Watch>,
    response: Option<Response>,
    reader: SseReader,
    /// Bounded by what one piece of the stream holds.
    ready: VecDeque<EventFrame>,
    is_over: bool,
}

impl Events {
    pub(crate) fn new(client: Client, watch: Option<Watch>, response: Response) -> Events {
        let (reader, ready) = (SseReader::new(EVENT_BYTES_MAX), VecDeque::new());
        Events { client, watch, response: Some(response), reader, ready, is_over: false }
    }

    /// The task that the stream is about, if the server named one.
    pub fn task_id(&self) -> Option<&str> {
        self.response.as_ref()?.headers().get("x-laneway-task-id")?.to_str().ok()
    }

    /// The id of the last event that was returned, to continue after it.
    pub fn last_id(&self) -> Option<&str> {
        self.watch.as_ref()?.after.as_deref()
    }

    /// The next event; `None` when the stream is over: after the `done` of a task, or when the server has ended it.
    ///
    /// An error of a stream that lasts is one that no waiting would cure. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<EventFrame>, Error> {
        let (mut is_first, mut backoff) = (true, BACKOFF);
        loop {
            if let Some(frame) = self.ready.pop_front() {
                self.note(&frame);
                return Ok(Some(frame));
            }
            if self.is_over {
                return Ok(None);
            }
            let broken = match &mut self.response {
                Some(response) => match more(self.client.url(), response).await {
                    Ok(Some(piece)) => {
                        self.take(&piece)?;
                        (is_first, backoff) = (true, BACKOFF);
                        continue;
                    }
                    Ok(None) => None,
                    Err(error) => Some(error),
                },
                None => None,
            };
            let lasting = self.watch.as_ref().filter(|watch| watch.is_lasting);
            let Some(watch) = lasting else {
                self.is_over = true;
                return broken.map_or(Ok(None), Err);
            };
            self.response = None;
            if !std::mem::take(&mut is_first) {
                tokio::time::sleep(jittered(backoff.next_wait())).await;
            }
            match open(watch.call(&self.client)).await {
                Ok(response) => {
                    self.reader = SseReader::new(EVENT_BYTES_MAX);
                    self.response = Some(response);
                }
                Err(error) if error.is_away() => {}
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), Error> {
        let mut whole = Vec::new();
        let taken = self.reader.push(piece, &mut whole);
        self.ready.extend(whole.into_iter().filter_map(frame));
        taken.map_err(|_| {
            self.is_over = true;
            Error::NotUnderstood { status: 200, why: "an event is longer than any may be".to_owned() }
        })
    }

    fn note(&mut self, frame: &EventFrame) {
        let Some(watch) = &mut self.watch else { return };
        if frame.id.is_some() {
            watch.after.clone_from(&frame.id);
        }
        self.is_over |= watch.task.is_some() && frame.event == EventName::Done.as_str();
    }
}

fn frame(event: SseEvent) -> Option<EventFrame> {
    let SseEvent { name, data, id } = event;
    let data = data?;
    let event = if name.is_empty() { "message".to_owned() } else { name };
    let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
    Some(EventFrame { event, data, id })
}

async fn more(url: &str, response: &mut Response) -> Result<Option<Vec<u8>>, Error> {
    let silent = || Error::BrokenOff {
        url: url.to_owned(),
        why: format!("the stream was silent for {} s", SILENCE_MAX.as_secs()),
    };
    let piece = tokio::time::timeout(SILENCE_MAX, response.chunk()).await.map_err(|_| silent())?;
    let piece = piece.map_err(|error| Error::of_transport(url, error))?;
    Ok(piece.map(|piece| piece.to_vec()))
}
