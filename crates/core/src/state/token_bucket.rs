//! Rate limits.

use serde::{Deserialize, Serialize};

use crate::api::lane_settings::RateLimit;
use crate::api::time::Timestamp;

/// A token bucket by the generic cell rate algorithm: one moment says it all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// When it will be full again, in nanoseconds.
    full_at: u64,
}

const NANOS: u64 = 1_000_000;

impl Bucket {
    /// What one grant costs, and how far ahead of the clock the bucket may be.
    fn cost_and_reach(rate: RateLimit) -> (u64, u64) {
        let period = rate.per.millis().0 * NANOS;
        let cost = (period / u64::from(rate.max)).max(1);
        (cost, period.saturating_sub(cost))
    }

    /// Pays for `grants` at once, or returns when that is possible. A full bucket pays for more than it holds and owes
    /// the rest.
    pub fn take(&mut self, now: Timestamp, rate: RateLimit, grants: u32) -> Result<(), Timestamp> {
        let period = rate.per.millis().0 * NANOS;
        let price = (u128::from(period) * u128::from(grants)).div_ceil(u128::from(rate.max.max(1)));
        let price = u64::try_from(price).unwrap_or(u64::MAX);
        let now = now.0.saturating_mul(NANOS);
        let full_at = self.full_at.max(now).saturating_add(price);
        let reach = period.max(price);
        if full_at > now.saturating_add(reach) {
            return Err(Timestamp(full_at.saturating_sub(reach).div_ceil(NANOS)));
        }
        self.full_at = full_at;
        Ok(())
    }

    /// When a grant may next be paid for.
    pub(crate) fn ready_at(self, rate: RateLimit) -> Timestamp {
        let (_, reach) = Bucket::cost_and_reach(rate);
        Timestamp(self.full_at.saturating_sub(reach).div_ceil(NANOS))
    }

    pub(crate) fn pay(&mut self, now: Timestamp, rate: RateLimit) {
        let (cost, _) = Bucket::cost_and_reach(rate);
        self.full_at = self.full_at.max(now.0.saturating_mul(NANOS)).saturating_add(cost);
    }

    /// How many grants can be paid for now.
    pub(crate) fn tokens(self, now: Timestamp, rate: RateLimit) -> u32 {
        let (cost, reach) = Bucket::cost_and_reach(rate);
        let ahead = self.full_at.saturating_sub(now.0.saturating_mul(NANOS));
        let tokens = reach.checked_sub(ahead).map_or(0, |left| left / cost + 1);
        u32::try_from(tokens).unwrap_or(u32::MAX).min(rate.max)
    }

    /// Takes over a changed rate. The bucket owes the same number of grants at the new cost, but never more than a whole
    /// bucket. Without a rate it owes nothing.
    pub(crate) fn change_rate(&mut self, now: Timestamp, old: Option<RateLimit>, new: Option<RateLimit>) {
        let ahead = self.full_at.saturating_sub(now.0.saturating_mul(NANOS));
        let (Some(old), Some(new), true) = (old, new, ahead > 0) else {
            *self = Bucket::default();
            return;
        };
        let ((old_cost, _), (cost, _)) = (Bucket::cost_and_reach(old), Bucket::cost_and_reach(new));
        let owed = (u128::from(ahead) * u128::from(cost)).div_ceil(u128::from(old_cost));
        let most = u128::from(cost) * u128::from(new.max);
        self.full_at = now.0.saturating_mul(NANOS).saturating_add(owed.min(most) as u64);
    }

    /// Whether there is nothing left to remember.
    #[inline]
    pub(super) fn is_full(self, now: Timestamp) -> bool {
        self.full_at <= now.0.saturating_mul(NANOS)
    }

    /// When there will be nothing left to remember.
    pub(crate) fn full_at(self) -> Timestamp {
        Timestamp(self.full_at.div_ceil(NANOS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::lane_settings::Period;
    use crate::api::time::Millis;

    #[test]
    fn the_whole_burst_is_there_after_a_rest_and_then_one_token_at_a_time() {
        let rate = RateLimit { per: Period::Minute, max: 60 };
        let mut bucket = Bucket::default();
        for _ in 0..60 {
            assert!(bucket.ready_at(rate) <= Timestamp(500_000));
            bucket.pay(Timestamp(500_000), rate);
        }
        assert_eq!(bucket.ready_at(rate), Timestamp(501_000));
        let tokens =
            [500_000, 500_999, 501_000, 505_500, 900_000].map(|now| bucket.tokens(Timestamp(now), rate));
        assert_eq!(tokens, [0, 0, 1, 5, 60]);
        assert_eq!(bucket.full_at(), Timestamp(560_000));
    }

    #[test]
    fn many_are_paid_for_at_once_or_not_at_all_and_more_than_a_bucket_by_a_full_one() {
        let rate = RateLimit { per: Period::Minute, max: 60 };
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(Timestamp(0), rate, 60), Ok(()));
        assert_eq!(bucket.take(Timestamp(0), rate, 1), Err(Timestamp(1000)));
        assert_eq!(bucket.take(Timestamp(999), rate, 1), Err(Timestamp(1000)));
        assert_eq!(bucket.take(Timestamp(1000), rate, 1), Ok(()));
        assert_eq!(bucket.take(Timestamp(1000), rate, 1000), Err(Timestamp(61_000)));
        assert_eq!(bucket.take(Timestamp(61_000), rate, 1000), Ok(()));
        assert_eq!(bucket.take(Timestamp(61_000), rate, 1), Err(Timestamp(61_000 + 941_000)));
        assert_eq!(bucket.take(Timestamp(61_000), rate, 0), Err(Timestamp(61_000 + 940_000)));
        // Paying one by one follows the rule for lanes.
        let (mut by_one, mut of_lane) = (Bucket::default(), Bucket::default());
        for now in (0..200_000).step_by(333).map(Timestamp) {
            let is_ready = of_lane.ready_at(rate) <= now;
            assert_eq!(by_one.take(now, rate, 1).is_ok(), is_ready, "{now:?}");
            if is_ready {
                of_lane.pay(now, rate);
            }
        }
    }

    #[test]
    fn what_is_owed_stays_the_same_number_when_the_rate_changes() {
        let hourly = RateLimit { per: Period::Hour, max: 10 };
        let faster = RateLimit { per: Period::Second, max: 5 };
        let now = Timestamp(7_200_000);
        let mut owing = Bucket::default();
        (0..3).for_each(|_| owing.pay(now, hourly));
        let mut bucket = owing;
        bucket.change_rate(now, Some(hourly), Some(faster));
        assert_eq!((bucket.tokens(now, faster), bucket.full_at()), (2, Timestamp(7_200_600)));
        bucket.change_rate(now, Some(faster), Some(hourly));
        assert_eq!(bucket, owing);
        let tight = RateLimit { per: Period::Minute, max: 2 };
        bucket.change_rate(now, Some(hourly), Some(tight));
        assert_eq!((bucket.ready_at(tight), bucket.full_at()), (now + Millis(30_000), now + Millis(60_000)));
        bucket.change_rate(now, Some(tight), None);
        assert_eq!(bucket, Bucket::default());
    }

    #[test]
    fn numbers_that_do_not_divide_are_never_rounded_in_the_caller_s_favour() {
        let rate = RateLimit { per: Period::Second, max: 3 };
        let mut bucket = Bucket::default();
        let mut granted = 0;
        for now in 0..10_000 {
            while bucket.ready_at(rate) <= Timestamp(now) {
                bucket.pay(Timestamp(now), rate);
                granted += 1;
            }
        }
        assert!((30..=32).contains(&granted), "{granted}");
    }
}
