//! When a call is made again by itself: where that is safe, could help, and somebody has asked for it.

use std::time::Duration;

use crate::error::Error;

/// How often, and after how long, a call that is safe to repeat is made again. The default is never.
///
/// Safe are reads, calls under an `Idempotency-Key`, and what a fence guards. What was refused is repeated only when
/// the server says that this could help, and not before the time that it names.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How many times at most after the first.
    pub retries_max: u32,
    /// The first wait where the server names none; it doubles each time.
    pub wait_first: Duration,
    /// No wait is longer; where the server names a longer one, the call is given up at once.
    pub wait_max: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { retries_max: 0, wait_first: Duration::from_millis(200), wait_max: Duration::from_secs(30) }
    }
}

impl Patience {
    /// That many retries, with waits of 0.2 s to 30 s.
    pub fn retries(retries_max: u32) -> Patience {
        Patience { retries_max, ..Patience::default() }
    }

    /// How long to wait before the next try; `None`: there is none.
    pub(crate) fn wait(&self, tried: u32, error: &Error) -> Option<Duration> {
        if tried >= self.retries_max {
            return None;
        }
        let own = jittered(doubled(self.wait_first, tried, self.wait_max));
        match error {
            Error::Unreachable { .. } | Error::BrokenOff { .. } => Some(own),
            // What ran and did not succeed would be told again, not run again.
            Error::Refused(problem) if problem.retryable && problem.phase == "setup" => {
                let named = problem.retry_after_ms.map(Duration::from_millis);
                Some(named.unwrap_or(own)).filter(|wait| *wait <= self.wait_max)
            }
            _ => None,
        }
    }
}

/// `first`, doubled `times` times, at most `max`.
pub(crate) fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    let factor = 1u32.checked_shl(times.min(31)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(max)
}

/// Somewhere in the upper half, so that many clients do not come back at one moment.
pub(crate) fn jittered(wait: Duration) -> Duration {
    let half = wait / 2;
    // Without chance all wait for as long as they may, which is safe.
    let chance = getrandom::u32().map_or(1.0, |chance| f64::from(chance) / f64::from(u32::MAX));
    half + half.mul_f64(chance)
}

#[cfg(test)]
mod tests {
    use laneway_protocol::{Code, Problem};

    use super::*;

    fn refused(code: Code) -> Problem {
        Problem::new(code, "no")
    }

    #[test]
    fn only_what_could_help_is_tried_again_and_not_before_its_time() {
        let patience = Patience::retries(2);
        let wait = |problem: Problem| patience.wait(0, &Error::Refused(Box::new(problem)));
        assert_eq!(wait(refused(Code::AtCapacity).retry_after_ms(1234)), Some(Duration::from_millis(1234)));
        assert_eq!(wait(refused(Code::StaleLease)), None);
        assert_eq!(wait(refused(Code::RunTimedOut).of_the_run()), None);
        assert_eq!(wait(refused(Code::AtCapacity).retry_after_ms(60_000)), None, "longer than anybody waits");
        let away = Error::Unreachable { url: String::new(), why: String::new() };
        assert!(patience.wait(1, &away).is_some_and(|wait| wait >= Duration::from_millis(200)));
        assert_eq!(patience.wait(2, &away), None);
        assert_eq!(Patience::default().wait(0, &away), None);
    }

    #[test]
    fn waits_double_up_to_their_bound() {
        let (first, max) = (Duration::from_millis(200), Duration::from_secs(30));
        assert_eq!(doubled(first, 0, max), first);
        assert_eq!(doubled(first, 3, max), Duration::from_millis(1600));
        assert_eq!(doubled(first, 40, max), max);
        for _ in 0..100 {
            let wait = jittered(max);
            assert!(wait >= max / 2 && wait <= max);
        }
    }
}
