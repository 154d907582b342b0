//! Identifies the caller and checks its scope before anything else.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use laneway_core::Name;
use laneway_protocol::{Code, Scope};

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::limits::InFlight;
use crate::http::router::{Access, AccessTable};

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The id of the token; `None` if the server has no tokens and every caller may do everything.
    pub(crate) token: Option<String>,
    pub(crate) subject: Cow<'static, str>,
    scopes: Vec<Scope>,
    pub(crate) speaks_for_others: bool,
}

impl Caller {
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.token.is_none() || self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Refuses a caller without this scope.
    pub(crate) fn check(&self, scope: Scope) -> ApiResult<()> {
        if self.may(scope) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("this needs a token with the scope {}", scope.as_str())))
    }

    /// Whether this caller may change a task of this owner.
    pub(crate) fn owns(&self, owner: Option<&str>) -> bool {
        self.may(Scope::Admin) || (owner.is_some() && self.token.as_deref() == owner)
    }

    /// The agent of a token with the subject `agent:<name>`.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.subject.strip_prefix("agent:").filter(|name| Name::new(*name).is_ok())
    }

    /// The token's id, as the core keeps it with a task.
    pub(crate) fn token_name(&self) -> Option<Name> {
        self.token.as_deref().and_then(|token| Name::new(token).ok())
    }

    /// The prefix that keeps the keys of different callers apart.
    pub(crate) fn key_space(&self) -> &str {
        self.token.as_deref().unwrap_or("local")
    }

    /// The caller of a schedule's turns.
    pub(crate) fn schedule(name: &str) -> Caller {
        Caller { subject: format!("schedule:{name}").into(), ..Caller::local() }
    }

    fn local() -> Caller {
        Caller { token: None, subject: Cow::Borrowed("local"), scopes: Vec::new(), speaks_for_others: true }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> ApiResult<Caller> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(unauthorized)
    }
}

fn unauthorized() -> ApiError {
    ApiError::new(Code::Unauthorized, "the request needs a token: Authorization: Bearer <id.secret>")
}

/// Admits a request and adds its caller to the extensions. The request counts as in flight while the result is held.
pub(super) fn admit(app: &App, table: &AccessTable, request: &mut Request) -> ApiResult<Option<InFlight>> {
    let path = request.extensions().get::<MatchedPath>();
    let access = path.map_or(Access::Token, |path| table.of(request.method(), path.as_str()));
    if access == Access::Probe {
        return Ok(None);
    }
    check_host(app, request.headers(), request.uri().authority())?;
    check_origin(app, request.headers())?;
    if access == Access::Public {
        return Ok(None);
    }
    let caller = identify(app, request.headers(), request.uri().query())?;
    if let Access::Scope(scope) = access {
        caller.check(scope)?;
    }
    let in_flight = within_limits(app, &caller, request)?;
    if request.headers().contains_key(header::UPGRADE) {
        request.extensions_mut().insert(in_flight.clone());
    }
    request.extensions_mut().insert(caller);
    Ok(Some(in_flight))
}

fn within_limits(app: &App, caller: &Caller, request: &Request) -> ApiResult<InFlight> {
    let Some(token) = &caller.token else { return Ok(InFlight::WITHOUT_TOKEN) };
    let config = app.config.load();
    let limits = &config.server;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    // A body of unknown length counts as the longest one.
    let unknown = if matches!(*request.method(), Method::GET | Method::DELETE | Method::HEAD) {
        0
    } else {
        limits.body_bytes_max.into()
    };
    app.callers.admit(token, length.unwrap_or(unknown), app.now(), limits)
}

fn identify(app: &App, headers: &HeaderMap, query: Option<&str>) -> ApiResult<Caller> {
    if app.is_open() {
        return Ok(Caller::local());
    }
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    // A browser cannot set headers on a WebSocket or an event source.
    let in_query =
        query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("access_token=")));
    let bearer = shown.or(in_query).and_then(|shown| app.tokens.bearer(shown)).ok_or_else(unauthorized)?;
    Ok(Caller {
        token: Some(bearer.id),
        subject: bearer.subject.into(),
        scopes: bearer.scopes,
        speaks_for_others: bearer.speaks_for_others,
    })
}

/// Refuses requests under an unknown name, with which a page of another site could reach a server on this machine.
fn check_host(app: &App, headers: &HeaderMap, authority: Option<&Authority>) -> ApiResult<()> {
    // A proxy may have checked a different one.
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Err(ApiError::invalid("the request has more than one Host header: send one"));
    }
    let text = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let written = text.map(|text| text.parse::<Authority>().ok());
    let host = written.as_ref().map_or(authority, Option::as_ref).map(Authority::host);
    let Some(host) = host else { return Err(ApiError::invalid("the request needs a Host header")) };
    // The request line may name another host.
    let in_line = authority.map(Authority::host);
    if is_known_host(app, host) && in_line.is_none_or(|host| is_known_host(app, host)) {
        return Ok(());
    }
    Err(ApiError::forbidden("this server does not answer to that Host; name it in server { hosts = [...] }"))
}

fn is_known_host(app: &App, host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().ok();
    if address.is_some_and(|address| address.is_loopback()) || bare.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let config = app.config();
    let is_named = config.server.hosts.iter().any(|known| known.eq_ignore_ascii_case(bare))
        || config.listen.host.eq_ignore_ascii_case(host);
    let is_remote = !config.listen.is_loopback() && config.server.hosts.is_empty();
    is_named || is_remote
}

/// Whether pages of this origin may send requests and read the answers.
pub(super) fn is_named_origin(app: &App, origin: &str) -> bool {
    app.config().server.origins.iter().any(|known| known == origin)
}

fn check_origin(app: &App, headers: &HeaderMap) -> ApiResult<()> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_same = origin.split_once("://").is_some_and(|(_, rest)| !host.is_empty() && rest == host);
    if is_same || is_named_origin(app, origin) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "pages of that origin may not use this server; name it in server { origins = [...] }",
    ))
}

impl App {
    /// Whether every caller may do everything: there are no tokens, and only this machine can reach the server.
    pub(crate) fn is_open(&self) -> bool {
        self.is_loopback && self.tokens.is_empty()
    }

    /// Whether a caller with this token, or with none, would be admitted now.
    pub(crate) fn has_access(&self, token: Option<&str>) -> bool {
        match token {
            Some(id) => self.tokens.holds(id),
            None => self.is_open(),
        }
    }
}
