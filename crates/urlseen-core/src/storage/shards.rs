//! Reads the filter of a folder shard by shard, without opening it to write.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::disk::DiskFile;
use super::error::RecoveryError;
use super::header::{Begun, Header};
use super::reader::AtRest;
use super::record::{Change, Kind};
use super::recovery::{self, Target, Way};
use super::restore::Section;
use super::snapshot::Snapshot;
use crate::filter::generation::Generation;
use crate::filter::{BuildError, FilterKind, KeyHash, KeyHasher, Removal, SHARDS, ShardId};

/// Maximum number of fingerprints of the log that are in memory at once. A longer log is read
/// several times.
const MOST: u64 = 1 << 22;

/// Reads the shards of a filter in order, with one shard at a time in memory.
#[derive(Debug)]
pub struct ShardReader {
    begun: Begun,
    hasher: KeyHasher,
    snapshot: Snapshot,
    log: Log,
    /// Tombstones: the shard, and the 128-bit key hash of the fingerprint.
    tombstones: BTreeSet<(ShardId, u128)>,
    /// Keeps other processes from writing to the folder.
    _lock: Option<Arc<dyn DiskFile>>,
}

/// The log after the snapshot.
#[derive(Debug)]
struct Log {
    way: Way,
    /// Number of the last record of the log.
    last: u64,
    /// Number of shards whose keys are in memory at the same time.
    group: usize,
    /// First shard after the shards in memory.
    end: usize,
    /// Added and forgotten keys of each shard, in the order of the log, with their generations.
    changes: Vec<Vec<((Change, Generation), KeyHash)>>,
    /// The present generation.
    generation: Generation,
}

impl ShardReader {
    /// Reads the filter as it was at `target`. Chooses a snapshot in which all shards that `wanted`
    /// accepts are sound. The other shards of this snapshot may be damaged.
    pub(super) fn open(
        folder: &AtRest,
        target: Target,
        wanted: impl Fn(ShardId) -> bool,
    ) -> Result<Self, RecoveryError> {
        let begun = folder.begun()?.clone();
        let hasher = begun.header.spec().filter.parameters.hasher();
        let (way, snapshot) = recovery::find(&begun, target, |summary| {
            let snapshot = summary.open(&begun)?;
            let mut sections = snapshot.shards().iter().filter(|section| wanted(section.shard));
            sections.try_for_each(|section| snapshot.check(section))?;
            Ok(snapshot)
        })?;
        let mut tombstones: BTreeSet<_> = snapshot.tombstones()?.into_iter().collect();
        let (mut count, mut generation) = (0, Generation::default());
        let walk = way.replay(&begun, |entry| {
            count += u64::from(entry.head.count);
            if entry.head.kind == Kind::Generation {
                generation = generation.max(entry.head.generation);
            }
            // Most folders have no tombstones.
            if entry.head.kind == Kind::Forgets || !tombstones.is_empty() {
                for (change, fingerprint) in entry.changes() {
                    let key_hash = hasher.key_hash(&fingerprint);
                    let key = (key_hash.shard(), key_hash.id());
                    match change {
                        Change::Forget => tombstones.insert(key),
                        Change::Add => tombstones.remove(&key),
                    };
                }
            }
        })?;
        let rounds = usize::try_from(count / MOST + 1).unwrap_or(SHARDS).min(SHARDS);
        let log = Log {
            way,
            last: walk.end.number,
            group: SHARDS.div_ceil(rounds),
            end: 0,
            changes: Vec::new(),
            generation,
        };
        Ok(Self { begun, hasher, snapshot, log, tombstones, _lock: folder.lock.clone() })
    }

    /// Returns the header of the folder.
    pub fn header(&self) -> &Header {
        &self.begun.header
    }

    /// Returns the tombstones: fingerprints that were forgotten and have not passed again. Each has
    /// its shard, and the 128-bit key hash of the fingerprint.
    pub fn tombstones(&self) -> &BTreeSet<(ShardId, u128)> {
        &self.tombstones
    }

    /// Returns a filter with this shard. Its other shards are empty, and their memory is not
    /// touched. The caller must request the shards in order.
    ///
    /// # Errors
    /// If the disk fails, the snapshot is damaged there, or memory is lacking. Also if another
    /// process has dropped the needed part of the log meanwhile.
    pub fn read(&mut self, shard: ShardId) -> Result<Box<dyn FilterKind>, RecoveryError> {
        let failed = |error: BuildError| RecoveryError::Io(io::Error::other(error));
        let parameters = &self.begun.header.spec().filter.parameters;
        let mut filter = parameters.build().map_err(failed)?;
        self.read_into(shard, &mut *filter)?;
        Ok(filter)
    }

    /// Reads this shard into an empty filter with the parameters of the folder. The caller must
    /// request the shards in order.
    ///
    /// # Errors
    /// The same errors as [`ShardReader::read`].
    pub fn read_into(
        &mut self,
        shard: ShardId,
        filter: &mut dyn FilterKind,
    ) -> Result<(), RecoveryError> {
        let section = &self.snapshot.shards()[shard.index()];
        let Section { keys, len, .. } = *section;
        self.snapshot.read(section, |body| filter.load(shard, keys, len, body))?;
        let log = &mut self.log;
        if shard.index() >= log.end || shard.index() + log.changes.len() < log.end {
            log.gather(&self.begun, self.hasher, shard.index())?;
        }
        let first = log.end - log.changes.len();
        let changes = std::mem::take(&mut log.changes[shard.index() - first]);
        for run in changes.chunk_by(|(one, _), (next, _)| one == next) {
            let key_hashes: Vec<KeyHash> = run.iter().map(|&(_, key_hash)| key_hash).collect();
            match run[0].0 {
                (Change::Forget, _) => {
                    // Keys that cannot be removed are among the tombstones.
                    let _: Vec<Removal> = key_hashes.iter().map(|&it| filter.remove(it)).collect();
                }
                (Change::Add, generation) => {
                    let full = |full| RecoveryError::Io(io::Error::other(full));
                    filter.insert(generation, &key_hashes).map_err(full)?;
                }
            }
        }
        filter.begin_generation(log.generation);
        Ok(())
    }
}

impl Log {
    /// Collects the changes of a group of shards from `first` on.
    fn gather(
        &mut self,
        begun: &Begun,
        hasher: KeyHasher,
        first: usize,
    ) -> Result<(), RecoveryError> {
        self.end = (first + self.group).min(SHARDS);
        self.changes = vec![Vec::new(); self.end - first];
        let Self { way, last, changes, .. } = self;
        let walk = way.replay(begun, |entry| {
            if entry.head.position.number > *last {
                return;
            }
            let Some(change) = entry.head.kind.change() else { return };
            for (generation, fingerprint) in entry.stored() {
                let key_hash = hasher.key_hash(&fingerprint);
                let place = key_hash.shard().index().wrapping_sub(first);
                if let Some(changes) = changes.get_mut(place) {
                    changes.push(((change, generation), key_hash));
                }
            }
        })?;
        if walk.end.number < *last {
            let words = "another process changed the folder, and the needed part of the log is \
                         gone; give the command again";
            return Err(RecoveryError::Io(io::Error::other(words)));
        }
        Ok(())
    }
}
