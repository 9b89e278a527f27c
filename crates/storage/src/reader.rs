//! Reads a folder's header, and its filter shard by shard, without opening the folder to write.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use urlseen_filter::generation::Generation;
use urlseen_filter::{
    BuildError, FilterKind, KeyHash, KeyHasher, Removal, SHARDS, ShardId, Verdict,
};
use urlseen_fingerprint::Fingerprint;

use super::difference::Difference;
use super::disk::{Busy, Dir, DiskFile, Lock, RealDisk};
use super::error::{Holder, OpenError, RecoveryError};
use super::header::{Begun, Header, StorageSpec};
use super::history::{Target, read_header};
use super::lock::LOCK;
use super::record::{Change, RecordKind};
use super::recovery::{self, Way};

/// Storage folder that no process writes to. No process can open the folder to write while this
/// value exists.
#[derive(Debug)]
pub struct AtRest {
    pub(super) begun: Option<Begun>,
    /// Locked file `lock`, which keeps writers out. A copy of a folder may lack this file, and has
    /// no writers.
    pub(super) lock: Option<Arc<dyn DiskFile>>,
}

/// Note that another process writes to the folder while this process reads it.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Process that writes to the folder, if it is known.
    pub holder: Option<Holder>,
}

impl AtRest {
    /// Opens a folder to read, without waiting. Writes nothing.
    ///
    /// # Errors
    /// If another process has the folder open to write ([`OpenError::Locked`]), the disk fails, or
    /// the header cannot be read.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(&RealDisk::at(dir))
    }

    pub(super) fn open_on(dir: &Dir) -> Result<Self, OpenError> {
        let (folder, beside) = Self::look(dir)?;
        let locked = |Beside { holder }| OpenError::Locked { dir: dir.path().to_owned(), holder };
        beside.map_or(Ok(folder), |beside| Err(locked(beside)))
    }

    /// Opens a folder to read, even if another process writes to it. In that case the reader reads
    /// the newest snapshot and the present log, and locks no writer out.
    ///
    /// # Errors
    /// Returns the errors of [`AtRest::open`], except for a locked folder.
    pub fn open_beside(path: &Path) -> Result<(Self, Option<Beside>), OpenError> {
        Self::look(&RealDisk::at(path))
    }

    pub(super) fn look(dir: &Dir) -> Result<(Self, Option<Beside>), OpenError> {
        let failed = |reason| OpenError::unreadable(dir.path(), reason);
        let (mut lock, mut beside) = (None, None);
        if dir.inode(LOCK).map_err(failed)?.is_some() {
            match dir.lock(LOCK, Lock::Shared).map_err(failed)? {
                Ok(file) => lock = Some(file.into()),
                Err(Busy(file)) => beside = Some(Beside { holder: Holder::read(&*file) }),
            }
        }
        Ok((Self { begun: read_header(dir)?, lock }, beside))
    }

    /// Returns the header; `None` if the folder is new.
    pub fn header(&self) -> Option<&Header> {
        self.begun.as_ref().map(|begun| &begun.header)
    }

    /// Compares the folder's spec with the wanted one. A new folder fits every spec.
    pub fn check(&self, spec: &StorageSpec) -> Result<(), Vec<Difference>> {
        let differences = self.header().map(|header| header.differences(spec));
        differences.filter(|all| !all.is_empty()).map_or(Ok(()), Err)
    }

    /// Checks that a filter can be recovered to `target`. Reads the log, and no shard of a
    /// snapshot.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover).
    pub fn reaches(&self, target: Target) -> Result<(), RecoveryError> {
        ShardReader::open(self, target, |_| false).map(drop)
    }

    /// Returns the folder's directory and header.
    ///
    /// # Errors
    /// If the folder is new.
    pub(super) fn begun(&self) -> Result<&Begun, RecoveryError> {
        self.begun.as_ref().ok_or(RecoveryError::Fresh)
    }

    /// Reads the newest state of the filter: the newest snapshot and the log after it. While the
    /// reader exists, no process can open the folder to write, either.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover).
    pub fn reader(&self) -> Result<ShardReader, RecoveryError> {
        ShardReader::open(self, Target::Last, |_| false)
    }

    /// Returns the verdicts of the filter at `target`. Reads only the shards of the fingerprints,
    /// and the log. Damage in other shards does not matter.
    ///
    /// A killed process may leave batches in the log that Redis does not know. With
    /// [`Target::Last`], these batches count as seen. To leave them out, pass the head that Redis
    /// records.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover).
    pub fn verdicts(
        &self,
        fingerprints: &[Fingerprint],
        target: Target,
    ) -> Result<Vec<Verdict>, RecoveryError> {
        let hasher = self.begun()?.header.spec().filter.parameters.hasher();
        let mut asked = BTreeMap::<ShardId, Vec<(usize, KeyHash)>>::new();
        for (place, key_hash) in fingerprints.iter().map(|it| hasher.key_hash(it)).enumerate() {
            asked.entry(key_hash.shard()).or_default().push((place, key_hash));
        }
        let mut reader = ShardReader::open(self, target, |shard| asked.contains_key(&shard))?;
        let mut verdicts = vec![Verdict::Unseen; fingerprints.len()];
        for (shard, asked) in asked {
            let key_hashes: Vec<KeyHash> = asked.iter().map(|&(_, key_hash)| key_hash).collect();
            let mut found = Vec::new();
            reader.read(shard)?.test(&key_hashes, &mut found);
            for ((place, key_hash), verdict) in asked.into_iter().zip(found) {
                if !reader.tombstones().contains(&(shard, key_hash.id())) {
                    verdicts[place] = verdict;
                }
            }
        }
        Ok(verdicts)
    }

    /// Returns the generation that the filter has for a fingerprint, if fingerprints expire. The
    /// fingerprint passes again when the sixth generation after it begins. Returns `None` if the
    /// filter does not have the fingerprint. Reads only the shard of the fingerprint, and the log.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover).
    pub fn generation(
        &self,
        fingerprint: &Fingerprint,
    ) -> Result<Option<Generation>, RecoveryError> {
        let hasher = self.begun()?.header.spec().filter.parameters.hasher();
        let key_hash = hasher.key_hash(fingerprint);
        let shard = key_hash.shard();
        let mut reader = ShardReader::open(self, Target::Last, |other| other == shard)?;
        Ok(reader.read(shard)?.ages().and_then(|ages| ages.generation(key_hash)))
    }
}

