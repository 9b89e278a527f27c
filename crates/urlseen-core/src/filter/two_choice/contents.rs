//! Copy of the contents of a shard.

use super::super::block::Block;
use super::layout::{Key, KeyBits, Word};
use super::layouts::Layouts;
use super::shard::words;

/// Copy of the blocks of a shard. It can be read while the shard is in use.
#[derive(Debug)]
pub(in crate::filter) struct Contents {
    pub(super) bits: KeyBits,
    pub(super) keys: u64,
    pub(super) layouts: Layouts,
    /// The live blocks, in order.
    pub(super) bytes: Vec<u8>,
    pub(super) homeless: Vec<Key>,
}

impl Contents {
    /// Returns the number of keys.
    pub(in crate::filter) fn keys(&self) -> u64 {
        self.keys
    }

    /// Iterates over all keys.
    pub(in crate::filter) fn iter(&self) -> impl Iterator<Item = Key> {
        let blocks = self.bytes.chunks_exact(size_of::<Block>());
        let keys = self.layouts.live().zip(blocks).flat_map(|((layout, block), bytes)| {
            words(layout, self.bits, block, bytemuck::pod_read_unaligned(bytes)).map(Word::key)
        });
        keys.chain(self.homeless.iter().copied())
    }

    /// Returns the memory of the copy, to be reused.
    pub(in crate::filter) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}
