//! Every route, who may use it, and its place in the OpenAPI document.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, header};
use axum::routing::get;
use laneway_protocol::{Problem, Scope, TurnPayloadView};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::events::websocket;
use crate::http::error::ApiError;
use crate::http::middleware::Guard;
use crate::http::routes::admin::{charts, status};
use crate::http::routes::agents::chat;
use crate::http::routes::pages::{dashboard, docs};
use crate::http::routes::sessions::messages;
use crate::http::routes::tasks::{dead_letters, groups, list, slots, workers};
use crate::http::routes::{admin, agents, events, lanes, schedules, sessions, tasks};
use crate::mcp;
use crate::telemetry::metrics;

type Routes = OpenApiRouter<Arc<App>>;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, under any `Host` or none: balancers send health checks to an address, also over HTTP/1.0.
    Probe,
    /// Everybody.
    Public,
    /// Every token. The route checks what the token may do.
    Token,
    /// Tokens with this scope.
    Scope(Scope),
}

/// Who may use each method of each path.
#[derive(Default)]
pub(super) struct AccessTable(HashMap<String, Vec<(Method, Access)>>);

impl AccessTable {
    fn add(&mut self, method: Method, path: &str, access: Access) {
        self.0.entry(path.to_owned()).or_default().push((method, access));
    }

    /// Who may use a route. A path that is not in the table is for admins alone.
    pub(super) fn of(&self, method: &Method, path: &str) -> Access {
        let Some(methods) = self.0.get(path) else { return Access::Scope(Scope::Admin) };
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let found = methods.iter().find(|(known, _)| known == method);
        // Every token may learn that a known path does not know the method.
        found.map_or(Access::Token, |(_, access)| *access)
    }
}

fn probe_routes() -> Routes {
    OpenApiRouter::new().routes(routes!(status::health)).routes(routes!(status::readiness))
}

fn token_routes() -> Routes {
    OpenApiRouter::new().routes(routes!(admin::me)).routes(routes!(websocket::upgrade))
}

fn read_routes() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(metrics::metrics))
        .routes(routes!(agents::list))
        .routes(routes!(agents::get))
        .routes(routes!(agents::queue))
        .routes(routes!(list::list))
        .routes(routes!(tasks::get))
        .routes(routes!(tasks::events))
        .routes(routes!(tasks::explain))
        .routes(routes!(groups::group))
        .routes(routes!(workers::external_tasks))
        .routes(routes!(workers::workers))
        .routes(routes!(dead_letters::list))
        .routes(routes!(lanes::list))
        .routes(routes!(lanes::get))
        .routes(routes!(status::status))
        .routes(routes!(charts::history))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::get))
        .routes(routes!(schedules::runs))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::get))
        .routes(routes!(sessions::stats))
        .routes(routes!(sessions::events))
        .routes(routes!(messages::receipt))
        .routes(routes!(events::events))
}

fn submit_routes() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(chat::chat))
        .routes(routes!(chat::task))
        .routes(routes!(tasks::submit))
        .routes(routes!(groups::batch))
        .routes(routes!(tasks::change, tasks::cancel))
        .routes(routes!(messages::send))
        .routes(routes!(messages::withdraw))
        .routes(routes!(messages::move_message))
        .routes(routes!(messages::send_now))
        .routes(routes!(messages::promote))
        .routes(routes!(messages::resend))
        .routes(routes!(messages::steer))
        .routes(routes!(sessions::interrupt))
        .routes(routes!(sessions::clear))
}

fn worker_routes() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(workers::claim))
        .routes(routes!(workers::heartbeat))
        .routes(routes!(workers::complete))
        .routes(routes!(workers::events))
        .routes(routes!(slots::take))
        .routes(routes!(slots::give_back))
}

fn admin_routes() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(agents::create))
        .routes(routes!(agents::change, agents::remove))
        .routes(routes!(agents::clear))
        .routes(routes!(agents::release))
        .routes(routes!(tasks::cancel_many))
        .routes(routes!(dead_letters::discard_many))
        .routes(routes!(dead_letters::redrive_many))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(lanes::change))
        .routes(routes!(lanes::pause))
        .routes(routes!(lanes::resume))
        .routes(routes!(lanes::drain))
        .routes(routes!(lanes::clear))
        .routes(routes!(lanes::release))
        .routes(routes!(status::config))
        .routes(routes!(admin::tokens, admin::create_token, admin::remove_token))
        .routes(routes!(schedules::create))
        .routes(routes!(schedules::change, schedules::remove))
        .routes(routes!(schedules::run))
        .routes(routes!(sessions::change))
        .routes(routes!(admin::audit))
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Laneway",
        description = "Lanes for agent work: what may run now, what waits, and for how long."
    ),
    components(schemas(Problem, TurnPayloadView))
)]
struct Document;

