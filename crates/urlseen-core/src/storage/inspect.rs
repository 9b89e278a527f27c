//! Inspects a folder without changing it, even while another process writes to it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::archive::{self, Standing};
use super::damage::{Damage, sound, sound_if_there};
use super::dir::Dir;
use super::disk::{Disk, Lock, RealDisk};
use super::error::OpenError;
use super::header::Header;
use super::history::Segments;
use super::lock::{Holder, LOCK};
use super::reader::read_header;
use super::record::Kind;
use super::segment::{self, Segment};
use super::snapshot::{Snapshots, Summary};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// Most attempts at a folder from which files vanish meanwhile, before it counts as unreadable.
const LOOKS: u32 = 16;

/// Content of a storage folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The header; `None` if the folder is new.
    pub header: Option<Header>,
    /// The process that writes to the folder, if there is one that names itself.
    pub holder: Option<Holder>,
    /// True if a process writes to the folder.
    pub is_held: bool,
    /// Snapshots whose header and trailer can be read, oldest first.
    pub snapshots: Vec<SnapshotLook>,
    /// Files of the log whose headers can be read, oldest first.
    pub segments: Vec<SegmentLook>,
    /// Extent of the archive.
    pub archive: Standing,
    /// End of the log; end of the newest snapshot if no log follows it.
    pub last: Option<Position>,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Parts that cannot be read. In a folder that a process writes to, this can be data that is
    /// just being written.
    pub damages: Vec<Damage>,
}

/// A snapshot in a folder. Of its shards only the heads were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotLook {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// The lowest position of any shard: replay starts there.
    pub first: Position,
    /// The highest position of any shard.
    pub last: Position,
    /// Time at which it was begun, in milliseconds since 1970.
    pub begun: u64,
    /// Time at which it was finished, in milliseconds since 1970.
    pub finished: u64,
    /// Sum of the keys in all shards.
    pub keys: u64,
}

/// A file of the log in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentLook {
    /// Name of the log's file.
    pub name: String,
    /// Bytes of the log's file.
    pub bytes: u64,
    /// Position that its first record follows.
    pub follows: Position,
    /// Position of its last record that can be read.
    pub last: Position,
    /// Number of records up to there.
    pub records: u64,
    /// Number of fingerprints in those records.
    pub fingerprints: u64,
}

/// Reads the header of a folder; `None` if it is new, or there is no folder. Writes nothing.
///
/// # Errors
/// If the disk fails, or the header cannot be read.
pub fn header(path: &Path) -> Result<Option<Header>, OpenError> {
    let dir = Dir::new(Arc::new(RealDisk), path);
    if !path.is_dir() {
        return Ok(None);
    }
    let files = dir.list().map_err(|reason| OpenError::Io { dir: path.to_owned(), reason })?;
    read_header(&dir, &files)
}

/// Reads the content of a folder. Writes nothing.
///
/// # Errors
/// If the disk fails, or the header cannot be read. Other damage is part of the result.
pub fn look(dir: &Path) -> Result<Look, OpenError> {
    look_on(Arc::new(RealDisk), dir)
}

pub(super) fn look_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Look, OpenError> {
    let dir = Dir::new(disk, path);
    for _ in 1..LOOKS {
        match look_once(&dir, path) {
            // A running daemon pruned a file between the list and the look.
            Err(OpenError::Missing { .. }) if dir.list().is_ok() => {}
            looked => return looked,
        }
    }
    look_once(&dir, path)
}

fn look_once(dir: &Dir, path: &Path) -> Result<Look, OpenError> {
    let failed = |reason| OpenError::unreadable(path, reason);
    let files = dir.list().map_err(failed)?;
    let header = read_header(dir, &files)?;
    // Releases the lock immediately, so that no other process finds the folder locked.
    let busy = if files.iter().any(|file| file.name == LOCK) {
        dir.lock(LOCK, Lock::Shared).map_err(failed)?.err()
    } else {
        None
    };
    let mut look = Look {
        header: None,
        is_held: busy.is_some(),
        holder: busy.and_then(|busy| Holder::read(&*busy.0)),
        snapshots: Vec::new(),
        segments: Vec::new(),
        archive: Standing::default(),
        last: None,
        bytes: files.iter().map(|file| file.len).sum(),
        damages: Vec::new(),
    };
    if let Some(header) = header {
        look.at_snapshots(dir, &header).map_err(failed)?;
        look.at_log(dir, &header).map_err(failed)?;
        look.archive = archive::standing(dir, &header).map_err(failed)?;
        look.header = Some(header);
    }
    Ok(look)
}

