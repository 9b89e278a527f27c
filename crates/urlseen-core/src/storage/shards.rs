//! The bits of a native filter as a folder has them, shard by shard, for somebody who only reads.

use std::collections::BTreeSet;
use std::path::Path;

use super::damage::Damage;
use super::dir::Dir;
use super::disk::{DiskFile, read_exact_at};
use super::error::{OpenError, RecoveryError};
use super::header::Header;
use super::reader::AtRest;
use super::record::Kind;
use super::recovery::{self, Way};
use super::scan::Target;
use super::snapshot::Summary;
use crate::filter::native::{KeyHash, Native};
use crate::filter::{SHARDS, ShardId};

/// How many fingerprints of the log are held at once. Where it has more, it is read several times.
const MOST: u64 = 1 << 22;

/// Reads the shards of a native filter in order, a shard at a time in memory.
#[derive(Debug)]
pub struct ShardReader {
    /// Keeps writers out, where there are none.
    folder: AtRest,
    native: Native,
    file: Box<dyn DiskFile>,
    snapshot: String,
    places: Vec<Place>,
    log: Option<Log>,
    /// By shard, and what the layout makes of each.
    tombstones: BTreeSet<(ShardId, u128)>,
}

/// Where a shard's bits are in the snapshot.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: u64,
    crc: u32,
}

/// What the log has behind the snapshot.
#[derive(Debug)]
struct Log {
    way: Way,
    /// The number of its last record.
    last: u64,
    /// How many shards' keys are held at once.
    group: usize,
    /// The first shard behind those that are held.
    end: usize,
    keys: Vec<Vec<KeyHash>>,
}

impl ShardReader {
    /// Reads the filter of an open folder as far as the folder goes: the newest snapshot and the
    /// log behind it.
    ///
    /// # Errors
    /// Where the folder is new or has a filter of another kind, and as
    /// [`Folder::recover`](super::Folder::recover).
    pub fn of_folder(folder: AtRest) -> Result<Self, RecoveryError> {
        let header = folder.header().ok_or(RecoveryError::Fresh)?.clone();
        let dir = folder.dir.clone();
        let native = header.native().ok_or_else(other_layout)?;
        let mut places = Vec::new();
        let way = recovery::find(&dir, &header, Target::Last, |snapshot| {
            let found = self::places(snapshot, &dir, &header)?;
            Ok(found.map(|found| places = found))
        })?;
        let file = dir.open(&way.snapshot.name)?;
        let tombstones = way.snapshot.tombstones(&dir)?.map_err(damaged)?;
        let mut tombstones: BTreeSet<_> = tombstones.into_iter().collect();
        let mut count = 0;
        let walk = way.replay(&dir, &header, |entry| {
            count += u64::from(entry.head.count);
            // Nothing is forgotten in most folders.
            if entry.head.kind == Kind::Forgets || !tombstones.is_empty() {
                for fingerprint in entry.fingerprints() {
                    let key_hash = native.key_hash(&fingerprint);
                    let key = (key_hash.shard(), key_hash.id());
                    if entry.head.kind == Kind::Forgets {
                        tombstones.insert(key);
                    } else {
                        tombstones.remove(&key);
                    }
                }
            }
        })?;
        let rounds = usize::try_from(count / MOST + 1).unwrap_or(SHARDS).min(SHARDS);
        let snapshot = way.snapshot.name.clone();
        let log = Log {
            way,
            last: walk.end.number,
            group: SHARDS.div_ceil(rounds),
            end: 0,
            keys: Vec::new(),
        };
        Ok(Self { folder, native, file, snapshot, places, log: Some(log), tombstones })
    }

