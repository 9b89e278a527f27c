//! Random numbers by SplitMix64 (Steele, Lea and Flood, 2014), and the seeds of random tests.

use std::env;

#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = self.0;
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Returns [`Random::below`] as a function.
    pub(super) fn draw(&mut self) -> impl FnMut(usize) -> usize {
        |bound| self.below(bound)
    }

    /// Returns true in one of `times` calls on average.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Returns the seeds for a random test: `count` of them, or as many as `TEST_SEEDS` says. Only
/// `TEST_SEED` if that is set.
pub(super) fn seeds(count: u64) -> Vec<u64> {
    let number = |name| Some(env::var(name).ok()?.parse().expect("a whole number"));
    match number("TEST_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("TEST_SEEDS").unwrap_or(count)).collect(),
    }
}
