//! Reads a folder's header and its filter, without opening the folder to write.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use urlseen_filter::Generation;
use urlseen_filter::{FilterKind, KeyHash, ShardId, Verdict};
use urlseen_fingerprint::Fingerprint;

use super::disk::{Busy, Dir, DiskFile, Lock, RealDisk};
use super::error::{Holder, OpenError, RecoveryError};
use super::header::{Begun, Header};
use super::history::{Target, read_header};
use super::lock::LOCK;
use super::record::{Change, RecordKind};
use super::recovery;

/// Fingerprints that were forgotten and have not passed again: the shard, and the 128-bit key hash.
pub type Tombstones = BTreeSet<(ShardId, u128)>;

/// Storage folder that no process writes to. No process can open the folder to write while this
/// value exists.
#[derive(Debug)]
pub struct AtRest {
    pub(super) begun: Option<Begun>,
    /// Locked file `lock`, which keeps writers out. A copy of a folder may lack this file, and has
    /// no writers.
    _lock: Option<Arc<dyn DiskFile>>,
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
        Ok((Self { begun: read_header(dir)?, _lock: lock }, beside))
    }

    /// Returns the header; `None` if the folder is new.
    pub fn header(&self) -> Option<&Header> {
        self.begun.as_ref().map(|begun| &begun.header)
    }

    /// Checks that a filter can be recovered to `target`. Reads the log, and no shard of a
    /// snapshot.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover).
    pub fn reaches(&self, target: Target) -> Result<(), RecoveryError> {
        let begun = self.begun()?;
        recovery::find(begun, target, |it, _| it.check(begun, |_| false)).map(drop)
    }

    /// Returns the folder's directory and header.
    ///
    /// # Errors
    /// If the folder is new.
    pub(super) fn begun(&self) -> Result<&Begun, RecoveryError> {
        self.begun.as_ref().ok_or(RecoveryError::Fresh)
    }

    /// Reads the wanted shards of the filter at `target` into an empty filter with the parameters
    /// of the folder. The other shards of `filter` stay empty. Damage in them does not matter.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`](super::Folder::recover). Also if another process has
    /// dropped the needed part of the log meanwhile.
    pub fn read(
        &self,
        target: Target,
        wanted: impl Fn(ShardId) -> bool,
        filter: &mut dyn FilterKind,
    ) -> Result<Tombstones, RecoveryError> {
        let begun = self.begun()?;
        let hasher = begun.header.spec.filter.parameters.hasher();
        let (way, file) = recovery::find(begun, target, |it, _| it.check(begun, &wanted))?;
        for section in way.snapshot.shards().iter().filter(|section| wanted(section.shard)) {
            let load =
                |body: &mut dyn Read| filter.load(section.shard, section.keys, section.len, body);
            way.snapshot.read(&*file, section, load)?;
        }
        let mut tombstones: Tombstones = way.snapshot.tombstones(&*file)?.into_iter().collect();
        let mut full = Ok(());
        let walk = way.replay(begun, |entry| {
            if entry.head.kind == RecordKind::Generation {
                filter.begin_generation(entry.head.generation);
            }
            for (change, generation, fingerprint) in entry.changes() {
                let key_hash = hasher.key_hash(&fingerprint);
                let key = (key_hash.shard(), key_hash.id());
                match change {
                    Change::Forget => tombstones.insert(key),
                    Change::Add => tombstones.remove(&key),
                };
                if !wanted(key_hash.shard()) {
                    continue;
                }
                match change {
                    // A key that cannot be removed is among the tombstones.
                    Change::Forget => {
                        filter.remove(key_hash);
                    }
                    Change::Add if full.is_ok() => {
                        full = filter.insert_in(generation, &[key_hash]).map(drop);
                    }
                    Change::Add => {}
                }
            }
        })?;
        full.map_err(|full| RecoveryError::Io(io::Error::other(full)))?;
        if walk.end.number < way.scan.walk.end.number {
            let words = "another process changed the folder, and the needed part of the log is \
                         gone; give the command again";
            return Err(RecoveryError::Io(io::Error::other(words)));
        }
        Ok(tombstones)
    }

    /// Reads the wanted shards into a new filter: see [`AtRest::read`].
    ///
    /// # Errors
    /// The errors of [`AtRest::read`]. Also if memory is lacking.
    pub fn filter(
        &self,
        target: Target,
        wanted: impl Fn(ShardId) -> bool,
    ) -> Result<(Box<dyn FilterKind>, Tombstones), RecoveryError> {
        let parameters = &self.begun()?.header.spec.filter.parameters;
        let built = parameters.build().map_err(|error| RecoveryError::Io(io::Error::other(error)));
        let mut filter = built?;
        let tombstones = self.read(target, wanted, &mut *filter)?;
        Ok((filter, tombstones))
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
        let hasher = self.begun()?.header.spec.filter.parameters.hasher();
        let mut asked = BTreeMap::<ShardId, Vec<(usize, KeyHash)>>::new();
        for (place, key_hash) in fingerprints.iter().map(|it| hasher.key_hash(it)).enumerate() {
            asked.entry(key_hash.shard()).or_default().push((place, key_hash));
        }
        let (filter, tombstones) = self.filter(target, |shard| asked.contains_key(&shard))?;
        let mut verdicts = vec![Verdict::Unseen; fingerprints.len()];
        for (shard, asked) in asked {
            let key_hashes: Vec<KeyHash> = asked.iter().map(|&(_, key_hash)| key_hash).collect();
            let mut found = Vec::new();
            filter.test(&key_hashes, &mut found);
            for ((place, key_hash), verdict) in asked.into_iter().zip(found) {
                if !tombstones.contains(&(shard, key_hash.id())) {
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
        let hasher = self.begun()?.header.spec.filter.parameters.hasher();
        let key_hash = hasher.key_hash(fingerprint);
        let shard = key_hash.shard();
        let (mut filter, _) = self.filter(Target::Last, |other| other == shard)?;
        Ok(filter.ages().and_then(|ages| ages.generation(key_hash)))
    }
}
