//! Structure of the kind `two-choice`: each key has two blocks, and is stored in one of them.
//!
//! A key of a shard is a number of h bits, which comes from the seeded hash of a fingerprint. It
//! has two *words*: x is the key itself, and y is x · c mod 2^h, for an odd number c. So each word
//! determines the key. In a layout with L blocks, the word w belongs to the block ⌊w L / 2^h⌋. The
//! block stores the next bits of w L / 2^h, the *tag*, together with two bits for the word, x or y.
//! Block and tag determine the word if a tag has at least h − log2 L bits. So a shard has exactly
//! the keys that were inserted. An unseen key counts as seen only if all of its h bits are those of
//! a stored key. The chance is n / 2^h, for n keys in the shard.
//!
//! A new key goes to the block that has more free slots. This is the power of two choices
//! (Azar, Broder, Karlin and Upfal, "Balanced Allocations", 1994). Blocks of ten and more slots are
//! then nearly equally full.
//!
//! A full shard grows to 1.25 times its slots, in place. The words stay, and a larger L moves each
//! word to a higher block. So a pass from the last block to the first one moves the keys of one
//! block after the other, and keys are found in the meantime: words up to a border have the old
//! layout, and words after the border have the new one.
//!
//! If the keys expire, a slot also has three bits for the age of its key (`expiry`).

mod arena;
mod contents;
mod expiry;
pub(crate) mod filter;
mod growth;
mod kernel;
pub(crate) mod kind;
mod layout;
mod shard;
mod slots;

use super::number::whole;
use super::saved_keys::SavedForm;
use super::{BLOCK_BYTES, SHARDS, ShardId};
use layout::Layout;

pub(super) use arena::Arena;
pub(super) use kernel::{Kernel, Kernels, Work};
pub(super) use layout::{Key, KeyBits};
pub(super) use shard::{Probe, Shard};
use slots::Format;

/// Size of a filter of the kind `two-choice`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TwoChoiceSize {
    /// Number of keys of the whole filter at which it begins to grow.
    pub(crate) capacity: u64,
    /// Number of keys of the whole filter up to which it keeps its error rate.
    pub(crate) grow_to: u64,
    /// Number of bits of a key in its shard.
    pub(crate) bits: KeyBits,
    /// True if the keys expire.
    pub(crate) expires: bool,
}

impl TwoChoiceSize {
    /// Returns the form in which the keys of a shard are saved.
    pub(crate) fn saved_form(&self) -> SavedForm {
        SavedForm { key_bytes: self.bits.bytes(), expires: self.expires }
    }

    /// Returns the number of slots of an empty shard, or of one with `keys` keys. The shards have
    /// different lengths, so that they do not all grow at the same time.
    pub(crate) fn slots(&self, shard: ShardId, keys: u64) -> u64 {
        let keys = shard.share(self.capacity).max(keys);
        let stagger = 1.25_f64.powf(shard.index() as f64 / SHARDS as f64);
        whole((keys as f64 / 0.9 * stagger).ceil())
    }

    /// Returns the number of blocks of a full filter with this number of keys.
    pub(crate) fn blocks_at(&self, keys: u64) -> u64 {
        let slots = (keys.div_ceil(SHARDS as u64) * 10).div_ceil(9);
        Layout::with_slots(slots, self.bits, self.expires).blocks * SHARDS as u64
    }

    /// Returns the number of bytes of a filter with this number of keys. Each shard grows by a
    /// quarter when it is full, at a time of its own, so that of all shards together it has the
    /// mean of the factors between 1 and 5/4.
    pub(crate) fn bytes_at(&self, keys: u64) -> u64 {
        let mean = 0.25 / 1.25_f64.ln();
        let full = self.blocks_at(keys.max(self.capacity)) * u64::from(BLOCK_BYTES);
        whole(full as f64 * mean)
    }

    /// Returns the error rate of a filter with this number of keys.
    pub(crate) fn error_rate_at(&self, keys: u64) -> f64 {
        keys as f64 / SHARDS as f64 / self.bits.count()
    }
}
