//! Waits between tries.

use std::time::Duration;

/// Waits that double from the first to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits for something that has not failed so far.
    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest, failures: 0 }
    }

    /// Counts a failure and returns how long to wait before the next try.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.wait_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// How long to wait before the next try, when some tries have failed before the last one.
    #[must_use]
    pub fn wait_after(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// Forgets the failures, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(1));
        let waits: Vec<u128> = (0..4).map(|_| backoff.next_wait().as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1000]);
        assert_eq!(backoff.wait_after(u32::MAX), Duration::from_secs(1));
        backoff.reset();
        assert_eq!(backoff.next_wait(), Duration::from_millis(200));
    }
}