impl Look {
    fn at_snapshots(&mut self, dir: &Dir, header: &Header) -> io::Result<()> {
        let Snapshots { sound, damaged, .. } = Snapshots::list(dir, header)?;
        self.damages = damaged;
        for summary in sound.into_iter().rev() {
            let mut keys = 0;
            let looked = summary.sections(dir, header, |section, _| {
                keys += section.keys;
                Ok(())
            });
            if let Err(error) = looked {
                self.damages.push(error.damage()?);
            }
            let Summary { name, bytes, first, last, begun, finished, .. } = summary;
            self.last = Some(last);
            self.snapshots.push(SnapshotLook { name, bytes, first, last, begun, finished, keys });
        }
        Ok(())
    }

    fn at_log(&mut self, dir: &Dir, header: &Header) -> io::Result<()> {
        for (file, _) in Segments::list(dir)?.iter() {
            let name = segment::name(file);
            let mut segment = match Segment::open(dir, &name, header.filter()) {
                Ok(segment) => segment,
                Err(error) => {
                    self.damages.push(error.damage()?);
                    continue;
                }
            };
            let (mut records, mut fingerprints) = (0, 0);
            loop {
                match segment.next() {
                    Ok(Some(entry)) => {
                        records += 1;
                        fingerprints += u64::from(entry.head.count);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.damages.push(error.damage()?);
                        break;
                    }
                }
            }
            let last = segment.position();
            if self.last.is_none_or(|known| known.number < last.number) {
                self.last = Some(last);
            }
            let (bytes, follows) = (segment.len(), segment.follows());
            let before = self.segments.last().map(|before| before.last);
            if before.is_some_and(|before| before != follows) {
                let what = "the file does not follow the one before";
                self.damages.push(Damage { file: name.clone(), offset: 0, what });
            }
            let segment = SegmentLook { name, bytes, follows, last, records, fingerprints };
            self.segments.push(segment);
        }
        Ok(())
    }
}

/// Last record about a fingerprint in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A batch in which it was unseen; it has been seen since.
    Batch(Position),
    /// Adds of a client or of an import.
    Added(Position),
    /// Forgets: it passes once more.
    Forgotten(Position),
}

/// Finds the last record about a fingerprint in a folder's log. Writes nothing and takes no lock: a
/// daemon may write to the folder.
///
/// # Errors
/// If the disk fails, or the header cannot be read. Damage only ends the search in one file of the
/// log.
pub fn named(path: &Path, fingerprint: &Fingerprint) -> Result<Option<Named>, OpenError> {
    let dir = Dir::new(Arc::new(RealDisk), path);
    let failed = |reason| OpenError::Io { dir: path.to_owned(), reason };
    let files = dir.list().map_err(failed)?;
    let Some(header) = read_header(&dir, &files)? else { return Ok(None) };
    let mut last = None;
    for (file, _) in Segments::list(&dir).map_err(failed)?.iter() {
        let segment = Segment::open(&dir, &segment::name(file), header.filter());
        if let Some(mut segment) = sound_if_there(segment).map_err(failed)? {
            search(&mut segment, fingerprint, &mut last).map_err(failed)?;
        }
    }
    Ok(last)
}

fn search(
    segment: &mut Segment,
    fingerprint: &Fingerprint,
    last: &mut Option<Named>,
) -> io::Result<()> {
    while let Some(Some(entry)) = sound(segment.next())? {
        if entry.fingerprints().contains(fingerprint) {
            let position = entry.head.position;
            *last = Some(match entry.head.kind {
                Kind::Batch => Named::Batch(position),
                Kind::Adds => Named::Added(position),
                Kind::Forgets => Named::Forgotten(position),
            });
        }
    }
    Ok(())
}
