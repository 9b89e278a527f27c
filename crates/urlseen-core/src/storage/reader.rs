//! Reading a folder: its header, and the URL-seen test on one at rest.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::dir::Dir;
use super::disk::{Busy, Disk, DiskFile, Entry, Lock, RealDisk};
use super::error::{OpenError, RecoveryError};
use super::header::{self, Header, Unreadable};
use super::lock::{Holder, LOCK};
use super::record::Kind;
use super::recovery;
use super::restore::{Rebuilt, Restore};
use super::scan::Target;
use super::{segment, snapshot};
use crate::filter::native::KeyHash;
use crate::filter::redisbloom::Filter;
use crate::filter::{Hashing, ShardId, Verdict};
use crate::fingerprint::Fingerprint;

/// A folder that nobody writes to, and that nobody can as long as this lives.
#[derive(Debug)]
pub struct AtRest {
    pub(super) dir: Dir,
    header: Option<Header>,
    /// Open, it keeps writers out. None is there to be kept out of a copy without the file.
    _lock: Option<Box<dyn DiskFile>>,
}

/// Somebody writes to a folder that is read.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Who, if that is known.
    pub holder: Option<Holder>,
}

/// The bits that are asked for, by shard and position, and whether each is set.
type Bits = HashMap<ShardId, HashMap<u64, bool>>;