/// Maximum number of fingerprints of the log that are in memory at once. A longer log is read
/// several times.
const MOST: u64 = 1 << 22;

/// Reads the shards of a filter in order, with one shard at a time in memory.
#[derive(Debug)]
pub struct ShardReader {
    begun: Begun,
    hasher: KeyHasher,
    way: Way,
    /// The open file of the way's snapshot.
    file: Box<dyn DiskFile>,
    /// Number of the last record of the log.
    last: u64,
    /// Number of shards whose changes are in memory at the same time.
    group: usize,
    /// First shard after the shards in memory.
    end: usize,
    /// Added and forgotten keys of each shard, in the order of the log, with their generations.
    changes: Vec<Vec<((Change, Generation), KeyHash)>>,
    /// The present generation.
    generation: Generation,
    /// Tombstones: the shard, and the 128-bit key hash of the fingerprint.
    tombstones: BTreeSet<(ShardId, u128)>,
    /// Keeps other processes from writing to the folder.
    _lock: Option<Arc<dyn DiskFile>>,
}

impl ShardReader {
    /// Reads the filter as it was at `target`. Chooses a snapshot in which all shards that `wanted`
    /// accepts are sound. The other shards of this snapshot may be damaged.
    fn open(
        folder: &AtRest,
        target: Target,
        wanted: impl Fn(ShardId) -> bool,
    ) -> Result<Self, RecoveryError> {
        let begun = folder.begun()?.clone();
        let hasher = begun.header.spec().filter.parameters.hasher();
        let (way, file) =
            recovery::find(&begun, target, |snapshot| snapshot.check(&begun, &wanted))?;
        let mut tombstones: BTreeSet<_> = way.snapshot.tombstones(&*file)?.into_iter().collect();
        let (mut count, mut generation) = (0, Generation::default());
        let walk = way.replay(&begun, |entry| {
            count += u64::from(entry.head.count);
            if entry.head.kind == RecordKind::Generation {
                generation = generation.max(entry.head.generation);
            }
            // Most folders have no tombstones.
            if entry.head.kind == RecordKind::Forgets || !tombstones.is_empty() {
                for (change, _, fingerprint) in entry.changes() {
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
        Ok(Self {
            hasher,
            way,
            file,
            last: walk.end.number,
            group: SHARDS.div_ceil(rounds),
            end: 0,
            changes: Vec::new(),
            generation,
            tombstones,
            begun,
            _lock: folder.lock.clone(),
        })
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
        let section = &self.way.snapshot.shards()[shard.index()];
        let load = |body: &mut dyn Read| filter.load(shard, section.keys, section.len, body);
        self.way.snapshot.read(&*self.file, section, load)?;
        if shard.index() >= self.end || shard.index() + self.changes.len() < self.end {
            self.gather(shard.index())?;
        }
        let first = self.end - self.changes.len();
        let changes = std::mem::take(&mut self.changes[shard.index() - first]);
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
        filter.begin_generation(self.generation);
        Ok(())
    }

    /// Collects the changes of a group of shards from `first` on.
    fn gather(&mut self, first: usize) -> Result<(), RecoveryError> {
        self.end = (first + self.group).min(SHARDS);
        let mut gathered = vec![Vec::new(); self.end - first];
        let walk = self.way.replay(&self.begun, |entry| {
            if entry.head.position.number > self.last {
                return;
            }
            for (change, generation, fingerprint) in entry.changes() {
                let key_hash = self.hasher.key_hash(&fingerprint);
                let place = key_hash.shard().index().wrapping_sub(first);
                if let Some(changes) = gathered.get_mut(place) {
                    changes.push(((change, generation), key_hash));
                }
            }
        })?;
        self.changes = gathered;
        if walk.end.number < self.last {
            let words = "another process changed the folder, and the needed part of the log is \
                         gone; give the command again";
            return Err(RecoveryError::Io(io::Error::other(words)));
        }
        Ok(())
    }
}
