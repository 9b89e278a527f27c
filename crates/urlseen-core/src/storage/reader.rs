//! Reads a folder's header, and asks the filter of a folder at rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::dir::Dir;
use super::disk::{Busy, Disk, DiskFile, Entry, Lock, RealDisk};
use super::error::{OpenError, RecoveryError};
use super::header::{self, Header, Unreadable};
use super::lock::{Holder, LOCK};
use super::scan::Target;
use super::shards::ShardReader;
use super::{segment, snapshot};
use crate::filter::native::KeyHash;
use crate::filter::{ShardId, Verdict};
use crate::fingerprint::Fingerprint;

/// A folder that no process writes to. Writers are locked out while this value lives.
#[derive(Debug)]
pub struct AtRest {
    pub(super) dir: Dir,
    header: Option<Header>,
    /// The locked file, which keeps writers out. A copy of a folder may lack it, and has no
    /// writers.
    _lock: Option<Box<dyn DiskFile>>,
}

/// Another process writes to a folder that is read.
#[derive(Debug, Clone)]
pub struct Beside {
    /// The process that writes, if it is known.
    pub holder: Option<Holder>,
}

impl AtRest {
    /// Opens a folder to read, without waiting. Writes nothing.
    ///
    /// # Errors
    /// If another process has the folder open to write ([`OpenError::Locked`]), the disk fails, or
    /// the header cannot be read.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(RealDisk), dir)
    }

    pub(super) fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, OpenError> {
        match Self::look(disk, path)? {
            (folder, None) => Ok(folder),
            (_, Some(Beside { holder })) => Err(OpenError::Locked { dir: path.to_owned(), holder }),
        }
    }

    /// Opens a folder to read, even if another process writes to it. In that case the reader gets
    /// the newest snapshot and the present log, and keeps no writer out.
    ///
    /// # Errors
    /// Returns the errors of [`AtRest::open`], except for a locked folder.
    pub fn open_beside(path: &Path) -> Result<(Self, Option<Beside>), OpenError> {
        Self::look(Arc::new(RealDisk), path)
    }

    fn look(disk: Arc<dyn Disk>, path: &Path) -> Result<(Self, Option<Beside>), OpenError> {
        let dir = Dir::new(disk, path);
        let failed = |reason| OpenError::unreadable(path, reason);
        let files = dir.list().map_err(failed)?;
        let (mut lock, mut beside) = (None, None);
        if files.iter().any(|file| file.name == LOCK) {
            match dir.lock(LOCK, Lock::Shared).map_err(failed)? {
                Ok(file) => lock = Some(file),
                Err(Busy(file)) => beside = Some(Beside { holder: Holder::read(&*file) }),
            }
        }
        let header = read_header(&dir, &files)?;
        Ok((Self { dir, header, _lock: lock }, beside))
    }

    /// Returns the header; `None` if the folder is new.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Reads the newest state of the filter: the newest snapshot and the log after it.
    ///
    /// # Errors
    /// As [`Folder::recover`](super::Folder::recover).
    pub fn reader(&self) -> Result<ShardReader, RecoveryError> {
        ShardReader::open(self, Target::Last, |_| false)
    }

    /// Returns the verdicts that the filter would give if it were recovered to `target`. Reads the
    /// shards of the fingerprints, and the log. The snapshot may be damaged in other shards.
    ///
    /// A killed process leaves batches in the log that Redis may not know. [`Target::Last`] counts
    /// them as seen; only Redis can name the right head.
    ///
    /// # Errors
    /// As [`Folder::recover`](super::Folder::recover).
    pub fn verdicts(
        &self,
        fingerprints: &[Fingerprint],
        target: Target,
    ) -> Result<Vec<Verdict>, RecoveryError> {
        let header = self.header.as_ref().ok_or(RecoveryError::Fresh)?;
        let hasher = header.spec().filter.parameters.hasher();
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
}

/// Returns true for a snapshot or a file of the log.
pub(super) fn is_history(file: &Entry) -> bool {
    snapshot::seq(&file.name).is_some() || segment::follows(&file.name).is_some()
}

/// Reads the header; `None` if the folder, which has `files`, was not begun.
pub(super) fn read_header(dir: &Dir, files: &[Entry]) -> Result<Option<Header>, OpenError> {
    let path = || dir.path().to_owned();
    let bytes = dir.read(header::NAME).map_err(|reason| OpenError::Io { dir: path(), reason })?;
    if let Some(bytes) = bytes {
        return match Header::decode(&bytes) {
            Ok(header) => Ok(Some(header)),
            Err(Unreadable::Damaged(damage)) => Err(OpenError::Header(damage)),
            Err(Unreadable::Format(found)) => Err(OpenError::Format { dir: path(), found }),
        };
    }
    let history: Vec<_> = files.iter().filter(|file| is_history(file)).collect();
    match history[..] {
        [] => Ok(None),
        // An interrupted begin leaves this file without a header.
        [only] if snapshot::seq(&only.name).is_some() && snapshot::EMPTY.contains(&only.len) => {
            Ok(None)
        }
        [first, ..] => Err(OpenError::HeaderMissing { dir: path(), file: first.name.clone() }),
    }
}
