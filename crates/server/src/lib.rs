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
mod app;
mod error;
mod events;
mod http;
mod mcp;
mod schedules;
mod server;
mod service;
mod telemetry;

pub use admin::audit::{AuditError, Damage, verify as verify_audit};
pub use admin::tokens::{TokenError, Tokens};
pub use error::{FileError, ServerError};
pub use http::router::openapi_json;
pub use schedules::check_schedules;
pub use schedules::cron::CronError;
pub use server::{Parts, Reloader, Server, audit_file, state_dir, threads, tokens_file, with_echo};
