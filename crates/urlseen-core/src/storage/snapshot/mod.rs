//! A snapshot: the filter, shard by shard, and where each shard stood.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenS"
//!  8      4  format of the folder, 3
//! 12      8  id of the filter
//! 20      8  bytes of a shard
//! 28      8  when it was begun, in milliseconds since 1970
//! 36      4  CRC-32C of bytes 0 to 35
//! 40         256 sections, by shard
//!
//! a section
//!  0      1  shard
//!  1      1  1 if no bit is set, else 0
//!  2     24  where it stands: number, seq, commit_id of the last record it holds
//! 26      8  keys
//! 34      8  bits that are set
//! 42      4  CRC-32C of the body
//! 46      4  CRC-32C of bytes 0 to 45
//! 50         body: the shard's bits as little endian words of 64, bit b of the shard being bit
//!            b % 64 of word b / 64; absent where none is set
//!
//! behind them, what was forgotten and has not passed again
//!  0    17n  by fingerprint: its shard, and the 128 bits that the layout makes of it
//! 17n     8  n
//!  +8     4  CRC-32C of all that
//!
//! behind that
//!  0     24  first: the lowest position of any shard; replay starts behind it
//! 24     24  last: the highest
//! 48      8  when it was finished, in milliseconds since 1970
//! 56      1  1 if a history begins with it: nothing that is older counts; else 0
//! 57      4  CRC-32C of bytes 0 to 56
//! ```
//!
//! A filter of RedisBloom is in one piece. Its snapshots have the format 4, no bytes of a
//! shard, and in the place of the sections:
//!
//! ```text
//!  0     24  where it stands
//! 24      8  fingerprints in it
//! 32      8  bits that are set
//! 40      8  n, the bytes of the body; 0 if nothing was ever added
//! 48      4  CRC-32C of bytes 0 to 47
//! 52      n  body: the filter as `redisbloom::dump` writes it, which has CRCs of its own
//! ```
//!
//! It is called `snapshot-` and the seq of its last position in 20 digits. While it is written, it
//! is called otherwise, so one that has that name is whole unless it was damaged.

mod reader;
mod sections;
mod whole;

pub(super) use reader::{Snapshots, Summary};
pub(super) use sections::{Role, Sections, empty};

use super::encoding::POSITION;

const MAGIC: &[u8; 8] = b"urlseenS";
const PREFIX: &str = "snapshot-";

/// Bytes before the sections.
const HEADER: usize = 40;
/// Bytes of a section before its body.
const SECTION: usize = 26 + POSITION;
/// Bytes behind the sections.
const TRAILER: usize = 2 * POSITION + 13;
/// Bytes of a fingerprint that was forgotten, and behind all of them.
const TOMBSTONE: usize = 17;
const TOMBSTONES_END: usize = 12;
/// Bytes before the body of a filter in one piece.
const WHOLE: usize = 28 + POSITION;
/// Bytes of a snapshot without a bit, in either format.
pub(super) const EMPTY: [u64; 2] = [
    (HEADER + crate::filter::SHARDS * SECTION + TOMBSTONES_END + TRAILER) as u64,
    (HEADER + WHOLE + TOMBSTONES_END + TRAILER) as u64,
];

/// The name of the snapshot whose last position has this seq.
pub(super) fn name(seq: u64) -> String {
    format!("{PREFIX}{seq:020}")
}

/// The seq that a snapshot's name says, if it is one.
pub(super) fn seq(name: &str) -> Option<u64> {
    let seq = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(seq) == name).then_some(seq)
}
