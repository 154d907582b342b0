//! Logs: text on a terminal, JSON elsewhere; always to standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts to log what is at least as important as `level`.
pub(crate) fn start(level: tracing::Level) {
    // The MCP library names sessions and headers, which logs must not.
    let told = Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF);
    let logs = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).finish().with(told).init();
    } else {
        logs.json().flatten_event(true).finish().with(told).init();
    }
}
