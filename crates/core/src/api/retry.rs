//! What follows an attempt that did not succeed: whether another, and when.

use serde::{Deserialize, Serialize};

use crate::api::time::Millis;

/// Whether and when an attempt that did not succeed is followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How the delay grows.
    pub strategy: RetryStrategy,
    /// How many attempts may follow the first.
    pub max_retries: u32,
    /// `exponential`: the delay before the first retry; it doubles each time.
    pub initial_delay: Millis,
    /// `fixed`: the delay before each retry.
    pub fixed_delay: Millis,
    /// `exponential`: no delay is longer than this.
    pub max_delay: Millis,
    /// Spreads each delay over its upper half, by a number that follows from the task and the attempt.
    pub jitter: bool,
}

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryStrategy {
    /// There is one attempt only.
    None,
    /// The same delay each time.
    Fixed,
    /// Twice the delay each time.
    Exponential,
}

impl Retry {
    /// One attempt only: the default of a lane.
    pub const NONE: Retry = Retry { strategy: RetryStrategy::None, max_retries: 0, ..Retry::STANDARD };
    /// What an empty `retry` block means: exponential, three retries, 100 ms doubling up to 30 s.
    pub const STANDARD: Retry = Retry {
        strategy: RetryStrategy::Exponential,
        max_retries: 3,
        initial_delay: Millis(100),
        fixed_delay: Millis(1000),
        max_delay: Millis(30_000),
        jitter: false,
    };

    /// The delay before retry number `retry` (counted from one), or `None` when there is no such retry.
    /// `seed` decides where in its upper half a delay with jitter falls.
    pub fn delay(&self, retry: u32, seed: u64) -> Option<Millis> {
        if retry > self.max_retries {
            return None;
        }
        let full = match self.strategy {
            RetryStrategy::None => return None,
            RetryStrategy::Fixed => self.fixed_delay.0,
            RetryStrategy::Exponential => {
                let doublings = (retry - 1).min(63);
                let doubled = u128::from(self.initial_delay.0) << doublings;
                u64::try_from(doubled).unwrap_or(u64::MAX).min(self.max_delay.0)
            }
        };
        let delay = if self.jitter { full - mix(seed, retry) % (full / 2 + 1) } else { full };
        Some(Millis(delay))
    }
}

/// SplitMix64's finisher: spreads a seed and a small number over all 64 bits.
pub(crate) fn mix(seed: u64, number: u32) -> u64 {
    let mut z = seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::command::{Command, Outcome};
    use crate::api::event::Event;
    use crate::api::ids::TaskId;
    use crate::api::name::{LaneName, Name};
    use crate::api::task_spec::TaskSpec;
    use crate::api::time::Timestamp;
    use crate::scheduler::Scheduler;

    /// A delay of ten days, so long that two tasks hardly ever meet in it by chance.
    const LONG: Retry = Retry {
        strategy: RetryStrategy::Fixed,
        fixed_delay: Millis(10 * 24 * 60 * 60 * 1000),
        jitter: true,
        ..Retry::STANDARD
    };

    #[test]
    fn delays_double_up_to_the_cap_and_jitter_stays_in_the_upper_half() {
        let retry = Retry { max_retries: 40, ..Retry::STANDARD };
        let delays: Vec<u64> = (1..=11).filter_map(|n| retry.delay(n, 0)).map(|delay| delay.0).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(retry.delay(41, 0), None);
        // The cap limits growth only: a fixed delay is not cut.
        let fixed = Retry { strategy: RetryStrategy::Fixed, fixed_delay: Millis(60_000), ..retry };
        assert_eq!(fixed.delay(1, 0), Some(Millis(60_000)));
        let spread = Retry { jitter: true, ..retry };
        let jittered: Vec<u64> = (0..200).filter_map(|seed| spread.delay(5, seed)).map(|d| d.0).collect();
        assert!(jittered.iter().all(|delay| (800..=1600).contains(delay)), "{jittered:?}");
        assert!(jittered.iter().min() < Some(&900) && jittered.iter().max() > Some(&1500), "{jittered:?}");
        // Jitter has no room in a delay of zero or one millisecond.
        for length in [Millis(0), Millis(1)] {
            let short = Retry { initial_delay: length, ..spread };
            assert!((0..50).all(|seed| short.delay(1, seed) == Some(length)), "{length:?}");
        }
    }
    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first three that it draws when its state begins at zero.
        let drawn = [1, 2, 3].map(|number| mix(0, number));
        assert_eq!(drawn, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn nearly_every_seed_has_a_delay_of_its_own() {
        for shift in [0, 54] {
            for retry in 1..=3 {
                let delays: BTreeSet<Millis> =
                    (0..1000).filter_map(|seed| LONG.delay(retry, seed << shift)).collect();
                assert!(delays.len() > 990, "{} delays, shift {shift}, retry {retry}", delays.len());
            }
        }
    }

    /// When a task with this id is tried again after it failed at once.
    fn tried_again(task: TaskId) -> Option<Timestamp> {
        let mut scheduler = Scheduler::new(1);
        let mut events = Vec::new();
        let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::new("main").unwrap()]);
        spec.retry = Some(LONG);
        scheduler.step(Timestamp(1), Command::Submit { task, spec: Box::new(spec) }, &mut events).unwrap();
        let fence = events.iter().find_map(|event| match event {
            Event::Granted { fence, .. } => Some(*fence),
            _ => None,
        });
        let outcome = Outcome::Failure { error: "no luck".into(), retryable: true };
        let finish = Command::Finish { task, fence: fence.unwrap(), taken: vec![], outcome };
        scheduler.step(Timestamp(1), finish, &mut events).unwrap();
        events.iter().find_map(|event| match event {
            Event::Retrying { at, .. } => Some(*at),
            _ => None,
        })
    }

    #[test]
    fn nearly_every_task_has_a_delay_of_its_own_whichever_half_of_its_id_differs() {
        // All other bits are as they may be in an id, some set and some not.
        let rest = 0x0192_a3b4_c5d6_7e80_9fa1_b2c3_d4e5_f607_u128;
        for shift in [0, 54, 64, 118] {
            let ids = (0..1000_u128).map(|number| TaskId(rest ^ number << shift));
            let times: BTreeSet<Timestamp> = ids.filter_map(tried_again).collect();
            assert!(times.len() > 990, "{} times, shift {shift}", times.len());
        }
    }
}
