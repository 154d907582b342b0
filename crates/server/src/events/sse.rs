//! Events over SSE, and response bodies that end when their caller loses access.

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
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::app::App;
use crate::events::stream::EventStream;
use crate::http::limits::InFlight;

/// The pause between two comments on a quiet stream.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often the server checks that the caller of an open stream still has access.
const CHECK_EVERY: Duration = Duration::from_secs(3);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let stream = futures_util::stream::unfold(self, |mut stream| async move {
            let sent = stream.next().await?;
            let (name, data) = sent.event.on_wire();
            let event = Event::default().event(name).data(data.to_string());
            let event = match sent.id {
                Some(id) => event.id(id),
                None => event,
            };
            Some((Ok::<Event, Infallible>(event), stream))
        });
        Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
    }
}

/// A body that counts as in flight until it has ended. A stream also ends when its caller loses access.
pub(crate) fn revocable(app: &Arc<App>, body: Body, in_flight: InFlight) -> Body {
    let is_stream = body.size_hint().exact().is_none();
    if !is_stream && in_flight.token().is_none() {
        return body;
    }
    let checks = is_stream.then(|| (Arc::clone(app), access_checks()));
    Body::new(RevocableBody { body, in_flight, checks })
}

/// When to check that a caller still has access.
pub(super) fn access_checks() -> Interval {
    let mut checks = tokio::time::interval_at(Instant::now() + CHECK_EVERY, CHECK_EVERY);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    checks
}

struct RevocableBody {
    body: Body,
    in_flight: InFlight,
    checks: Option<(Arc<App>, Interval)>,
}

impl RevocableBody {
    fn has_access(&mut self, context: &mut Context<'_>) -> bool {
        let Some((app, checks)) = &mut self.checks else { return true };
        // Polled until it is pending, so that the next tick wakes the reader.
        while checks.poll_tick(context).is_ready() {
            if !app.has_access(self.in_flight.token()) {
                return false;
            }
        }
        true
    }
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.has_access(context) {
            Pin::new(&mut self.body).poll_frame(context)
        } else {
            Poll::Ready(None)
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
