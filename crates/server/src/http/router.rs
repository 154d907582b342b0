//! Every route, who may use it, and its place in the OpenAPI document.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, header};
use axum::routing::get;
use laneway_protocol::{Problem, Scope};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::events::websocket;
use crate::http::error::ApiError;
use crate::http::middleware::Front;
use crate::http::routes::{
    admin, agents, charts, chat, dashboard, dead_letters, events, groups, lanes, messages, schedules,
    sessions, slots, status, task_list, tasks, workers,
};
use crate::mcp;
use crate::telemetry::metrics;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Public,
    /// Every token; what it may do is looked at later.
    Known,
    /// Tokens with this scope.
    Scope(Scope),
}

const PUBLIC: Access = Access::Public;
const KNOWN: Access = Access::Known;
const READ: Access = Access::Scope(Scope::Read);
const SUBMIT: Access = Access::Scope(Scope::Submit);
const WORKER: Access = Access::Scope(Scope::Worker);
const ADMIN: Access = Access::Scope(Scope::Admin);

/// Every route there is. What is not in this list is refused.
pub(crate) const ROUTES: &[(&str, &str, Access)] = &[
    ("GET", "/healthz", PUBLIC),
    ("GET", "/readyz", PUBLIC),
    ("GET", "/openapi.json", PUBLIC),
    ("GET", "/docs", PUBLIC),
    ("GET", "/", PUBLIC),
    ("GET", "/ui/{*file}", PUBLIC),
    ("GET", "/metrics", READ),
    ("GET", "/api/agents", READ),
    ("GET", "/api/agents/{agent}", READ),
    ("POST", "/api/agents/{agent}/chat", SUBMIT),
    ("POST", "/api/agents/{agent}/task", SUBMIT),
    ("GET", "/api/agents/{agent}/queue", READ),
    ("POST", "/api/agents/{agent}/queue/clear", ADMIN),
    ("POST", "/api/agents/{agent}/queue/release", ADMIN),
    ("GET", "/api/tasks", READ),
    ("POST", "/api/tasks", SUBMIT),
    ("POST", "/api/tasks/batch", SUBMIT),
    ("POST", "/api/tasks/cancel", ADMIN),
    ("GET", "/api/tasks/{id}", READ),
    ("PATCH", "/api/tasks/{id}", SUBMIT),
    ("DELETE", "/api/tasks/{id}", SUBMIT),
    ("GET", "/api/tasks/{id}/events", READ),
    ("GET", "/api/tasks/{id}/explain", READ),
    ("POST", "/api/tasks/{id}/heartbeat", WORKER),
    ("POST", "/api/tasks/{id}/complete", WORKER),
    ("GET", "/api/groups/{group}", READ),
    ("POST", "/api/slots", WORKER),
    ("DELETE", "/api/slots/{id}", WORKER),
    ("POST", "/api/claim", WORKER),
    ("GET", "/api/external-tasks", READ),
    ("GET", "/api/workers", READ),
    ("GET", "/api/dead-letters", READ),
    ("DELETE", "/api/dead-letters", ADMIN),
    ("POST", "/api/dead-letters/redrive", ADMIN),
    ("POST", "/api/dead-letters/{id}/redrive", ADMIN),
    ("DELETE", "/api/dead-letters/{id}", ADMIN),
    ("GET", "/api/lanes", READ),
    ("GET", "/api/lanes/{lane}", READ),
    ("PATCH", "/api/lanes/{lane}", ADMIN),
    ("POST", "/api/lanes/{lane}/pause", ADMIN),
    ("POST", "/api/lanes/{lane}/resume", ADMIN),
    ("POST", "/api/lanes/{lane}/drain", ADMIN),
    ("POST", "/api/lanes/{lane}/clear", ADMIN),
    ("GET", "/api/status", READ),
    ("GET", "/api/history", READ),
    ("GET", "/api/config", ADMIN),
    ("GET", "/api/me", KNOWN),
    ("GET", "/api/tokens", ADMIN),
    ("POST", "/api/tokens", ADMIN),
    ("DELETE", "/api/tokens", ADMIN),
    ("GET", "/api/schedules", READ),
    ("POST", "/api/schedules", ADMIN),
    ("PATCH", "/api/schedules/{name}", ADMIN),
    ("DELETE", "/api/schedules/{name}", ADMIN),
    ("POST", "/api/schedules/{name}/run", ADMIN),
    ("GET", "/api/schedules/{name}/runs", READ),
    ("GET", "/api/sessions", READ),
    ("GET", "/api/sessions/{key}", READ),
    ("PATCH", "/api/sessions/{key}", ADMIN),
    ("GET", "/api/sessions/{key}/stats", READ),
    ("GET", "/api/sessions/{key}/events", READ),
    ("POST", "/api/sessions/{key}/messages", SUBMIT),
    ("GET", "/api/sessions/{key}/messages/{id}", READ),
    ("DELETE", "/api/sessions/{key}/messages/{id}", SUBMIT),
    ("POST", "/api/sessions/{key}/messages/{id}/move", SUBMIT),
    ("POST", "/api/sessions/{key}/messages/{id}/send-now", SUBMIT),
    ("POST", "/api/sessions/{key}/messages/{id}/resend", SUBMIT),
    ("POST", "/api/sessions/{key}/interrupt", SUBMIT),
    ("POST", "/api/sessions/{key}/clear", SUBMIT),
    ("POST", "/api/sessions/{key}/steer", SUBMIT),
    ("GET", "/api/audit", ADMIN),
    ("GET", "/api/events", READ),
    ("GET", "/api/ws", KNOWN),
    ("GET", "/mcp", KNOWN),
    ("POST", "/mcp", KNOWN),
    ("DELETE", "/mcp", KNOWN),
];

