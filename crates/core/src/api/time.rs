//! Time as the core knows it: a number that the caller passes in.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since any fixed origin. The core reads no clock; the caller passes the time in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

/// A length of time in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub u64);

impl Timestamp {
    /// The last moment at which a step can be: the year 2445, if the origin is that of Unix. So neither
    /// nanoseconds nor the sum of a moment and a length ever overflow.
    pub const MAX: Timestamp = Timestamp(15_000_000_000_000);

    /// Later than anything that happens: "no such moment".
    pub const NEVER: Timestamp = Timestamp(u64::MAX);

    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    /// The longest duration that a setting or a task may ask for: ten years.
    pub const MAX: Millis = Millis(10 * 366 * 24 * 3600 * 1000);

    /// A number of whole seconds.
    pub const fn from_secs(secs: u64) -> Millis {
        Millis(secs * 1000)
    }
}

impl Add<Millis> for Timestamp {
    type Output = Timestamp;

    fn add(self, length: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(length.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Millis {
    /// As people write it, and as it can be read again: a whole number of the largest unit that fits.
    pub fn written(self) -> String {
        const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
        let unit = UNITS.iter().find(|(length, _)| self.0 > 0 && self.0.is_multiple_of(*length));
        unit.map_or_else(|| self.to_string(), |(length, unit)| format!("{}{unit}", self.0 / length))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
