//! When a call is repeated by itself.

use std::time::Duration;

use laneway_protocol::Backoff;

use crate::error::Error;

/// How often, and after how long, a call that is safe to repeat is repeated. The default is never.
///
/// Safe are reads, calls under an `Idempotency-Key`, and calls with a fence. A refused call is repeated only when the
/// server says that this could help, and not before the time that it names.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The most repetitions.
    pub retries_max: u32,
    /// The first wait where the server names none; it doubles each time.
    pub wait_first: Duration,
    /// The longest wait. A call for which the server names a longer one fails at once.
    pub wait_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            retries_max: 0,
            wait_first: Duration::from_millis(200),
            wait_max: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// That many repetitions, with waits of 0.2 s to 30 s.
    pub fn retries(retries_max: u32) -> RetryPolicy {
        RetryPolicy { retries_max, ..RetryPolicy::default() }
    }

    /// How long to wait before the next try; `None`: there is none.
    pub(crate) fn wait(&self, tried: u32, error: &Error) -> Option<Duration> {
        if tried >= self.retries_max {
            return None;
        }
        let own = jittered(Backoff::new(self.wait_first, self.wait_max).wait_after(tried));
        match error {
            Error::Unreachable { .. } | Error::BrokenOff { .. } => Some(own),
            // A task that ran and failed would answer the same again.
            Error::Refused(problem) if problem.retryable && problem.phase == "setup" => {
                let named = problem.retry_after_ms.map(Duration::from_millis);
                Some(named.unwrap_or(own)).filter(|wait| *wait <= self.wait_max)
            }
            _ => None,
        }
    }
}

/// A wait in the upper half, so that many clients do not come back at one moment.
pub(crate) fn jittered(wait: Duration) -> Duration {
    let half = wait / 2;
    // Without randomness every client waits for the longest time, which is safe.
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
    fn a_call_is_repeated_only_where_that_could_help_and_not_before_its_time() {
        let policy = RetryPolicy::retries(2);
        let wait = |problem: Problem| policy.wait(0, &Error::Refused(Box::new(problem)));
        assert_eq!(wait(refused(Code::AtCapacity).retry_after_ms(1234)), Some(Duration::from_millis(1234)));
        assert_eq!(wait(refused(Code::StaleLease)), None);
        assert_eq!(wait(refused(Code::RunTimedOut).of_the_run()), None);
        assert_eq!(
            wait(refused(Code::AtCapacity).retry_after_ms(60_000)),
            None,
            "longer than the longest wait"
        );
        let away = Error::Unreachable { url: String::new(), why: String::new() };
        assert!(policy.wait(1, &away).is_some_and(|wait| wait >= Duration::from_millis(200)));
        assert_eq!(policy.wait(2, &away), None);
        assert_eq!(RetryPolicy::default().wait(0, &away), None);
    }

    #[test]
    fn a_jittered_wait_is_in_the_upper_half() {
        let max = Duration::from_secs(30);
        for _ in 0..100 {
            let wait = jittered(max);
            assert!(wait >= max / 2 && wait <= max);
        }
    }
}