/// Who may use a route; one that is not listed is for admins alone.
pub(crate) fn access_of(method: &Method, path: &str) -> Access {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut of_path = ROUTES.iter().filter(|(_, route, _)| *route == path).peekable();
    let is_known = of_path.peek().is_some();
    match of_path.find(|(known, _, _)| *known == method) {
        Some((_, _, access)) => *access,
        // The path is known and the method is not: every token may learn that.
        None if is_known => Access::Known,
        None => Access::Scope(Scope::Admin),
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Laneway",
        description = "Lanes for agent work: what may run now, what waits, and for how long."
    ),
    components(schemas(Problem))
)]
struct Document;

/// All routes, and the document that describes them.
fn described() -> (Router<Arc<App>>, utoipa::openapi::OpenApi) {
    let router = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(agents::list))
        .routes(routes!(agents::get))
        .routes(routes!(chat::chat))
        .routes(routes!(chat::task))
        .routes(routes!(agents::queue))
        .routes(routes!(agents::clear))
        .routes(routes!(agents::release))
        .routes(routes!(task_list::list, tasks::submit))
        .routes(routes!(groups::batch))
        .routes(routes!(tasks::cancel_many))
        .routes(routes!(tasks::get, tasks::change, tasks::cancel))
        .routes(routes!(tasks::events))
        .routes(routes!(tasks::explain))
        .routes(routes!(workers::heartbeat))
        .routes(routes!(workers::complete))
        .routes(routes!(groups::group))
        .routes(routes!(slots::take))
        .routes(routes!(slots::give_back))
        .routes(routes!(workers::claim))
        .routes(routes!(workers::external_tasks))
        .routes(routes!(workers::workers))
        .routes(routes!(dead_letters::list, dead_letters::discard_many))
        .routes(routes!(dead_letters::redrive_many))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(lanes::list))
        .routes(routes!(lanes::get, lanes::change))
        .routes(routes!(lanes::pause))
        .routes(routes!(lanes::resume))
        .routes(routes!(lanes::drain))
        .routes(routes!(lanes::clear))
        .routes(routes!(status::status))
        .routes(routes!(charts::history))
        .routes(routes!(status::config))
        .routes(routes!(admin::me))
        .routes(routes!(admin::tokens, admin::create_token, admin::remove_token))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::change, schedules::remove))
        .routes(routes!(schedules::run))
        .routes(routes!(schedules::runs))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::get, sessions::change))
        .routes(routes!(sessions::stats))
        .routes(routes!(sessions::events))
        .routes(routes!(messages::send))
        .routes(routes!(messages::receipt, messages::withdraw))
        .routes(routes!(messages::move_message))
        .routes(routes!(messages::send_now))
        .routes(routes!(messages::resend))
        .routes(routes!(sessions::interrupt))
        .routes(routes!(sessions::clear))
        .routes(routes!(messages::steer))
        .routes(routes!(admin::audit))
        .routes(routes!(events::events))
        .routes(routes!(websocket::upgrade))
        .routes(routes!(status::health))
        .routes(routes!(status::readiness))
        .routes(routes!(metrics::metrics));
    let (router, mut document) = router.split_for_parts();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete, &mut item.put];
        for operation in operations.into_iter().flatten() {
            describe_refusals(operation);
        }
    }
    (router, document)
}

