//! Where a fingerprint's bits are when they lie in Redis.

use super::layout::native::Native;
use super::layout::{BitStrings, Position, Unplaced};
use super::{SHARDS, ShardId};
use crate::fingerprint::Fingerprint;

/// The Redis strings of one filter, of whatever layout, and the bits in them that a fingerprint has.
#[derive(Debug)]
pub struct Strings {
    base: String,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    /// A string for each shard, byte for byte as [`Shards::bytes`](super::Shards::bytes) has it.
    Native(Native),
    /// As another project has them.
    Peer(Box<dyn BitStrings + Send + Sync>),
}

impl Strings {
    /// The strings of this program's own layout: `base`, a colon, and the shard in hex.
    pub fn native(base: &str, native: Native) -> Self {
        Self { base: base.to_owned(), layout: Layout::Native(native) }
    }

    /// The strings of another project's layout.
    pub fn peer(base: &str, layout: impl BitStrings + Send + Sync + 'static) -> Self {
        Self { base: base.to_owned(), layout: Layout::Peer(Box::new(layout)) }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        match &self.layout {
            Layout::Native(_) => SHARDS as u32,
            Layout::Peer(layout) => layout.strings(),
        }
    }

    /// The Redis key of one of them.
    pub fn key(&self, string: u32) -> String {
        match &self.layout {
            Layout::Native(_) => format!("{}:{string:02x}", self.base),
            Layout::Peer(layout) => layout.key(&self.base, string),
        }
    }

    /// The length in bytes that it grows to.
    pub fn max_bytes(&self, string: u32) -> u64 {
        match &self.layout {
            Layout::Native(native) => native.geometry().bytes() / SHARDS as u64,
            Layout::Peer(layout) => layout.max_bytes(string),
        }
    }

    /// How many bits a fingerprint has, some of which may be the same.
    pub fn width(&self) -> u32 {
        match &self.layout {
            Layout::Native(native) => native.geometry().k(),
            Layout::Peer(layout) => layout.hashes(),
        }
    }

    /// Appends the fingerprint's positions, all in one string or not.
    ///
    /// # Errors
    /// The layout has no place for it. Nothing is appended then.
    pub fn push_positions(
        &self,
        fingerprint: &Fingerprint,
        positions: &mut Vec<Position>,
    ) -> Result<(), Unplaced> {
        match &self.layout {
            Layout::Native(native) => {
                let probe = native.probe(fingerprint);
                let string = ShardId::index(probe.shard()) as u32;
                positions.extend(
                    native.positions(probe).map(|bit| Position { string, bit: redis_order(bit) }),
                );
                Ok(())
            }
            // Other projects hash the hex digits.
            Layout::Peer(layout) => {
                layout.push_positions(fingerprint.to_string().as_bytes(), positions)
            }
        }
    }
}

/// Redis counts bits from the highest of a byte on, a line's words are little endian: the bytes are
/// the same, in each the bits are counted from the other end.
fn redis_order(bit: u64) -> u32 {
    (bit ^ 7) as u32
}