/// The methods that a path describes.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let operations = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    operations.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// All described routes, who may use them, and the document that describes them.
fn described() -> (Router<Arc<App>>, AccessTable, utoipa::openapi::OpenApi) {
    let groups = [
        (Access::Probe, probe_routes()),
        (Access::Token, token_routes()),
        (Access::Scope(Scope::Read), read_routes()),
        (Access::Scope(Scope::Submit), submit_routes()),
        (Access::Scope(Scope::Worker), worker_routes()),
        (Access::Scope(Scope::Admin), admin_routes()),
    ];
    let mut all = OpenApiRouter::with_openapi(Document::openapi());
    let mut table = AccessTable::default();
    for (access, mut group) in groups {
        for (path, item) in &mut group.get_openapi_mut().paths.paths {
            operations(item).for_each(|(method, _)| table.add(method, path, access));
        }
        all = all.merge(group);
    }
    let (router, mut document) = all.split_for_parts();
    for item in document.paths.paths.values_mut() {
        operations(item).for_each(|(_, operation)| describe_refusals(operation));
    }
    (router, table, document)
}

/// The statuses of refusals that any route may answer. A 500 would be a bug.
const REFUSED: [&str; 17] = [
    "400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "426", "429", "431", "502", "503",
    "504", "414",
];

fn describe_refusals(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    for status in REFUSED {
        let response = ResponseBuilder::new()
            .description("The server refused the request. The body says why and what to do next.")
            .content("application/problem+json", content.clone())
            .build();
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
    }
}

/// The document that describes all routes, as JSON.
pub fn openapi_json() -> String {
    described().2.to_pretty_json().unwrap_or_default()
}

/// The whole application.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, mut table, document) = described();
    let document: Arc<str> = document.to_json().unwrap_or_default().into();
    let serve_document = move || {
        let document = document.to_string();
        async move { ([(header::CONTENT_TYPE, "application/json")], document) }
    };
    for path in ["/openapi.json", "/docs", "/", "/ui/{*file}"] {
        table.add(Method::GET, path, Access::Public);
    }
    for method in [Method::GET, Method::POST, Method::DELETE] {
        table.add(method, "/mcp", Access::Token);
    }
    router
        .route("/openapi.json", get(serve_document))
        .route("/docs", get(docs::page))
        .route("/", get(dashboard::page))
        .route("/ui/{*file}", get(dashboard::file))
        .route("/mcp", mcp::route(&app))
        .fallback(|| async { ApiError::not_found("route") })
        .method_not_allowed_fallback(|| async {
            ApiError::invalid("this route does not have that method; the header Allow lists the methods")
                .status(StatusCode::METHOD_NOT_ALLOWED)
        })
        .layer(Guard::new(Arc::clone(&app), table))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_for_admins_alone() {
        let (_, table, _) = described();
        assert_eq!(table.of(&Method::GET, "/api/secret"), Access::Scope(Scope::Admin));
        assert_eq!(table.of(&Method::PUT, "/api/status"), Access::Token);
        assert_eq!(table.of(&Method::HEAD, "/api/status"), Access::Scope(Scope::Read));
        assert_eq!(table.of(&Method::DELETE, "/api/tokens"), Access::Scope(Scope::Admin));
    }

    #[test]
    fn what_changes_something_needs_more_than_read() {
        let (_, table, _) = described();
        let listed =
            table.0.iter().flat_map(|(path, methods)| methods.iter().map(move |known| (path, known)));
        for (path, (method, access)) in listed.filter(|(_, (method, _))| *method != Method::GET) {
            let is_weak =
                matches!(access, Access::Probe | Access::Public | Access::Token | Access::Scope(Scope::Read));
            assert!(!is_weak, "{method} {path}");
        }
    }

    #[test]
    fn each_method_of_a_path_is_listed_once() {
        let (_, table, _) = described();
        for (path, methods) in &table.0 {
            for (method, _) in methods {
                assert_eq!(methods.iter().filter(|(known, _)| known == method).count(), 1, "{method} {path}");
            }
        }
    }
}