    /// Reads one snapshot of a folder, by the path of its file.
    ///
    /// # Errors
    /// Where it is none, is damaged, or the folder's header cannot be read.
    pub fn of_snapshot(path: &Path) -> Result<Self, OpenError> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let failed = |reason| OpenError::Io { dir: parent.to_owned(), reason };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (folder, _) = AtRest::open_beside(parent)?;
        let other = |what| failed(std::io::Error::other(what));
        let header = folder.header().cloned().ok_or_else(|| other("the folder is new"))?;
        let native = header.native().ok_or_else(|| other(OTHER_KIND))?;
        let dir = folder.dir.clone();
        let damaged = |damage: Damage| failed(std::io::Error::other(damage.to_string()));
        let summary = Summary::read(&dir, &name, &header).map_err(failed)?.map_err(damaged)?;
        let places = self::places(&summary, &dir, &header).map_err(failed)?.map_err(damaged)?;
        let file = dir.open(&name).map_err(failed)?;
        let tombstones = summary.tombstones(&dir).map_err(failed)?.map_err(damaged)?;
        let tombstones = tombstones.into_iter().collect();
        Ok(Self { folder, native, file, snapshot: name, places, log: None, tombstones })
    }

    /// What the folder was made for.
    pub fn header(&self) -> &Header {
        self.folder.header().expect("it was there when this was made")
    }

    /// How fingerprints are placed.
    pub fn native(&self) -> Native {
        self.native
    }

    /// The name of the snapshot that is read.
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// What was forgotten and has not passed again: shards, and what the layout makes of each key.
    pub fn tombstones(&self) -> &BTreeSet<(ShardId, u128)> {
        &self.tombstones
    }

    /// A shard's bits, as [`Shards::bytes`](crate::filter::Shards::bytes) has them. They are asked
    /// for in order.
    ///
    /// # Errors
    /// Where the disk fails, or the snapshot is damaged there; where what is needed of the log was
    /// dropped meanwhile by whoever writes to the folder.
    pub fn read(&mut self, shard: ShardId) -> Result<Vec<u8>, RecoveryError> {
        let Place { offset, length, crc } = self.places[shard.index()];
        let full = self.native.geometry().shard_bits() / 8;
        let mut bytes = vec![0; usize::try_from(full).map_err(std::io::Error::other)?];
        if length > 0 {
            read_exact_at(&*self.file, &mut bytes, offset)?;
            if crc32c::crc32c(&bytes) != crc {
                let what = "the bits of a shard are damaged";
                return Err(damaged(Damage { file: self.snapshot.clone(), offset, what }));
            }
        }
        let Some(log) = &mut self.log else { return Ok(bytes) };
        if shard.index() >= log.end || shard.index() + log.keys.len() < log.end {
            log.gather(&self.folder, self.native, shard.index())?;
        }
        let first = log.end - log.keys.len();
        for key_hash in std::mem::take(&mut log.keys[shard.index() - first]) {
            for position in self.native.positions(key_hash) {
                // A shard fits into memory.
                #[allow(clippy::cast_possible_truncation)]
                let byte = (position / 8) as usize;
                bytes[byte] |= 1 << (position % 8);
            }
        }
        Ok(bytes)
    }
}

impl Log {
    /// Gathers the keys of shards from `first` on.
    fn gather(
        &mut self,
        folder: &AtRest,
        native: Native,
        first: usize,
    ) -> Result<(), RecoveryError> {
        self.end = (first + self.group).min(SHARDS);
        self.keys = vec![Vec::new(); self.end - first];
        let Self { way, last, keys, .. } = self;
        let header = folder.header().ok_or(RecoveryError::Fresh)?;
        let walk = way.replay(&folder.dir, header, |entry| {
            if entry.head.kind == Kind::Forgets || entry.head.position.number > *last {
                return;
            }
            for fingerprint in entry.fingerprints() {
                let key_hash = native.key_hash(&fingerprint);
                let place = key_hash.shard().index().wrapping_sub(first);
                if let Some(keys) = keys.get_mut(place) {
                    keys.push(key_hash);
                }
            }
        })?;
        if walk.end.number < *last {
            let words = "the folder was worked on, and what was being read of its log is gone; \
                         give the command again";
            return Err(RecoveryError::Io(std::io::Error::other(words)));
        }
        Ok(())
    }
}

const OTHER_KIND: &str = "the filter has no shards: it has another kind than native";

fn other_layout() -> RecoveryError {
    RecoveryError::Io(std::io::Error::other(OTHER_KIND))
}

fn damaged(damage: Damage) -> RecoveryError {
    RecoveryError::NoSnapshot { damage: Some(damage) }
}

/// Where the shards' bits are in a snapshot.
fn places(
    snapshot: &Summary,
    dir: &Dir,
    header: &Header,
) -> std::io::Result<Result<Vec<Place>, Damage>> {
    let mut places = Vec::with_capacity(SHARDS);
    let read = snapshot.sections(dir, header, |_, body| {
        let (offset, length, crc) = body.place();
        places.push(Place { offset, length, crc });
        Ok(Ok(()))
    })?;
    Ok(read.map(|()| places))
}
