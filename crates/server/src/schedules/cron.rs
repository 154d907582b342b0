//! The moments at which a schedule fires: cron fields in a time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Why the times of a schedule are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// The time zone is unknown.
    #[error("timezone must be a name such as Europe/Berlin or UTC")]
    TimeZone,
    /// The fields are invalid.
    #[error("cron must be five or six fields such as \"0 9 * * 1-5\", or @hourly, @daily, @weekly, @monthly")]
    Fields,
    /// The schedule would never fire.
    #[error("cron names a moment that never comes")]
    Never,
}

/// The moments of a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    cron: Cron,
    zone: TimeZone,
}

impl Times {
    /// Reads five or six fields, or a word such as `@daily`. Refuses times that never come.
    pub(crate) fn read(cron: &str, zone: &str) -> Result<Times, CronError> {
        let zone = TimeZone::get(zone).map_err(|_| CronError::TimeZone)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        // The parser accepts an empty list, which no moment matches, and would search for seconds.
        let has_gap = cron.split_whitespace().flat_map(|field| field.split(',')).any(str::is_empty);
        // A seventh field would be years.
        let is_long = cron.split_whitespace().count() > 6;
        let cron = Some(cron)
            .filter(|_| !has_gap && !is_long)
            .and_then(|cron| parser.parse(cron).ok())
            .ok_or(CronError::Fields)?;
        let times = Times { cron, zone };
        if times.after(Timestamp::now()).is_none() {
            return Err(CronError::Never);
        }
        Ok(times)
    }

    /// The times in words.
    pub(crate) fn words(&self) -> String {
        let words = self.cron.describe();
        let words = words.trim_end_matches('.');
        words.strip_prefix("At every").map_or_else(|| words.to_owned(), |rest| format!("Every{rest}"))
    }

    /// The first moment after this one. A moment that a clock change skips does not fire the next one twice.
    pub(crate) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let from: Zoned = at.to_zoned(self.zone.clone());
        let next: Zoned = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(next.timestamp()).filter(|next| *next > at)
    }

    /// The last moment after `after` and not after `now`, in bounded time.
    pub(super) fn latest(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let first = self.after(after).filter(|first| *first <= now)?;
        let from: Zoned = now.to_zoned(self.zone.clone());
        let previous = self.cron.find_previous_occurrence(&from, true).ok().map(|at: Zoned| at.timestamp());
        Some(previous.filter(|at| *at >= first && *at <= now).unwrap_or(first))
    }
}

/// A moment as milliseconds since 1970.
pub(crate) fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// A moment from milliseconds since 1970.
pub(super) fn moment(millis: u64) -> Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_str(text).unwrap()
    }

    fn next(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let times = Times::read(cron, zone).unwrap();
        let mut now = at(from);
        let mut found = Vec::new();
        for _ in 0..count {
            now = times.after(now).unwrap();
            found.push(now.to_string());
        }
        found
    }

    #[test]
    fn a_clock_change_neither_skips_a_day_nor_doubles_it() {
        assert_eq!(
            next("0 9 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]
        );
        // 02:30 happens twice on that night.
        let twice = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3);
        assert_eq!(twice[1], "2026-10-26T01:30:00Z");
        // 02:30 does not happen on that one.
        let never = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(never[1], "2026-03-30T00:30:00Z");
    }

    #[test]
    fn a_pattern_is_told_in_words() {
        for (cron, words) in [
            ("*/20 * * * * *", "Every 20 seconds"),
            ("@hourly", "At minute 0 past every hour"),
            ("30 23 L * *", "At 23:30, on the last day of the month"),
        ] {
            assert_eq!(Times::read(cron, "UTC").unwrap().words(), words, "{cron}");
        }
    }

    #[test]
    fn nonsense_and_what_never_fires_are_refused() {
        for (cron, zone) in [
            ("0 0 31 2 *", "UTC"),
            ("61 * * * *", "UTC"),
            ("", "UTC"),
            ("* * *", "UTC"),
            ("* * * * * * *", "UTC"),
            (", * * * *", "UTC"),
            ("0 1,,2 * * *", "UTC"),
            ("0 9 * * 1,", "UTC"),
            ("0 9 * * *", "Mars/One"),
        ] {
            assert!(Times::read(cron, zone).is_err(), "{cron} in {zone}");
        }
        assert!(Times::read("@daily", "UTC").is_ok());
        assert!(Times::read("*/5 * * * * *", "UTC").is_ok());
    }

    #[test]
    fn however_many_were_missed_the_latest_is_found_at_once() {
        let times = Times::read("*/5 * * * * *", "UTC").unwrap();
        let (long_ago, now) = (at("2001-01-01T00:00:00Z"), at("2026-11-15T12:00:03Z"));
        assert_eq!(times.latest(long_ago, now), Some(at("2026-11-15T12:00:00Z")));
        assert_eq!(times.latest(now, now), None);
    }
}
