//! Numbers that identify things.

use std::fmt;
use std::num::NonZeroU128;

use serde::{Deserialize, Serialize};

/// Identifies a task for ever. The caller chooses it (a UUIDv7, say); the core refuses one that is in use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u128);

/// Points at a task's payload, which lives in the store and never in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobId(pub NonZeroU128);

/// Fences one attempt at a task: a worker that lost its lease cannot finish the next attempt.
///
/// Fences grow strictly over all attempts of all tasks of one scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence(pub u64);

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {:x}", self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By hand, because each request writes ids, some of them several times.
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let places = (0..36).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
        for (number, place) in places.enumerate() {
            text[place] = DIGITS[(self.0 >> (124 - 4 * number)) as usize & 15];
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_uuids() {
        let id = TaskId(0x0193_2b5e_0000_7fff_8abc_0123_4567_89ef);
        assert_eq!(id.to_string(), "01932b5e-0000-7fff-8abc-0123456789ef");
        assert_eq!(TaskId(1).to_string(), "00000000-0000-0000-0000-000000000001");
        assert_eq!(TaskId(u128::MAX).to_string(), "ffffffff-ffff-ffff-ffff-ffffffffffff");
    }
}
