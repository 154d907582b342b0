//! The block `server`: limits for clients, timeouts, and the server's own files.

use std::path::PathBuf;

use laneway_core::Millis;

use crate::fields::Fields;
use crate::report::Report;

/// How the server treats its clients, and where it keeps its own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The host names that the server accepts, in addition to those of this machine. Default: any name, if there are
    /// tokens and other machines can reach the server.
    pub hosts: Vec<String>,
    /// The origins whose pages may call the server, in addition to its own. Default: none.
    pub origins: Vec<String>,
    /// The address under which others reach the server. Programs get it as `LANEWAY_URL`. Default: `http://` and the
    /// listen address.
    pub url: Option<String>,
    /// The directory of tokens, schedules and the audit log. Default: `server` in the store's directory, or
    /// `./laneway-server` if the store is not a directory.
    pub state: Option<PathBuf>,
    /// The OpenTelemetry collector that gets a trace of each task, over OTLP and HTTP. Default: the value of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, else none.
    pub otlp: Option<String>,
    /// The longest body, in bytes. Default 4 MiB.
    pub body_bytes_max: u32,
    /// How long a body may take to arrive. Default 30 s.
    pub body_timeout: Millis,
    /// How long the head of a request may take to arrive. Default 10 s.
    pub header_timeout: Millis,
    /// The maximum number of connections. Default 16 384.
    pub connections_max: u32,
    /// How long attempts may continue after SIGTERM. Default 30 s.
    pub drain_grace: Millis,
    /// How long a replica may be silent before others take over what it ran.
    pub replica_lease: Millis,
    /// Whether `/readyz` reports ready while `global` is full. Default true.
    pub ready_when_full: bool,
    /// How long a tool call over MCP may take before the server answers it with the task's id. Default 25 s.
    pub mcp_answer_within: Millis,
    /// How many ended tasks the server remembers. Default 10 000.
    pub history_max: u32,
    /// The maximum number of requests of each token per minute. Default: no limit.
    pub token_requests_per_minute: Option<u32>,
    /// How many bytes each token may send in a minute. Default: any number.
    pub token_bytes_per_minute: Option<u32>,
    /// How many requests, streams and WebSockets each token may have at once. Default: no limit.
    pub token_connections: Option<u32>,
    /// How many tasks and slot requests of each token may wait. Default: no limit.
    pub token_waiting: Option<u32>,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            hosts: Vec::new(),
            origins: Vec::new(),
            url: None,
            state: None,
            otlp: None,
            body_bytes_max: 4 * 1024 * 1024,
            body_timeout: Millis::from_secs(30),
            header_timeout: Millis::from_secs(10),
            connections_max: 16_384,
            drain_grace: Millis::from_secs(30),
            replica_lease: Millis::from_secs(3),
            ready_when_full: true,
            mcp_answer_within: Millis::from_secs(25),
            history_max: 10_000,
            token_requests_per_minute: None,
            token_bytes_per_minute: None,
            token_connections: None,
            token_waiting: None,
        }
    }
}

pub(crate) fn server(report: &mut Report, top: &mut Fields<'_>) -> ServerConfig {
    let mut server = ServerConfig::default();
    let Some(field) = top.take("server") else { return server };
    let Some(mut fields) = Fields::of(report, "server", "", field.node) else { return server };
    let moment = Millis(1);
    set(&mut server.hosts, fields.texts(report, "hosts", "[\"lanes.example\"]"));
    set(&mut server.origins, fields.texts(report, "origins", "[\"https://chat.example\"]"));
    server.url = fields.text(report, "url");
    server.state = fields.text(report, "state").map(PathBuf::from);
    server.otlp = fields.text(report, "otlp");
    set(&mut server.body_bytes_max, fields.count(report, "body_bytes_max", 1024));
    set(&mut server.body_timeout, fields.duration(report, "body_timeout", moment));
    set(&mut server.header_timeout, fields.duration(report, "header_timeout", moment));
    set(&mut server.connections_max, fields.count(report, "connections_max", 1));
    set(&mut server.drain_grace, fields.duration(report, "drain_grace", Millis(0)));
    set(&mut server.replica_lease, fields.duration(report, "replica_lease", Millis(100)));
    set(&mut server.ready_when_full, fields.truth(report, "ready_when_full"));
    set(&mut server.mcp_answer_within, fields.duration(report, "mcp_answer_within", moment));
    set(&mut server.history_max, fields.count(report, "history_max", 0));
    server.token_requests_per_minute = fields.count(report, "token_requests_per_minute", 1);
    server.token_bytes_per_minute = fields.count(report, "token_bytes_per_minute", 1);
    server.token_connections = fields.count(report, "token_connections", 1);
    server.token_waiting = fields.count(report, "token_waiting", 0);
    for origin in &server.origins {
        let is_origin =
            origin.split_once("://").is_some_and(|(_, host)| !host.is_empty() && !host.contains('/'));
        if !is_origin {
            let line = report.line_of("server", "origins");
            report.wrong(line, "server", "origins", "must hold origins such as \"https://chat.example\"");
        }
    }
    fields.finish(report);
    server
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

/// Each value of the block as in a file.
pub(crate) fn values(server: &ServerConfig) -> Vec<(&'static str, String)> {
    let count = |count: Option<u32>| count.map_or("unlimited".to_owned(), |count| count.to_string());
    vec![
        ("hosts", format!("{:?}", server.hosts)),
        ("origins", format!("{:?}", server.origins)),
        ("url", server.url.clone().unwrap_or_else(|| "the listen address".to_owned())),
        (
            "state",
            server.state.as_ref().map_or("next to the store".to_owned(), |dir| dir.display().to_string()),
        ),
        ("otlp", server.otlp.clone().unwrap_or_else(|| "from OTEL_EXPORTER_OTLP_ENDPOINT".to_owned())),
        ("body_bytes_max", server.body_bytes_max.to_string()),
        ("body_timeout", server.body_timeout.to_string()),
        ("header_timeout", server.header_timeout.to_string()),
        ("connections_max", server.connections_max.to_string()),
        ("drain_grace", server.drain_grace.to_string()),
        ("replica_lease", server.replica_lease.to_string()),
        ("ready_when_full", server.ready_when_full.to_string()),
        ("mcp_answer_within", server.mcp_answer_within.to_string()),
        ("history_max", server.history_max.to_string()),
        ("token_requests_per_minute", count(server.token_requests_per_minute)),
        ("token_bytes_per_minute", count(server.token_bytes_per_minute)),
        ("token_connections", count(server.token_connections)),
        ("token_waiting", count(server.token_waiting)),
    ]
}
