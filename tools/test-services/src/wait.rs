//! Waiting for servers.

use std::time::{Duration, Instant};

/// How long servers may take for anything.
const WITHIN: Duration = Duration::from_secs(60);
/// How often to look.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WITHIN, "it took too long until {what}");
        std::thread::sleep(PAUSE);
    }
}
