//! A snapshot: the filter, shard by shard, and where each shard stood.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenS"
//!  8      4  format of the folder, 5
//! 12      8  id of the filter
//! 20      8  number of shards: 256, or 1 where the filter is in one piece
//! 28      8  when it was begun, in milliseconds since 1970
//! 36      4  CRC-32C of bytes 0 to 35
//! 40         sections, by shard
//!
//! a section
//!  0      1  shard
//!  1     24  where it stands: number, seq, commit_id of the last record it holds
//! 25      8  keys
//! 33      8  n, the bytes of the body; 0 if nothing is in it
//! 41      4  CRC-32C of bytes 0 to 40
//! 45      n  body: the shard as its kind saves it
//! 45+n    4  CRC-32C of the body
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
//! A kind saves a shard as
//!
//! ```text
//! native       its bits as little endian words of 64, bit b of the shard being bit b % 64 of word
//!              b / 64
//! redisbloom   all of the filter, as `redisbloom::dump` writes it
//! ```
//!
//! It is called `snapshot-` and the seq of its last position in 20 digits. While it is written, it
//! is called otherwise, so one that has that name is whole unless it was damaged.

mod reader;
mod sections;

pub(super) use reader::{Body, Snapshots, Summary};
pub(super) use sections::{Role, Sections, empty};

use super::encoding::POSITION;

const MAGIC: &[u8; 8] = b"urlseenS";
const PREFIX: &str = "snapshot-";

/// Bytes before the sections.
const HEADER: usize = 40;
/// Bytes of a section before its body, and behind it.
const SECTION: usize = 21 + POSITION;
const SECTION_END: usize = 4;
/// Bytes behind the sections.
const TRAILER: usize = 2 * POSITION + 13;
/// Bytes of a fingerprint that was forgotten, and behind all of them.
const TOMBSTONE: usize = 17;
const TOMBSTONES_END: usize = 12;
/// Bytes of a snapshot with nothing in it, with many shards and with one.
pub(super) const EMPTY: [u64; 2] = [empty_size(crate::filter::SHARDS), empty_size(1)];

const fn empty_size(shards: usize) -> u64 {
    (HEADER + shards * (SECTION + SECTION_END) + TOMBSTONES_END + TRAILER) as u64
}

/// The name of the snapshot whose last position has this seq.
pub(super) fn name(seq: u64) -> String {
    format!("{PREFIX}{seq:020}")
}

/// The seq that a snapshot's name says, if it is one.
pub(super) fn seq(name: &str) -> Option<u64> {
    let seq = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(seq) == name).then_some(seq)
}
