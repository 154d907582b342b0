//! Chance that is the same each time: numbers from a seed.

/// A stream of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The stream of a seed, told apart from the seed's other streams by `salt`.
    pub(crate) fn new(seed: u64, salt: u64) -> Chance {
        let mut chance = Chance(seed ^ salt.wrapping_mul(0xd605_1f1e_9f7b_4a35));
        chance.next();
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True `part` times of `whole`.
    pub(crate) fn hits(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }
}
