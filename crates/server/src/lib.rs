//! The server: HTTP, SSE, WebSocket and MCP in front of one queue.
//!
//! Every request is decoded, asked of the [`Handle`](laneway_engine::Handle), and the answer encoded. No rule of the
//! queue is here, and no state but that of connections. The order is always the same: who asks, does it make sense, is
//! there room.
//!
//! | question | file |
//! |---|---|
//! | opening, serving, stopping | `server.rs`, `timed.rs`, `alarm.rs`, `signal.rs` |
//! | which routes are there, and who may use them? | `routes.rs`, `front.rs`, `auth.rs`, `tokens.rs`, `limits.rs` |
//! | reading requests, refusing them | `extract.rs`, `problem.rs` |
//! | from a request to a task | `asks.rs`, `envelope.rs`, `chat.rs`, `tasks.rs`, `slots.rs` |
//! | who runs turns | `runners.rs`, `command.rs`, `upstream.rs`, `workers.rs` |
//! | events | `watching.rs`, `bus.rs`, `board.rs`, `happening.rs`, `streams.rs`, `socket.rs` |
//! | MCP | `mcp/` |
//! | sessions and their messages | `sessions.rs`, `messages.rs` |
//! | lists, lanes, status, charts, metrics | `tasks_list.rs`, `attempts.rs`, `tasks_groups.rs`, `lanes.rs`, `status.rs`, `charts.rs`, `charts_route.rs`, `metrics.rs` |
//! | traces for a collector | `otlp.rs`, `otlp_spans.rs` |
//! | the dashboard's files | `dashboard.rs` |
//! | schedules | `cron.rs`, `schedules.rs`, `schedule_notes.rs`, `schedule_routes.rs` |
//! | what is kept beside the store | `files.rs`, `tokens.rs`, `audit.rs` |

mod admin;
mod agents;
mod agreement;
mod alarm;
mod app;
mod asks;
mod attempts;
mod audit;
mod auth;
mod board;
mod bus;
mod charts;
mod charts_route;
mod chat;
mod command;
mod cron;
mod dashboard;
mod docs;
mod envelope;
mod events;
mod extract;
mod files;
mod front;
mod groups;
mod happening;
mod lanes;
mod letters;
mod limits;
mod mcp;
mod messages;
mod metrics;
mod otlp;
mod otlp_spans;
mod problem;
mod routes;
mod runners;
mod schedule_notes;
mod schedule_routes;
mod schedules;
mod server;
mod sessions;
mod signal;
mod slots;
mod socket;
mod status;
mod streams;
mod tasks;
mod tasks_groups;
mod tasks_list;
mod timed;
mod tokens;
mod upstream;
mod views;
mod watching;
mod workers;

pub use audit::verify as verify_audit;
pub use routes::openapi_json;
pub use schedules::check_schedules;
pub use server::{Parts, Reloader, Server, audit_file, state_dir, threads, tokens_file, with_echo};
pub use tokens::Tokens;
