//! Moments on the wire: RFC 3339 with milliseconds, in UTC.

use std::fmt;
use std::str::FromStr;

use laneway_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat, schema::KnownFormat};
use utoipa::{PartialSchema, ToSchema};

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub Timestamp);

impl From<Timestamp> for At {
    fn from(at: Timestamp) -> At {
        At(at)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0.0).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{at:.3}")
    }
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

/// A text that is not a moment in the server's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a moment is written as 2026-11-15T12:03:15.042Z")]
pub struct NotAMoment;

impl FromStr for At {
    type Err = NotAMoment;

    /// Reads what [`At`] writes: UTC, a four-digit year, milliseconds or none.
    fn from_str(text: &str) -> Result<At, NotAMoment> {
        let at: jiff::Timestamp = text.parse().map_err(|_| NotAMoment)?;
        // The parser takes other zones and separators too.
        if text != format!("{at:.3}") && text != format!("{at:.0}") {
            return Err(NotAMoment);
        }
        u64::try_from(at.as_millisecond()).map(|millis| At(Timestamp(millis))).map_err(|_| NotAMoment)
    }
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
