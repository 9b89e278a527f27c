//! How a filter's bits are divided: into shards, parts and lines.

use super::SHARDS;

/// Bits in a line: one cache line of 64 bytes, the unit that memory is fetched in.
pub const LINE_BITS: u32 = 512;

/// Bytes of a line.
pub const LINE_BYTES: u32 = LINE_BITS / 8;

/// How many lines a key has its bits in, one in each part of its shard. More lines need fewer bits
/// a key and cost more fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lines {
    /// One line: enough down to about 1e-4.
    One,
    /// Two lines: down to 1e-8.
    Two,
    /// Four lines.
    Four,
    /// Eight lines: as good as a filter without lines at 1e-12.
    Eight,
}

impl Lines {
    /// All that sizing chooses from, fewest first.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// The number of lines.
    pub fn get(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The division of a filter's bits: each shard is `lines` equal parts, each part is
/// `lines_per_part` lines, and a key sets `bits_per_line` bits (some may fall together) in one line
/// of each part of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    lines: Lines,
    bits_per_line: u8,
    lines_per_part: u32,
}

impl Geometry {
    /// The most bits that a key may set in one line; with more, lines fill up before they tell keys
    /// apart.
    pub(crate) const MAX_BITS_PER_LINE: u8 = 32;

    /// A geometry as sizing chose it or a kept filter records it; `None` where a count is zero or
    /// out of range.
    pub fn new(lines: Lines, bits_per_line: u8, lines_per_part: u32) -> Option<Self> {
        let possible = (1..=Self::MAX_BITS_PER_LINE).contains(&bits_per_line) && lines_per_part > 0;
        possible.then(|| Self::of(lines, bits_per_line, lines_per_part))
    }

    /// A geometry whose counts are known to be possible.
    pub(super) fn of(lines: Lines, bits_per_line: u8, lines_per_part: u32) -> Self {
        Self { lines, bits_per_line, lines_per_part }
    }

    /// How many lines a key has its bits in.
    pub fn lines(&self) -> Lines {
        self.lines
    }

    /// How many bits a key sets in each of its lines.
    pub fn bits_per_line(&self) -> u8 {
        self.bits_per_line
    }

    /// How many lines each part of a shard has.
    pub fn lines_per_part(&self) -> u32 {
        self.lines_per_part
    }

    /// How many bits a key sets in all: the k of Bloom filters.
    pub fn k(&self) -> u32 {
        self.lines.get() * u32::from(self.bits_per_line)
    }

    /// Lines in a shard.
    pub(crate) fn shard_lines(&self) -> u64 {
        u64::from(self.lines.get()) * u64::from(self.lines_per_part)
    }

    /// Bits in a shard.
    pub fn shard_bits(&self) -> u64 {
        self.shard_lines() * u64::from(LINE_BITS)
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
