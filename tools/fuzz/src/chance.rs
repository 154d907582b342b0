//! Chance that follows from a seed.

/// SplitMix64: the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The numbers that follow from `seed`.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `limit`, without `limit`; 0 if there is no room.
    pub fn below(&mut self, limit: usize) -> usize {
        match limit {
            0 => 0,
            limit => (self.number() % limit as u64) as usize,
        }
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these, if there are any.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// A piece of these bytes, no longer than `most`.
    pub fn piece<'a>(&mut self, of: &'a [u8], most: usize) -> &'a [u8] {
        let from = self.below(of.len() + 1);
        let to = (from + self.below(most + 1)).min(of.len());
        &of[from..to]
    }
}
