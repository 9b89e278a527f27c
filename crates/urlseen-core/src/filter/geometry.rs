//! Division of a filter's bits into shards, parts and blocks.

use super::SHARDS;

/// Bits of a block. A block is one cache line, the unit in which a processor fetches memory.
pub const BLOCK_BITS: u32 = 512;

/// Bytes that a block takes.
pub const BLOCK_BYTES: u32 = BLOCK_BITS / 8;

/// Number of blocks that a key has its bits in, one in each part of its shard. More blocks need
/// fewer bits a key and cost more fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocks {
    /// One block: enough down to about 1e-4.
    One,
    /// Two blocks: down to 1e-8.
    Two,
    /// Four blocks: down to lower rates.
    Four,
    /// Eight blocks: as good as a filter without blocks at 1e-12.
    Eight,
}

impl Blocks {
    /// All numbers of blocks that sizing chooses from, fewest first.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// Returns the number of blocks.
    pub fn get(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The division of a filter's bits. Each shard has `blocks` equal parts, and each part has
/// `blocks_per_part` blocks. A key sets `bits_per_block` bits, which may coincide, in one block of
/// each part of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    blocks: Blocks,
    bits_per_block: u8,
    blocks_per_part: u32,
}

impl Geometry {
    /// Most bits that a key may set in one block. With more, blocks fill up before they tell keys
    /// apart.
    pub(crate) const MAX_BITS_PER_BLOCK: u8 = 32;

    /// Checks the counts of a geometry. Returns `None` if one is zero or out of range.
    pub fn new(blocks: Blocks, bits_per_block: u8, blocks_per_part: u32) -> Option<Self> {
        let possible =
            (1..=Self::MAX_BITS_PER_BLOCK).contains(&bits_per_block) && blocks_per_part > 0;
        possible.then(|| Self::of(blocks, bits_per_block, blocks_per_part))
    }

    /// Builds a geometry whose counts are known to be possible.
    pub(super) fn of(blocks: Blocks, bits_per_block: u8, blocks_per_part: u32) -> Self {
        Self { blocks, bits_per_block, blocks_per_part }
    }

    /// Returns the number of blocks that a key has its bits in.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Returns the number of bits that a key sets in each of its blocks.
    pub fn bits_per_block(&self) -> u8 {
        self.bits_per_block
    }

    /// Returns the number of blocks in each part of a shard.
    pub fn blocks_per_part(&self) -> u32 {
        self.blocks_per_part
    }

    /// Returns the number of bits that a key sets in all: the k of Bloom filters.
    pub fn k(&self) -> u32 {
        self.blocks.get() * u32::from(self.bits_per_block)
    }

    /// Returns the number of blocks in a shard.
    pub(crate) fn shard_blocks(&self) -> u64 {
        u64::from(self.blocks.get()) * u64::from(self.blocks_per_part)
    }

    /// Returns the number of bits in a shard.
    pub fn shard_bits(&self) -> u64 {
        self.shard_blocks() * u64::from(BLOCK_BITS)
    }

    /// Returns the number of bits in the whole filter: the m of Bloom filters.
    pub fn bits(&self) -> u64 {
        self.shard_bits() * SHARDS as u64
    }

    /// Returns the bytes of memory that the whole filter takes.
    pub fn bytes(&self) -> u64 {
        self.bits() / 8
    }
}
