//! Moments as clients see them: RFC 3339 with milliseconds, in UTC.

use std::fmt;
use std::str::FromStr;

use laneway_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat, schema::KnownFormat};
use utoipa::{PartialSchema, ToSchema};

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub Timestamp);

impl From<Timestamp> for At {
    fn from(at: Timestamp) -> At {
        At(at)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, millis) = (self.0.0 / 1000, self.0.0 % 1000);
        let (days, secs) = (secs / 86_400, secs % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (secs / 3600, secs / 60 % 60, secs % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// The date that lies so many days after 1970-01-01, counted in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// A text that is no moment as the server writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMoment;

impl fmt::Display for NotAMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a moment is written as 2026-11-15T12:03:15.042Z")
    }
}

impl std::error::Error for NotAMoment {}

impl FromStr for At {
    type Err = NotAMoment;

    /// Reads what [`At`] writes: UTC, a four-digit year, milliseconds or none.
    fn from_str(text: &str) -> Result<At, NotAMoment> {
        let (date, time) = text.strip_suffix('Z').and_then(|text| text.split_once('T')).ok_or(NotAMoment)?;
        let (time, millis) = time.split_once('.').unwrap_or((time, "000"));
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        let [millis] = numbers(millis, '.', [3])?;
        let is_time = hour < 24 && minute < 60 && second < 60;
        if !is_time || year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(NotAMoment);
        }
        let days = days_since_1970(year, month, day);
        // A day that the month does not have would be one of the next month.
        if civil(days) != (year, month, day) {
            return Err(NotAMoment);
        }
        Ok(At(Timestamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)))
    }
}

/// Numbers of so many digits each, with one sign between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Result<[u64; N], NotAMoment> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (found, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().ok_or(NotAMoment)?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAMoment);
        }
        *found = part.parse().map_err(|_| NotAMoment)?;
    }
    if parts.next().is_some() { Err(NotAMoment) } else { Ok(found) }
}

/// The other way round than [`civil`].
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl PartialSchema for At {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(utoipa::openapi::Type::String).format(Some(format)).into()
    }
}

impl ToSchema for At {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_rfc_3339() {
        let samples = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_794_744_195_042, "2026-11-15T12:03:15.042Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (millis, text) in samples {
            assert_eq!(At(Timestamp(millis)).to_string(), text);
            assert_eq!(text.parse(), Ok(At(Timestamp(millis))));
        }
    }

    #[test]
    fn what_is_no_moment_is_not_read_as_one() {
        let samples = [
            "",
            "2026-11-15",
            "2026-11-15T12:03:15.042",
            "2026-11-15T12:03:15.042+01:00",
            "2026-11-15T24:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-02-29T00:00:00.000Z",
            "2026-1-01T00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "+026-11-15T12:03:15.042Z",
            "2026-11-15T12:03:15:16.042Z",
        ];
        for text in samples {
            assert_eq!(text.parse::<At>(), Err(NotAMoment), "{text}");
        }
    }
}
