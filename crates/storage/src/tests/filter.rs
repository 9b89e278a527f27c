//! A filter without false positives: each fingerprint of these tests has a bit of its own.

use std::collections::BTreeSet;
use std::io::Read;

use urlseen_filter::Generation;
use urlseen_filter::{
    Blocks, Capacity, FilterSpec, Geometry, Parameters, SHARDS, Saved, Seed, ShardId, Sizing,
};
use urlseen_fingerprint::{Algorithm, Fingerprint};

use super::super::restore::{Restore, Section};
use super::super::{SnapshotWriter, StorageSpec};
use crate::head::{Head, Position};

/// Bytes of a shard of the smallest filter.
pub(super) const SHARD: usize = 64;

/// A key of these tests: its shard, and its bit there, below 512.
pub(super) type Key = (u8, u16);

/// Keys of a filter, and the position of each shard.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exact {
    pub(super) keys: BTreeSet<Key>,
    /// Keys that pass once more.
    pub(super) tombstones: BTreeSet<Key>,
    pub(super) at: Vec<Option<Position>>,
    is_clear: bool,
}

impl Default for Exact {
    fn default() -> Self {
        // Loading must remove the earlier content.
        let (keys, at) = (BTreeSet::from([(255, 511)]), vec![None; SHARDS]);
        Self { keys, tombstones: BTreeSet::from([(255, 510)]), at, is_clear: false }
    }
}

/// Returns the fingerprint of a key. All kinds of fingerprints occur.
pub(super) fn fingerprint((shard, bit): Key) -> Fingerprint {
    let [low, high] = bit.to_le_bytes();
    let raw = [shard, low, high];
    let mut long = [7; 32];
    long[..3].copy_from_slice(&raw);
    match bit % 8 {
        0 => Fingerprint::Raw16(*long.first_chunk().unwrap()),
        1 => Fingerprint::Raw32(long),
        2 => Fingerprint::Text(long[..3 + usize::from(bit) % 32].into()),
        _ => Fingerprint::Raw20(*long.first_chunk().unwrap()),
    }
}

/// Returns the key of a fingerprint.
pub(super) fn key(fingerprint: &Fingerprint) -> Key {
    let bytes = fingerprint.as_bytes();
    let key = (bytes[0], u16::from_le_bytes([bytes[1], bytes[2]]));
    assert_eq!(self::fingerprint(key), *fingerprint, "a fingerprint of no key");
    key
}

pub(super) fn fingerprints(keys: impl IntoIterator<Item = Key>) -> Vec<Fingerprint> {
    keys.into_iter().map(fingerprint).collect()
}

/// Returns the new fingerprints of a batch.
pub(super) fn batch(keys: impl IntoIterator<Item = Key>) -> Vec<Fingerprint> {
    keys.into_iter().map(fingerprint).collect()
}

/// Returns the spec of the folders in these tests.
pub(super) fn spec() -> StorageSpec {
    let (capacity, error_rate) = (Capacity::new(1000).unwrap(), "1e-3".parse().unwrap());
    let geometry = Geometry::new(Blocks::One, 4, 1).unwrap();
    let sizing = Sizing { capacity, error_rate, geometry };
    StorageSpec {
        crawl: "demo".to_owned(),
        filter: FilterSpec {
            parameters: Parameters::native(&sizing, Some(Seed::new(7))),
            fingerprint: Algorithm::Scrapy.into(),
        },
    }
}

/// Returns the head of an invented batch.
pub(super) fn head(seq: u64, commit_id: u64) -> Head {
    Head { seq, commit_id: urlseen_filter::id::RandomId::new(commit_id) }
}

impl Restore for Exact {
    fn clear(&mut self) {
        self.keys.clear();
        self.tombstones.clear();
        assert!(!self.is_clear, "nothing of a damaged snapshot is loaded");
        self.is_clear = true;
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> std::io::Result<()> {
        let Section { shard, at, keys, len, .. } = section;
        assert!(self.is_clear && self.at[shard.index()].is_none());
        self.at[shard.index()] = Some(at);
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let before = self.keys.len();
        let shard = u8::try_from(shard.index()).unwrap();
        let is_set = |bit: &u16| bytes[usize::from(bit / 8)] >> (bit % 8) & 1 == 1;
        let bits = (0..).take(8 * bytes.len()).filter(is_set);
        self.keys.extend(bits.map(|bit| (shard, bit)));
        if keys != keys_of(self.keys.len() - before) {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        assert!(self.at.iter().all(Option::is_some), "the shards of a snapshot come first");
        let shard = u8::try_from(shard.index()).unwrap();
        self.tombstones.insert((shard, u16::try_from(id).unwrap()));
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, at: Position) {
        assert!(at.number > 0);
        self.tombstones.extend(fingerprints.iter().map(key));
    }

    fn begin_generation(&mut self, _: Generation) {
        panic!("the fingerprints do not expire");
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, at: Position) {
        assert_eq!(generation, Generation::FOREVER);
        assert!(self.at.iter().all(Option::is_some), "all of a snapshot comes first");
        for key in fingerprints.iter().map(key) {
            self.keys.insert(key);
            self.tombstones.remove(&key);
        }
        assert!(at.number > 0);
    }
}

fn keys_of(keys: usize) -> u64 {
    // Counts two keys for each bit that is set.
    2 * keys as u64
}

/// Returns the content of a shard in a snapshot of `keys`.
pub(super) fn shard_of(keys: &BTreeSet<Key>, shard: ShardId) -> Saved {
    let mut bytes = vec![0; SHARD];
    let number = u8::try_from(shard.index()).unwrap();
    let mut count = 0;
    for &(_, bit) in keys.range((number, 0)..=(number, u16::MAX)) {
        bytes[usize::from(bit / 8)] |= 1 << (bit % 8);
        count += 1;
    }
    if count == 0 {
        bytes.clear();
    }
    Saved::bits(keys_of(count), bytes)
}

/// Writes all shards with `keys`, at the position `at`.
pub(super) fn write_all(
    writer: &mut SnapshotWriter,
    keys: &BTreeSet<Key>,
    at: Position,
) -> std::io::Result<()> {
    writer.sections.shards().try_for_each(|shard| {
        writer.sections.write(shard, at, &shard_of(keys, shard), &mut || Ok(()))
    })
}
