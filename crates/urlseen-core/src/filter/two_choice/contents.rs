//! Copy of the contents of a shard.

use std::io::{self, Write};

use super::super::block::Block;
use super::super::local::Blob;
use super::layout::{Key, KeyBits, Word};
use super::layouts::Layouts;
use super::shard::words;

/// Number of keys that are written together.
const PAGE: usize = 8192;

/// Copy of the blocks of a shard. It can be read while the shard is in use.
///
/// It is written as its keys, in any order. A key takes as many bytes as its bits need, the highest
/// ones first.
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
    /// Iterates over all keys.
    pub(in crate::filter) fn iter(&self) -> impl Iterator<Item = Key> {
        let blocks = self.bytes.chunks_exact(size_of::<Block>());
        let keys = self.layouts.live().zip(blocks).flat_map(|((layout, block), bytes)| {
            words(layout, self.bits, block, bytemuck::pod_read_unaligned(bytes)).map(Word::key)
        });
        keys.chain(self.homeless.iter().copied())
    }
}

impl Blob for Contents {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn len(&self) -> u64 {
        self.keys * self.bits.bytes() as u64
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let size = self.bits.bytes();
        let mut page = Vec::with_capacity(PAGE * size);
        for key in self.iter() {
            page.extend_from_slice(&key.get().to_be_bytes()[..size]);
            if page.len() == PAGE * size {
                to.write_all(&page)?;
                page.clear();
            }
        }
        to.write_all(&page)
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        self.bytes
    }
}
