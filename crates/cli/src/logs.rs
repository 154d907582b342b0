//! Logs go to standard error: as text on a terminal, as JSON elsewhere.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts to log events of `level` and above.
pub(crate) fn start(level: tracing::Level) {
    // The MCP library logs sessions and headers, which must stay out of logs.
    let targets = Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF);
    let logs = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).finish().with(targets).init();
    } else {
        logs.json().flatten_event(true).finish().with(targets).init();
    }
}
