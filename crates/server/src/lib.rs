//! The server: HTTP, SSE, WebSocket and MCP in front of one queue.
//!
//! A route decodes a request, calls `service` and encodes the answer. The rules of the queue live in the core; the server
//! holds connections, tokens and the audit log.
//!
//! | question | folder |
//! |---|---|
//! | open, serve, stop, reload | `server.rs`, `reload.rs`, `net/` |
//! | routes, authentication, limits, errors | `http/` |
//! | ask an agent, submit a task, send a message, hold a slot | `service/` |
//! | programs and addresses that run turns and tasks | `agents/` |
//! | SSE, WebSocket | `events/` |
//! | tools for models | `mcp/` |
//! | turns by the clock | `schedules/` |
//! | metrics, charts, traces | `telemetry/` |
//! | tokens, audit log, configuration drift | `admin/` |
//! | what the server keeps in the log | `notes.rs` |

mod admin;
mod agents;
mod app;
mod error;
mod events;
mod http;
mod mcp;
mod net;
mod notes;
mod reload;
mod schedules;
mod server;
mod service;
mod telemetry;

pub use admin::audit::{AuditDamage, AuditError, verify as verify_audit};
pub use admin::token_file::{TokenError, TokenFile};
pub use error::{FileError, ServerError};
pub use http::router::openapi_json;
pub use reload::Reloader;
pub use schedules::check_schedules;
pub use schedules::cron::CronError;
pub use server::{Parts, Server, audit_file, state_dir, threads, tokens_file, with_echo};
