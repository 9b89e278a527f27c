//! Size of a filter of the kind `two-choice`, before and after its growth.

use super::super::number::whole;
use super::super::saved_keys::SavedForm;
use super::super::{BLOCK_BYTES, SHARDS, ShardId};
use super::layout::{KeyBits, Layout};

/// Size of a filter of the kind `two-choice`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::filter) struct TwoChoiceSize {
    /// Number of keys of the whole filter at which it begins to grow.
    pub(in crate::filter) capacity: u64,
    /// Number of keys of the whole filter up to which it keeps its error rate.
    pub(in crate::filter) grow_to: u64,
    /// Number of bits of a key in its shard.
    pub(in crate::filter) bits: KeyBits,
    /// True if the keys expire.
    pub(in crate::filter) expires: bool,
}

impl TwoChoiceSize {
    /// Returns the form in which the keys of a shard are saved.
    pub(in crate::filter) fn saved_form(&self) -> SavedForm {
        SavedForm { key_bytes: self.bits.bytes(), expires: self.expires }
    }

    /// Returns the number of slots of an empty shard, or of one with `keys` keys. The shards have
    /// different lengths, so that they do not all grow at the same time.
    pub(in crate::filter) fn slots(&self, shard: ShardId, keys: u64) -> u64 {
        let keys = shard.share(self.capacity).max(keys);
        let stagger = 1.25_f64.powf(shard.index() as f64 / SHARDS as f64);
        whole((keys as f64 / 0.9 * stagger).ceil())
    }

    /// Returns the number of blocks of a full filter with this number of keys.
    pub(in crate::filter) fn blocks_at(&self, keys: u64) -> u64 {
        let slots = (keys.div_ceil(SHARDS as u64) * 10).div_ceil(9);
        Layout::with_slots(slots, self.bits, self.expires).blocks * SHARDS as u64
    }

    /// Returns the number of bytes of a filter with this number of keys. Each shard grows by a
    /// quarter when it is full, at a time of its own, so that of all shards together it has the
    /// mean of the factors between 1 and 5/4.
    pub(in crate::filter) fn bytes_at(&self, keys: u64) -> u64 {
        let mean = 0.25 / 1.25_f64.ln();
        let full = self.blocks_at(keys.max(self.capacity)) * u64::from(BLOCK_BYTES);
        whole(full as f64 * mean)
    }

    /// Returns the error rate of a filter with this number of keys.
    pub(in crate::filter) fn error_rate_at(&self, keys: u64) -> f64 {
        keys as f64 / SHARDS as f64 / self.bits.count()
    }
}
