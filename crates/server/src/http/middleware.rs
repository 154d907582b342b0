//! The layer in front of every route: access, headers that every answer gets, CORS, counts of refusals.
//!
//! One box holds all of it per request, so that a request costs one allocation here.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_core::Timestamp;
use tower::{Layer, Service};

use crate::app::App;
use crate::events::sse;
use crate::http::auth::{admit, is_named_origin};
use crate::http::error::ErrorLabels;
use crate::http::router::AccessTable;
use crate::service::request_options;
use crate::telemetry::metrics::Metrics;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Has nginx pass on a stream as it comes.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Checks every request before its route.
#[derive(Clone)]
pub(super) struct Guard(Arc<GuardState>);

struct GuardState {
    app: Arc<App>,
    access: AccessTable,
}

/// A route behind the guard.
#[derive(Clone)]
pub(super) struct Guarded<S> {
    shared: Arc<GuardState>,
    route: S,
}

impl Guard {
    pub(super) fn new(app: Arc<App>, access: AccessTable) -> Guard {
        Guard(Arc::new(GuardState { app, access }))
    }
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, route: S) -> Guarded<S> {
        Guarded { shared: Arc::clone(&self.0), route }
    }
}

impl<S> Service<Request> for Guarded<S>
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
        let GuardState { app, access } = &*self.shared;
        let log = RequestLog::of(&request);
        let traceparent = traceparent(request.headers());
        let origin = AllowedOrigin::of(app, &request);
        if let Some(answer) = origin.as_ref().and_then(|origin| origin.preflight(&request)) {
            return Box::pin(async { Ok(answer) });
        }
        let admitted = admit(app, access, &mut request);
        let answer = admitted.map(|in_flight| (self.route.call(request), in_flight));
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let app = &shared.app;
            let mut response = match answer {
                Err(refusal) => refusal.into_response(),
                Ok((answer, None)) => answer.await?,
                // A stream counts as in flight until it has ended.
                Ok((answer, Some(in_flight))) => {
                    answer.await?.map(|body| sse::revocable(app, body, in_flight))
                }
            };
            let refused = response.extensions_mut().remove::<ErrorLabels>();
            finish(response.headers_mut(), traceparent);
            if let Some(refused) = refused {
                log.trace(app, &refused, &response);
                app.count_rejection(refused);
            }
            if let Some(origin) = origin {
                origin.expose(response.headers_mut());
            }
            log.write(&app.metrics, &response);
            Ok(response)
        })
    }
}

/// The trace header of a request, which the answer repeats.
fn traceparent(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_shaped = request_options::traceparent(headers).is_some();
    headers.get(TRACEPARENT).filter(|_| is_shaped).cloned()
}

fn finish(headers: &mut HeaderMap, traceparent: Option<HeaderValue>) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    {
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    }
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
    }
}

/// The origin of a page that the configuration allows to send requests from a browser.
struct AllowedOrigin(HeaderValue);

impl AllowedOrigin {
    fn of(app: &App, request: &Request) -> Option<AllowedOrigin> {
        let origin = request.headers().get(header::ORIGIN)?;
        let is_named = origin.to_str().is_ok_and(|origin| is_named_origin(app, origin));
        is_named.then(|| AllowedOrigin(origin.clone()))
    }

    /// The answer to a preflight request, which carries no token.
    fn preflight(&self, request: &Request) -> Option<Response> {
        let method = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
        if request.method() != Method::OPTIONS {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        if let Some(requested) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
        }
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        finish(headers, None);
        self.expose(headers);
        Some(response)
    }

    fn expose(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// The trace header of an answer.
fn traceparent_of(response: &Response) -> Option<&str> {
    response.headers().get(TRACEPARENT)?.to_str().ok()
}

/// The log line and the metrics of a request: its route, never the names in its path or its query.
struct RequestLog {
    method: Method,
    route: Option<MatchedPath>,
    started: Instant,
}

impl RequestLog {
    fn of(request: &Request) -> RequestLog {
        RequestLog {
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            started: Instant::now(),
        }
    }

    fn trace(&self, app: &App, refused: &ErrorLabels, response: &Response) {
        let path = self.route.as_ref().map_or("unknown", MatchedPath::as_str);
        let ended = app.now();
        let started = Timestamp(ended.0.saturating_sub(self.started.elapsed().as_millis() as u64));
        let traceparent = traceparent_of(response);
        let (request, error) = ((self.method.as_str(), path), (refused, response.status().as_u16()));
        app.traces.refused(error, request, traceparent, (started, ended));
    }

    fn write(self, metrics: &Metrics, response: &Response) {
        let path = self.route.as_ref().map(MatchedPath::as_str);
        let (status, took) = (response.status().as_u16(), self.started.elapsed());
        metrics.answered((&self.method, path), status, took, traceparent_of(response));
        let path = path.unwrap_or("unknown");
        tracing::debug!(method = %self.method, path, status, millis = took.as_millis() as u64, "answered");
    }
}
