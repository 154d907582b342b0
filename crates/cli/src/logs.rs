//! Logs: text on a terminal, JSON elsewhere; always to standard error.

use std::io::IsTerminal;

/// Starts to log what is at least as important as `level`.
pub(crate) fn start(level: tracing::Level) {
    let logs = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).init();
    } else {
        logs.json().flatten_event(true).init();
    }
}
