//! Division of a filter's bits into shards, parts and blocks.

use super::SHARDS;

/// Number of bits of a block. A block is one cache line, the unit in which a processor fetches
/// memory.
pub(crate) const BLOCK_BITS: u32 = 512;

/// Number of bytes of a block.
pub(crate) const BLOCK_BYTES: u32 = BLOCK_BITS / 8;

/// Number of blocks that hold the bits of a key: one block in each part of its shard. With more
/// blocks, a key needs fewer bits but more fetches from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocks {
    /// One block, for error rates down to about 1e-4.
    One = 1,
    /// Two blocks, for error rates down to about 1e-8.
    Two = 2,
    /// Four blocks, for lower error rates.
    Four = 4,
    /// Eight blocks. Even at an error rate of 1e-12, a key needs hardly more bits than in a filter
    /// without blocks.
    Eight = 8,
}

impl Blocks {
    /// All possible numbers of blocks, in ascending order.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// Returns the number of blocks.
    pub(crate) fn get(self) -> u32 {
        self as u32
    }
}

/// Division of a filter's bits. Each shard has `blocks` equal parts, and each part has
/// `blocks_per_part` blocks. A key chooses one block in each part of its shard. In each of its
/// blocks, the key sets `bits_per_block` bits, which may coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    pub(crate) blocks: Blocks,
    pub(crate) bits_per_block: u8,
    pub(crate) blocks_per_part: u32,
}

impl Geometry {
    /// Maximum number of bits that a key sets in one block. With more bits, a few keys would fill a
    /// block.
    pub(crate) const MAX_BITS_PER_BLOCK: u8 = 32;

    /// Creates a geometry. Returns `None` if a count is zero or out of range.
    pub fn new(blocks: Blocks, bits_per_block: u8, blocks_per_part: u32) -> Option<Self> {
        let possible =
            (1..=Self::MAX_BITS_PER_BLOCK).contains(&bits_per_block) && blocks_per_part > 0;
        possible.then_some(Self { blocks, bits_per_block, blocks_per_part })
    }

    /// Returns k, the number of bits that a key sets in all blocks together.
    pub(crate) fn k(&self) -> u32 {
        self.blocks.get() * u32::from(self.bits_per_block)
    }

    /// Returns the number of blocks in a shard.
    pub(crate) fn shard_blocks(&self) -> u64 {
        u64::from(self.blocks.get()) * u64::from(self.blocks_per_part)
    }

    /// Returns the number of bits in a shard.
    pub(crate) fn shard_bits(&self) -> u64 {
        self.shard_blocks() * u64::from(BLOCK_BITS)
    }

    /// Returns m, the number of bits of the whole filter.
    pub(crate) fn bits(&self) -> u64 {
        self.shard_bits() * SHARDS as u64
    }

    /// Returns the memory of the whole filter in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bits() / 8
    }
}
