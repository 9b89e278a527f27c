//! Numbers of each shard of a filter, for all threads.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{KeyHash, SHARDS};

/// Numbers of each shard of a filter. All threads can read them.
#[derive(Debug)]
pub(crate) struct Shown<const N: usize>(Vec<[AtomicU64; N]>);

impl<const N: usize> Default for Shown<N> {
    fn default() -> Self {
        let zeros = || array::from_fn(|_| AtomicU64::new(0));
        Self(std::iter::repeat_with(zeros).take(SHARDS).collect())
    }
}

impl<const N: usize> Shown<N> {
    /// Shows all shards. `numbers` returns the numbers of the shard with this index.
    pub(crate) fn show(&self, numbers: impl Fn(usize) -> [u64; N]) {
        (0..SHARDS).for_each(|shard| self.set(shard, numbers(shard)));
    }

    /// Shows the shards of these keys, after a change of these shards alone.
    pub(crate) fn show_shards_of(
        &self,
        key_hashes: &[KeyHash],
        numbers: impl Fn(usize) -> [u64; N],
    ) {
        if key_hashes.len() >= SHARDS {
            return self.show(numbers);
        }
        for shard in key_hashes.iter().map(|it| it.shard().index()) {
            self.set(shard, numbers(shard));
        }
    }

    fn set(&self, shard: usize, numbers: [u64; N]) {
        for (shown, number) in self.0[shard].iter().zip(numbers) {
            shown.store(number, Ordering::Relaxed);
        }
    }

    /// Iterates over the numbers of the shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = [u64; N]> {
        self.0.iter().map(|shard| shard.each_ref().map(|number| number.load(Ordering::Relaxed)))
    }

    /// Returns the sums of the numbers of all shards.
    pub(crate) fn sums(&self) -> [u64; N] {
        self.shards().fold([0; N], |sums, shard| array::from_fn(|it| sums[it] + shard[it]))
    }
}