impl AtRest {
    /// Opens a folder to read, without waiting. Writes nothing.
    ///
    /// # Errors
    /// Where somebody has the folder open to write ([`OpenError::Locked`]), the disk fails, or the
    /// header cannot be read.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(RealDisk), dir)
    }

    pub(super) fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, OpenError> {
        let dir = Dir::new(disk, path);
        let failed = |reason| OpenError::unreadable(path, reason);
        let files = dir.list().map_err(failed)?;
        let lock = if files.iter().any(|file| file.name == LOCK) {
            match dir.lock(LOCK, Lock::Shared).map_err(failed)? {
                Ok(lock) => Some(lock),
                Err(Busy(file)) => {
                    let holder = Holder::read(&*file);
                    return Err(OpenError::Locked { dir: path.to_owned(), holder });
                }
            }
        } else {
            None
        };
        let header = read_header(&dir, &files)?;
        Ok(Self { dir, header, _lock: lock })
    }

    /// Opens a folder to read, also one that somebody writes to: then what is read is the newest
    /// snapshot and the log behind it, as far as it had come, and nobody is kept out.
    ///
    /// # Errors
    /// As [`AtRest::open`], but for that.
    pub fn open_beside(path: &Path) -> Result<(Self, Option<Beside>), OpenError> {
        match Self::open(path) {
            Err(OpenError::Locked { dir, holder }) => {
                let place = Dir::new(Arc::new(RealDisk), path);
                let files =
                    place.list().map_err(|reason| OpenError::Io { dir: dir.clone(), reason })?;
                let header = read_header(&place, &files)?;
                Ok((Self { dir: place, header, _lock: None }, Some(Beside { holder })))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// What it was made for; `None` if it is new.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// What the filter would say of each fingerprint if it were brought to `target`. Reads the
    /// shards that they fall into, and the log; a snapshot that is damaged in other shards will do.
    ///
    /// A process that was killed leaves batches in the log that Redis may not know:
    /// [`Target::Last`] takes them for seen, and only Redis can say what to take instead.
    ///
    /// # Errors
    /// As [`Folder::recover`](super::Folder::recover).
    pub fn verdicts(
        &self,
        fingerprints: &[Fingerprint],
        target: Target,
    ) -> Result<Vec<Verdict>, RecoveryError> {
        let header = self.header.as_ref().ok_or(RecoveryError::Fresh)?;
        let Some(native) = header.native() else {
            let (filter, tombstones) = self.rebuilt(target)?;
            let test = |fingerprint: &Fingerprint| {
                let is_set = filter.contains(fingerprint.text(&mut [0; 64]));
                let id = Hashing::RedisBloom.key_hash(fingerprint).id();
                Verdict::of(is_set && !tombstones.contains(&id))
            };
            return Ok(fingerprints.iter().map(test).collect());
        };
        let key_hashes: Vec<_> = fingerprints.iter().map(|each| native.key_hash(each)).collect();
        let mut asked = Bits::new();
        for &key_hash in &key_hashes {
            let bits = asked.entry(key_hash.shard()).or_default();
            bits.extend(native.positions(key_hash).map(|position| (position, false)));
        }
        let mut bits = Bits::new();
        let way = recovery::find(&self.dir, header, target, |snapshot| {
            bits.clone_from(&asked);
            snapshot.sections(&self.dir, header, |section, body| {
                let Some(bits) = bits.get_mut(&section.shard) else { return Ok(Ok(())) };
                Ok(body.read()?.map(|bytes| {
                    if !bytes.is_empty() {
                        for (&at, is_set) in bits.iter_mut() {
                            *is_set = bit(&bytes, at);
                        }
                    }
                }))
            })
        })?;
        let tombstones = way.snapshot.tombstones(&self.dir)?;
        let tombstones =
            tombstones.map_err(|damage| RecoveryError::NoSnapshot { damage: Some(damage) })?;
        let mut tombstones: HashSet<u128> = tombstones.into_iter().map(|(_, id)| id).collect();
        way.replay(&self.dir, header, |entry| {
            for fingerprint in entry.fingerprints() {
                let key_hash = native.key_hash(&fingerprint);
                if entry.head.kind == Kind::Forgets {
                    tombstones.insert(key_hash.id());
                    continue;
                }
                tombstones.remove(&key_hash.id());
                let Some(bits) = bits.get_mut(&key_hash.shard()) else { continue };
                for position in native.positions(key_hash) {
                    bits.entry(position).and_modify(|is_set| *is_set = true);
                }
            }
        })?;
        let verdict = |&key_hash: &KeyHash| {
            let bits = &bits[&key_hash.shard()];
            let is_set = native.positions(key_hash).all(|position| bits[&position]);
            Verdict::of(is_set && !tombstones.contains(&key_hash.id()))
        };
        Ok(key_hashes.iter().map(verdict).collect())
    }

    /// The filter of RedisBloom, whole, brought to `target` in memory.
    ///
    /// # Errors
    /// As [`Folder::recover`](super::Folder::recover); where it is a filter of another kind, and
    /// where there is no memory for it.
    pub fn filter(&self, target: Target) -> Result<Filter, RecoveryError> {
        self.rebuilt(target).map(|(filter, _)| filter)
    }

    /// The same with what of it is to pass once more: the 128 bits that the layout makes of each.
    ///
    /// # Errors
    /// As [`AtRest::filter`].
    pub fn rebuilt(&self, target: Target) -> Result<(Filter, HashSet<u128>), RecoveryError> {
        let header = self.header.as_ref().ok_or(RecoveryError::Fresh)?;
        let mut rebuilt = Rebuilt::new(header)?;
        let way = recovery::find(&self.dir, header, target, |snapshot| {
            rebuilt.clear();
            snapshot.load(&self.dir, header, &mut rebuilt)
        })?;
        way.replay(&self.dir, header, |entry| recovery::restore(&mut rebuilt, entry))?;
        rebuilt.finish()
    }
}

/// Bit `at` of a shard's bytes: little endian words of 64 are bytes of 8.
fn bit(bytes: &[u8], at: u64) -> bool {
    // A shard fits into memory.
    let byte = usize::try_from(at / 8).ok().and_then(|byte| bytes.get(byte));
    byte.is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Whether a file is part of what is remembered.
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
        // Beginning leaves this where it does not come to the header.
        [only] if snapshot::seq(&only.name).is_some() && snapshot::EMPTY.contains(&only.len) => {
            Ok(None)
        }
        [first, ..] => Err(OpenError::HeaderMissing { dir: path(), file: first.name.clone() }),
    }
}
