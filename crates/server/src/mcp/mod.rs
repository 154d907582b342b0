//! MCP over Streamable HTTP at `/mcp`: tools in front of the same queue as every other transport.
//!
//! The current revision of the protocol has no sessions: each request is complete, and a client that closes the answer
//! cancels the call. Clients of older revisions begin with a handshake and get a session, which lives in this process and
//! belongs to their token.
//!
//! | question | file |
//! |---|---|
//! | the list of tools, and who may use them | `tools.rs`, `schema.rs` |
//! | calls and answers | `handler.rs`, `reply.rs` |
//! | errors of the transport | `refusal.rs` |
//! | `chat_with_agent`: waiting, progress, the end | `chat.rs` |
//! | calls that became tasks of the protocol | `tasks.rs` |

pub(crate) mod chat;
pub(crate) mod handler;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod schema;
pub(crate) mod tasks;
pub(crate) mod tools;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use laneway_protocol::Code;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{self, header_text};
use crate::mcp::handler::Tools;

/// The most sessions of older clients at once.
const SESSIONS_MAX: usize = 1024;
/// An unused session ends after this time.
const SESSION_IDLE: Duration = Duration::from_secs(3600);
/// The pause before the next try if there are too many sessions.
const SESSION_RETRY_MS: u64 = 5000;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Answers `/mcp`.
#[derive(Clone)]
struct Mcp {
    service: StreamableHttpService<Tools, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    open: Arc<Mutex<HashMap<String, Session>>>,
}

/// A session of an older client.
struct Session {
    /// The token of the session. Other tokens cannot use it.
    owner: String,
    over: SessionOver,
}

/// Cancelled when the client ends the session.
#[derive(Clone, Default)]
struct SessionOver(CancellationToken);

/// The route `/mcp`.
pub(crate) fn route(app: &Arc<App>) -> MethodRouter<Arc<App>> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE);
    let sessions = Arc::new(sessions);
    // The guard of all routes checks Host and Origin, and `extract::read` the length of the body.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(usize::MAX)
        .with_cancellation_token(app.closing.token());
    let tools = Tools::new(Arc::clone(app));
    let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::clone(&sessions), config);
    let mcp = Mcp { service, sessions, open: Arc::default() };
    let serve = move |State(app): State<Arc<App>>, caller: Caller, request: Request| {
        let mcp = mcp.clone();
        async move { mcp.serve(&app, &caller, request).await }
    };
    get(serve.clone()).post(serve.clone()).delete(serve)
}

impl Mcp {
    async fn serve(&self, app: &App, caller: &Caller, request: Request) -> ApiResult<Response> {
        let session = self.session(caller, request.headers())?;
        let is_post = *request.method() == Method::POST;
        let ends_session = *request.method() == Method::DELETE;
        let (mut parts, body) = request.into_parts();
        if let Some(over) = session {
            if ends_session {
                over.0.cancel();
            }
            parts.extensions.insert(over);
        }
        let bytes = if is_post {
            extract::read(Request::from_parts(parts.clone(), body), app).await?
        } else {
            Bytes::new()
        };
        let names_session = parts.headers.contains_key(&SESSION_ID);
        if !names_session {
            self.check_room(&bytes).await?;
        }
        let request = Request::from_parts(parts, Body::from(bytes.clone()));
        let mut response = self.service.handle(request).await;
        if ends_session && response.status() == StatusCode::ACCEPTED {
            // Some clients treat any other status as a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if !names_session && let Some(session) = header_text(response.headers(), &SESSION_ID)? {
            self.remember(session.to_owned(), caller).await;
        }
        let response = response.map(Body::new);
        if response.status().is_client_error() {
            return Ok(refusal::in_json_rpc(response, is_post.then_some(&*bytes)).await);
        }
        Ok(response)
    }

    /// The session of a request. Only its owner finds it.
    fn session(&self, caller: &Caller, headers: &HeaderMap) -> ApiResult<Option<SessionOver>> {
        let Some(id) = header_text(headers, &SESSION_ID)? else { return Ok(None) };
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get(id) {
            Some(session) if session.owner == caller.key_space() => Ok(Some(session.over.clone())),
            Some(_) => Err(ApiError::not_found("session")),
            None => Ok(None),
        }
    }

    /// Refuses a handshake if there are too many sessions. Only then the server reads the body for it.
    async fn check_room(&self, body: &[u8]) -> ApiResult<()> {
        if self.sessions.sessions.read().await.len() < SESSIONS_MAX || !refusal::is_handshake(body) {
            return Ok(());
        }
        let refusal = ApiError::new(
            Code::RateLimited,
            format!("there are {SESSIONS_MAX} MCP sessions; clients of the current revision need none"),
        );
        Err(refusal.retry_after_ms(SESSION_RETRY_MS))
    }

    async fn remember(&self, session: String, caller: &Caller) {
        let live = self.sessions.sessions.read().await;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|id, _| live.contains_key(id.as_str()));
        let owner = caller.key_space().to_owned();
        open.insert(session, Session { owner, over: SessionOver::default() });
    }
}
