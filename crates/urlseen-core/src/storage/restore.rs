//! What a recovery brings back; and a filter of RedisBloom brought back to be read only.

use std::collections::HashSet;
use std::io;

use super::error::RecoveryError;
use super::header::Header;
use crate::filter::redisbloom::{AddError, Filter};
use crate::filter::{Count, Hashing, Parameters, ShardId};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// A filter that is brought back. It is given all of it in order: nothing, then each shard of a
/// snapshot once (or all of it, where it has none), then what was added since. Where a snapshot
/// turns out to be damaged, it begins again.
pub trait Restore {
    /// Forgets everything: all shards are empty.
    fn clear(&mut self);
    /// Sets a shard as a snapshot has it: `bytes` are its bits, little endian words of 64, none
    /// where none is set.
    fn load(&mut self, shard: ShardId, count: Count, at: Position, bytes: Vec<u8>);
    /// Sets the whole filter as a snapshot has it, where it is in one piece; `None` if nothing was
    /// ever added to it.
    fn load_whole(&mut self, filter: Option<Filter>, at: Position);
    /// Lets a fingerprint pass once more that a snapshot has as forgotten: its shard, and the 128
    /// bits that the layout makes of it. Comes behind what is loaded.
    fn load_tombstone(&mut self, shard: ShardId, id: u128);
    /// Sets fingerprints of the record that the log has at `at`.
    fn add(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
    /// Lets fingerprints of the record that the log has at `at` pass once more.
    fn forget(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
}

/// A filter of RedisBloom, as far as it has been brought.
#[derive(Debug)]
pub(super) struct Rebuilt {
    parameters: Parameters,
    filter: Option<Filter>,
    /// What is to pass once more, by what the filter knows it by.
    tombstones: HashSet<u128>,
    trouble: Option<AddError>,
}

impl Rebuilt {
    /// For the filter of a folder.
    pub(super) fn new(header: &Header) -> Result<Self, RecoveryError> {
        let parameters = header.spec().filter.parameters.clone();
        if header.has_shards() {
            let words = "the storage folder holds a filter of the kind native, which RedisBloom \
                         cannot read";
            return Err(RecoveryError::Io(io::Error::other(words)));
        }
        Ok(Self { parameters, filter: None, tombstones: HashSet::new(), trouble: None })
    }

    /// The filter, and what of it is to pass once more: RedisBloom knows nothing of that.
    pub(super) fn finish(mut self) -> Result<(Filter, HashSet<u128>), RecoveryError> {
        let filter = self.filter().map(|filter| filter.frozen());
        match (filter, self.trouble) {
            (Err(trouble), _) | (_, Some(trouble)) => {
                Err(RecoveryError::Io(io::Error::other(trouble)))
            }
            (Ok(filter), None) => Ok((filter, self.tombstones)),
        }
    }

    fn filter(&mut self) -> Result<&mut Filter, AddError> {
        let Self { parameters, filter, .. } = self;
        match (filter, parameters) {
            (Some(filter), _) => Ok(filter),
            (none, parameters) => {
                let reservation = parameters.reservation();
                let reservation =
                    reservation.expect("what was imported is there, and shards were refused");
                Ok(none.insert(reservation.reserve(u64::MAX).map_err(AddError::NoLayer)?))
            }
        }
    }
}

impl Restore for Rebuilt {
    fn clear(&mut self) {
        self.filter = None;
        self.tombstones.clear();
        self.trouble = None;
    }

    fn load(&mut self, _: ShardId, _: Count, _: Position, _: Vec<u8>) {
        unreachable!("the filter has no shards");
    }

    fn load_whole(&mut self, filter: Option<Filter>, _: Position) {
        self.filter = filter;
    }

    fn load_tombstone(&mut self, _: ShardId, id: u128) {
        self.tombstones.insert(id);
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        let ids = fingerprints.iter().map(|each| Hashing::RedisBloom.key_hash(each).id());
        self.tombstones.extend(ids);
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        for fingerprint in fingerprints {
            self.tombstones.remove(&Hashing::RedisBloom.key_hash(&fingerprint).id());
            let item = fingerprint.text(&mut [0; 64]).to_vec();
            let added = self.filter().and_then(|filter| filter.add(&item));
            self.trouble = self.trouble.take().or(added.err());
        }
    }
}
