//! Snapshot: the filter, shard by shard, and the position of each shard.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenS"
//!  8      4  format of the folder, 5
//! 12      8  id of the filter
//! 20      8  number of shards: 256, or 1 if the filter is in one piece
//! 28      8  time at which it was begun, in milliseconds since 1970
//! 36      4  CRC-32C of bytes 0 to 35
//! 40         sections, by shard
//!
//! a section
//!  0      1  shard
//!  1     24  number, seq and commit_id of the last record in it
//! 25      8  keys
//! 33      8  n, the bytes of the body; 0 if the shard is empty
//! 41      4  CRC-32C of bytes 0 to 40
//! 45      n  body: the shard as its kind saves it
//! 45+n    4  CRC-32C of the body
//!
//! after the shards, two more sections: shard 0, and the number of their elements as keys
//! counts      the counts of limits: for each group its hash (16 bytes) and its count (8 bytes)
//! tombstones  forgotten fingerprints: for each the shard (1 byte) and its key hash (16 bytes)
//!
//! after the sections
//!  0     24  first: the lowest position of any section; replay starts after it
//! 24     24  last: the highest
//! 48      8  time at which it was finished, in milliseconds since 1970
//! 56     16  moment by which the filter had reached `last`: id of the boot of the machine, and
//!            milliseconds since the boot
//! 72      1  1 if a history begins with it, and nothing older counts; else 0
//! 73      4  CRC-32C of bytes 0 to 72
//! ```
//!
//! A kind saves a shard as
//!
//! ```text
//! native       its bits as little endian words of 64, bit b of the shard being bit b % 64 of word
//!              b / 64
//! redisbloom   all of the filter, as `redisbloom::dump` writes it
//! ```
//!
//! The name of the file is `snapshot-` and the seq of the last position in 20 digits. The file has
//! another name until it is complete. So a file with this name is complete, unless it was damaged.

mod reader;
mod sections;

pub use reader::Summary;
pub(super) use reader::{Snapshot, Snapshots};
pub use sections::Sections;
pub(super) use sections::empty;

use super::encoding::POSITION;
use crate::limit::Counted;
use crate::storage::head::Position;

const MAGIC: &[u8; 8] = b"urlseenS";
const PREFIX: &str = "snapshot-";

/// Bytes before the sections.
const HEADER: usize = 40;
/// Number of bytes of a section before its body.
const SECTION: usize = 21 + POSITION;
/// Number of bytes of a section after its body.
const SECTION_END: usize = 4;
/// Bytes after the sections.
const TRAILER: usize = 2 * POSITION + 29;
/// Number of bytes of a tombstone.
const TOMBSTONE: usize = 17;
/// Number of bytes of each element in the two sections after the shards.
const EXTRA: [usize; 2] = [Counted::BYTES, TOMBSTONE];
/// Bytes of a snapshot of an empty filter, with many shards and with one.
pub(super) const EMPTY: [u64; 2] = [empty_size(crate::filter::SHARDS), empty_size(1)];

const fn empty_size(shards: usize) -> u64 {
    (HEADER + (shards + EXTRA.len()) * (SECTION + SECTION_END) + TRAILER) as u64
}

/// Extends `span` by one more shard at `at`. A span is the lowest and the highest position of the
/// shards so far; `None` before the first shard.
fn extended(span: Option<(Position, Position)>, at: Position) -> (Position, Position) {
    let (first, last) = span.unwrap_or((at, at));
    let first = if at.number < first.number { at } else { first };
    (first, if at.number > last.number { at } else { last })
}

/// Returns the name of the snapshot whose last position has this seq.
pub(super) fn name(seq: u64) -> String {
    format!("{PREFIX}{seq:020}")
}

/// Returns the seq in the name of a snapshot. `None` for the name of any other file.
pub(super) fn seq(name: &str) -> Option<u64> {
    let seq = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(seq) == name).then_some(seq)
}
