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
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service};

use crate::app::App;
use crate::http::auth::{admit, is_named_origin};
use crate::http::error::ErrorLabels;
use crate::service::request_options;

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
        let traceparent = traceparent(request.headers());
        let page = Page::of(&app, &request);
        if let Some(answer) = page.as_ref().and_then(|page| page.may_ask(&request)) {
            return Box::pin(async { Ok(answer) });
        }
        let answer = admit(&app, &mut request).map(|in_flight| (self.route.call(request), in_flight));
        Box::pin(async move {
            let mut response = match answer {
                Err(refusal) => refusal.into_response(),
                Ok((answer, in_flight)) => {
                    let response = answer.await?;
                    // A stream counts until it has ended.
                    match in_flight {
                        Some(in_flight) => {
                            response.map(|body| crate::events::sse::guarded(&app, body, in_flight))
                        }
                        None => response,
                    }
                }
            };
            if let Some(refused) = response.extensions_mut().remove::<ErrorLabels>() {
                app.count_rejection(refused).await;
            }
            finish(response.headers_mut(), traceparent);
            if let Some(page) = page {
                page.may_read(response.headers_mut());
            }
            if let Some(note) = note {
                note.write(&response);
            }
            Ok(response)
        })
    }
}

/// The trace of a request, as the answer repeats it.
fn traceparent(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_shaped = request_options::traceparent(headers).is_some();
    headers.get(TRACEPARENT).filter(|_| is_shaped).cloned()
}

fn finish(headers: &mut HeaderMap, traceparent: Option<HeaderValue>) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
    }
}

/// A page of another origin that asks, which the configuration names. Its browser asks first whether it may, and shows it an
/// answer only if that says so.
struct Page {
    origin: HeaderValue,
}

impl Page {
    fn of(app: &App, request: &Request) -> Option<Page> {
        let origin = request.headers().get(header::ORIGIN)?;
        let is_named = origin.to_str().is_ok_and(|origin| is_named_origin(app, origin));
        is_named.then(|| Page { origin: origin.clone() })
    }

    /// The answer to a browser that asks whether the page may ask. It shows no token yet, and nothing is done.
    fn may_ask(&self, request: &Request) -> Option<Response> {
        let method = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
        if request.method() != Method::OPTIONS {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        if let Some(asked) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        finish(headers, None);
        self.may_read(headers);
        Some(response)
    }

    fn may_read(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// What the log says of a request: its route, and never the names in it, nor its query.
struct Note {
    method: Method,
    route: Option<MatchedPath>,
    started: Instant,
}

impl Note {
    /// `None` unless the log takes debug lines.
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
