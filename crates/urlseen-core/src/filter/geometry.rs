//! How a filter's bits are divided: into shards, parts and blocks.

use super::SHARDS;

/// Bits in a block: one cache line of 64 bytes, the unit that memory is fetched in.
pub const BLOCK_BITS: u32 = 512;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = BLOCK_BITS / 8;

/// Number of blocks that a key has its bits in, one in each part of its shard. More blocks need
/// fewer bits a key and cost more fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocks {
    /// One block: enough down to about 1e-4.
    One,
    /// Two blocks: down to 1e-8.
    Two,
    /// Four blocks.
    Four,
    /// Eight blocks: as good as a filter without blocks at 1e-12.
    Eight,
}

impl Blocks {
    /// All that sizing chooses from, fewest first.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// The number of blocks.
    pub fn get(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The division of a filter's bits: each shard is `blocks` equal parts, each part is
/// `blocks_per_part` blocks, and a key sets `bits_per_block` bits (some may fall together) in one
/// block of each part of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    blocks: Blocks,
    bits_per_block: u8,
    blocks_per_part: u32,
}

impl Geometry {
    /// The most bits that a key may set in one block; with more, blocks fill up before they tell
    /// keys apart.
    pub(crate) const MAX_BITS_PER_BLOCK: u8 = 32;

    /// A geometry as sizing chose it or a kept filter records it; `None` where a count is zero or
    /// out of range.
    pub fn new(blocks: Blocks, bits_per_block: u8, blocks_per_part: u32) -> Option<Self> {
        let possible =
            (1..=Self::MAX_BITS_PER_BLOCK).contains(&bits_per_block) && blocks_per_part > 0;
        possible.then(|| Self::of(blocks, bits_per_block, blocks_per_part))
    }

    /// A geometry whose counts are known to be possible.
    pub(super) fn of(blocks: Blocks, bits_per_block: u8, blocks_per_part: u32) -> Self {
        Self { blocks, bits_per_block, blocks_per_part }
    }

    /// How many blocks a key has its bits in.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// How many bits a key sets in each of its blocks.
    pub fn bits_per_block(&self) -> u8 {
        self.bits_per_block
    }

    /// How many blocks each part of a shard has.
    pub fn blocks_per_part(&self) -> u32 {
        self.blocks_per_part
    }

    /// How many bits a key sets in all: the k of Bloom filters.
    pub fn k(&self) -> u32 {
        self.blocks.get() * u32::from(self.bits_per_block)
    }

    /// Blocks in a shard.
    pub(crate) fn shard_blocks(&self) -> u64 {
        u64::from(self.blocks.get()) * u64::from(self.blocks_per_part)
    }

    /// Bits in a shard.
    pub fn shard_bits(&self) -> u64 {
        self.shard_blocks() * u64::from(BLOCK_BITS)
    }

    /// Bits in the whole filter: the m of Bloom filters.
    pub fn bits(&self) -> u64 {
        self.shard_bits() * SHARDS as u64
    }

    /// Bytes that the whole filter takes in memory.
    pub fn bytes(&self) -> u64 {
        self.bits() / 8
    }
}
