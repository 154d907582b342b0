//! One target for each reader of input.

mod configuration;
mod cron;
mod directives;
mod http;
mod names;
mod records;
mod served;
mod socket;
mod texts;

use crate::FuzzOutcome;

/// Reads one input and panics when a promise is broken.
type Target = fn(&[u8]) -> FuzzOutcome;

/// Every target by its name, which is also its folder in the corpus.
pub const TARGETS: [(&str, Target); 9] = [
    ("configuration", configuration::read),
    ("cron", cron::read),
    ("directives", directives::read),
    ("http", http::read),
    ("mcp", http::read),
    ("names", names::read),
    ("records", records::read),
    ("socket", socket::read),
    ("texts", texts::read),
];

/// Has the target of this name read `input`.
///
/// # Panics
///
/// When the target breaks a promise, or when no target has this name.
pub fn read(target: &str, input: &[u8]) -> FuzzOutcome {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, read) = found.expect("the name of a target");
    read(input)
}
