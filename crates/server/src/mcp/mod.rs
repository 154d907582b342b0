//! MCP over Streamable HTTP at `/mcp`: tools in front of the same queue as every other transport.
//!
//! The current revision of the protocol has no sessions: each request is complete, and a client that closes the answer
//! cancels the call. Clients of older revisions begin with a handshake and get a session. Its id is all that there is of
//! it, so any replica serves it.
//!
//! | question | file |
//! |---|---|
//! | the list of tools, and who may use them | `tools.rs`, `schema.rs` |
//! | calls and answers | `handler.rs`, `reply.rs` |
//! | sessions of older clients, and their cancelled calls | `sessions.rs` |
//! | errors of the transport | `refusal.rs` |
//! | `chat_with_agent`: waiting, progress, the end | `chat.rs` |
//! | calls that became tasks of the protocol | `tasks.rs` |

pub(crate) mod chat;
pub(crate) mod handler;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod tools;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use futures_util::StreamExt;
use laneway_protocol::Code;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{self, header_text};
use crate::mcp::handler::Tools;
use crate::mcp::refusal::{Head, INVALID_REQUEST};
use crate::mcp::sessions::OpenCall;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Clients of the current revision send it with each request.
const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Answers `/mcp`.
#[derive(Clone)]
struct Mcp {
    service: StreamableHttpService<Tools, NeverSessionManager>,
}

/// The route `/mcp`.
pub(crate) fn route(app: &Arc<App>) -> MethodRouter<Arc<App>> {
    // The guard of all routes checks Host and Origin, and `extract::read` the length of the body.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(usize::MAX)
        .with_cancellation_token(app.closing.token());
    let tools = Tools::new(Arc::clone(app));
    let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
    let mcp = Mcp { service };
    let serve = move |State(app): State<Arc<App>>, caller: Caller, request: Request| {
        let mcp = mcp.clone();
        async move { mcp.serve(&app, &caller, request).await }
    };
    get(serve.clone()).post(serve.clone()).delete(serve)
}

impl Mcp {
    async fn serve(&self, app: &Arc<App>, caller: &Caller, request: Request) -> ApiResult<Response> {
        let (mut parts, body) = request.into_parts();
        let (is_post, ends) = (parts.method == Method::POST, parts.method == Method::DELETE);
        let session = header_text(&parts.headers, &SESSION_ID)?.map(str::to_owned);
        parts.headers.remove(&SESSION_ID);
        let bytes = if is_post {
            extract::read(Request::from_parts(parts.clone(), body), app).await?
        } else {
            Bytes::new()
        };
        let is_read = session.is_some() || !parts.headers.contains_key(&METHOD) || app.draining.is_given();
        let head = if is_post && is_read { Head::read(&bytes).unwrap_or_default() } else { Head::default() };
        if let Some(id) = &session
            && !app.mcp.is_open(app, caller, id)
        {
            let why =
                "Session not found: it has ended, or is not this token's; begin another with initialize";
            return Ok(refusal::error(StatusCode::NOT_FOUND, head.id, INVALID_REQUEST, why));
        }
        if ends {
            let Some(id) = session else {
                return Err(ApiError::invalid("DELETE ends a session: name it in the header Mcp-Session-Id"));
            };
            app.mcp.end(app, &id).await?;
            // Some clients treat any other status as a failure.
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        check_draining(app, &head)?;
        let method = head.method.as_deref();
        if let (Some(id), Some("notifications/cancelled")) = (&session, method) {
            app.mcp.cancel(app, id, &head.params.request_id).await?;
        }
        let call = session.filter(|_| !head.id.is_null()).map(|id| app.mcp.begin(&id, &head.id));
        let request = Request::from_parts(parts, Body::from(bytes.clone()));
        let mut response = self.answer(request, call).await;
        if method == Some("initialize") && response.status() == StatusCode::OK {
            // Digits make a header.
            if let Ok(id) = HeaderValue::try_from(app.mcp.create(app, caller)) {
                response.headers_mut().insert(SESSION_ID, id);
            }
        }
        if response.status().is_client_error() {
            return Ok(refusal::in_json_rpc(response, is_post.then_some(&*bytes)).await);
        }
        Ok(response)
    }

    /// The answer to a request. The answer to a call of a session ends when the client cancels the call.
    async fn answer(&self, request: Request, call: Option<OpenCall>) -> Response {
        let Some(call) = call else { return self.service.handle(request).await.map(Body::new) };
        let response = tokio::select! {
            response = self.service.handle(request) => response,
            () = call.cancelled() => return StatusCode::ACCEPTED.into_response(),
        };
        response.map(|body| {
            let over = call.token();
            let pieces = Body::new(body).into_data_stream().take_until(over.cancelled_owned());
            Body::from_stream(pieces.map(move |piece| {
                // The call is open while its answer is.
                let _open = &call;
                piece
            }))
        })
    }
}

/// A balancer sends a call that a replica refuses because it shuts down to another replica.
fn check_draining(app: &App, head: &Head) -> ApiResult<()> {
    let asks = head.params.name.as_str() == Some(tools::CHAT_WITH_AGENT);
    if app.is_shared && app.draining.is_given() && asks {
        return Err(ApiError::new(Code::Draining, "the server is shutting down and takes no new work"));
    }
    Ok(())
}
