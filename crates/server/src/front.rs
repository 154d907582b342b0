//! What stands before every route, in one piece: who asks and may they, what every answer gets, and what is counted of it.
//!
//! It asks nothing of the queue and waits for nothing before the route has answered, so it has no future of its own until
//! then: a request that is let through costs one box here.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service};

use crate::app::App;
use crate::auth::admit;
use crate::problem::Refused;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Stands before every route.
#[derive(Clone)]
pub(crate) struct Front(pub(crate) Arc<App>);

/// A route with what stands before it.
#[derive(Clone)]
pub(crate) struct Fronted<S> {
    app: Arc<App>,
    route: S,
}

impl<S> Layer<S> for Front {
    type Service = Fronted<S>;

    fn layer(&self, route: S) -> Fronted<S> {
        Fronted { app: Arc::clone(&self.0), route }
    }
}

impl<S> Service<Request> for Fronted<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.route.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let app = Arc::clone(&self.app);
        let note = Note::of(&request);
        let traceparent = request.headers().get(TRACEPARENT).cloned();
        let answer = admit(&app, &mut request).map(|underway| (self.route.call(request), underway));
        Box::pin(async move {
            let mut response = match answer {
                Err(refusal) => refusal.into_response(),
                Ok((answer, underway)) => {
                    let response = answer.await?;
                    // A stream counts until it has ended.
                    match underway {
                        Some(underway) => response.map(|body| crate::streams::guarded(&app, body, underway)),
                        None => response,
                    }
                }
            };
            if let Some(refused) = response.extensions_mut().remove::<Refused>() {
                app.count_refusal(refused.lane, refused.code).await;
            }
            finish(response.headers_mut(), traceparent);
            if let Some(note) = note {
                note.write(&response);
            }
            Ok(response)
        })
    }
}

fn finish(headers: &mut HeaderMap, traceparent: Option<HeaderValue>) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
    }
}

/// What the log says of a request: its route, and never the names in it, nor its query.
struct Note {
    method: Method,
    route: Option<MatchedPath>,
    started: Instant,
}

impl Note {
    /// Nothing is noted where nobody reads it.
    fn of(request: &Request) -> Option<Note> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| Note {
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            started: Instant::now(),
        })
    }

    fn write(self, response: &Response) {
        let path = self.route.as_ref().map_or("unknown", MatchedPath::as_str);
        let (status, millis) = (response.status().as_u16(), self.started.elapsed().as_millis() as u64);
        tracing::debug!(method = %self.method, path, status, millis, "answered");
    }
}