/// The statuses with which anything can be refused. A 500 is not among them: it would be a bug.
const REFUSED: [&str; 17] = [
    "400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "426", "429", "431", "502", "503",
    "504", "414",
];

fn describe_refusals(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    for status in REFUSED {
        let response = ResponseBuilder::new()
            .description("refused, with why and what to do next")
            .content("application/problem+json", content.clone())
            .build();
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
    }
}

/// The document that describes all routes, as JSON.
pub fn openapi_json() -> String {
    described().1.to_pretty_json().unwrap_or_default()
}

/// The whole application.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, document) = described();
    let document: Arc<str> = document.to_json().unwrap_or_default().into();
    let serve_document = move || {
        let document = document.to_string();
        async move { ([(header::CONTENT_TYPE, "application/json")], document) }
    };
    router
        .route("/openapi.json", get(serve_document))
        .route("/docs", get(crate::http::routes::docs::page))
        .route("/", get(dashboard::page))
        .route("/ui/{*file}", get(dashboard::file))
        .route("/mcp", mcp::route(&app))
        .fallback(|| async { ApiError::not_found("route") })
        .method_not_allowed_fallback(|| async {
            ApiError::invalid("this route knows other methods; see the header Allow")
                .status(StatusCode::METHOD_NOT_ALLOWED)
        })
        .layer(Front(Arc::clone(&app)))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_has_an_access_and_every_access_a_route() {
        let listed: BTreeSet<(String, String)> = ROUTES
            .iter()
            .filter(|(_, path, _)| !["/openapi.json", "/docs", "/", "/ui/{*file}", "/mcp"].contains(path))
            .map(|(method, path, _)| (method.to_string(), path.to_string()))
            .collect();
        let mut described: BTreeSet<(String, String)> = BTreeSet::new();
        for (path, item) in &super::described().1.paths.paths {
            let operations = [
                ("GET", &item.get),
                ("POST", &item.post),
                ("PATCH", &item.patch),
                ("DELETE", &item.delete),
                ("PUT", &item.put),
            ];
            for (method, _) in operations.iter().filter(|(_, operation)| operation.is_some()) {
                described.insert((method.to_string(), path.clone()));
            }
        }
        assert_eq!(listed, described);
    }

    #[test]
    fn what_is_not_listed_is_for_admins_alone() {
        assert_eq!(access_of(&Method::GET, "/api/secret"), Access::Scope(Scope::Admin));
        assert_eq!(access_of(&Method::PUT, "/api/status"), Access::Known);
        assert_eq!(access_of(&Method::HEAD, "/api/status"), Access::Scope(Scope::Read));
    }

    #[test]
    fn what_changes_something_needs_more_than_read() {
        for (method, path, access) in ROUTES {
            // What a tool needs is listed with the tools.
            let is_harmless = *method == "GET" || *path == "/mcp";
            let is_weak = matches!(access, Access::Public | Access::Known | Access::Scope(Scope::Read));
            assert!(is_harmless || !is_weak, "{method} {path}");
        }
    }
}
