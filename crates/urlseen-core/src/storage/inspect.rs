//! Looking at a folder without changing it, whether somebody writes to it or not.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::archive::{self, Standing};
use super::damage::Damage;
use super::dir::Dir;
use super::disk::{Disk, Lock, RealDisk};
use super::error::OpenError;
use super::header::Header;
use super::history::Segments;
use super::lock::{Holder, LOCK};
use super::reader::read_header;
use super::record::Kind;
use super::segment::{self, Segment, Stop};
use super::snapshot::{Snapshots, Summary};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// Looks at a folder in which files vanish each time, before it counts as unreadable.
const LOOKS: u32 = 16;

/// What is in a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// What it was made for; `None` if it is new.
    pub header: Option<Header>,
    /// Who writes to it, if anybody does and says so.
    pub holder: Option<Holder>,
    /// Whether anybody does.
    pub is_held: bool,
    /// Its snapshots, oldest first; those whose two ends can be read.
    pub snapshots: Vec<SnapshotLook>,
    /// The files of its log, oldest first; those whose headers can be read.
    pub segments: Vec<SegmentLook>,
    /// The extent of its archive.
    pub archive: Standing,
    /// Where the log ends, or the newest snapshot if there is no log behind it.
    pub last: Option<Position>,
    /// Bytes of all its files.
    pub bytes: u64,
    /// What cannot be read. In a folder that is being written to, this can be what was just being
    /// written.
    pub damages: Vec<Damage>,
}

/// A snapshot as it lies there. Of its shards only the sizes were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotLook {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The lowest position of any shard: where replay starts.
    pub first: Position,
    /// The highest position of any shard.
    pub last: Position,
    /// When it was begun, in milliseconds since 1970.
    pub begun: u64,
    /// When it was finished, in milliseconds since 1970.
    pub finished: u64,
    /// Keys that all shards count.
    pub keys: u64,
}

/// A file of the log as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentLook {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What its first record follows.
    pub follows: Position,
    /// Its last record that can be read.
    pub last: Position,
    /// Records up to there.
    pub records: u64,
    /// Fingerprints in them.
    pub fingerprints: u64,
}

/// What a folder was made for; `None` if it is new, or no folder. Writes nothing.
///
/// # Errors
/// Where the disk fails, and where the header cannot be read.
pub fn header(path: &Path) -> Result<Option<Header>, OpenError> {
    let dir = Dir::new(Arc::new(RealDisk), path);
    if !path.is_dir() {
        return Ok(None);
    }
    let files = dir.list().map_err(|reason| OpenError::Io { dir: path.to_owned(), reason })?;
    read_header(&dir, &files)
}

/// Reads what is in a folder. Writes nothing.
///
/// # Errors
/// Where the disk fails, and where the header cannot be read. Other damage is looked at.
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
    // Let go at once, so that nobody finds the folder locked for being looked at.
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
                Ok(Ok(()))
            })?;
            self.damages.extend(looked.err());
            let Summary { name, bytes, first, last, begun, finished, .. } = summary;
            self.last = Some(last);
            self.snapshots.push(SnapshotLook { name, bytes, first, last, begun, finished, keys });
        }
        Ok(())
    }

    fn at_log(&mut self, dir: &Dir, header: &Header) -> io::Result<()> {
        for (file, _) in Segments::list(dir)?.iter() {
            let name = segment::name(file);
            let mut segment = match Segment::open(dir, &name, header.filter())? {
                Ok(segment) => segment,
                Err(damage) => {
                    self.damages.push(damage);
                    continue;
                }
            };
            let (mut records, mut fingerprints) = (0, 0);
            loop {
                match segment.next() {
                    Ok(entry) => {
                        records += 1;
                        fingerprints += u64::from(entry.head.count);
                    }
                    Err(Stop::End) => break,
                    Err(Stop::Io(error)) => return Err(error),
                    Err(Stop::Damaged(damage)) => {
                        self.damages.push(damage);
                        break;
                    }
                    Err(Stop::UnknownKind(_)) => {
                        let (file, offset) = (name.clone(), segment.offset());
                        let what = "the record is of a kind that this version does not know";
                        self.damages.push(Damage { file, offset, what });
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

/// The last that a log says of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// It was unseen in this batch, and has been seen since.
    Batch(Position),
    /// It was added by somebody who asked, or by an import.
    Added(Position),
    /// It was forgotten, and is to pass once more.
    Forgotten(Position),
}

/// The last that the log of a folder says of a fingerprint, as far back as there is a log. Writes
/// nothing and takes no lock: a daemon may be working on the folder.
///
/// # Errors
/// Where the disk fails, and where the header cannot be read. Damage in the log ends a file of it.
pub fn named(path: &Path, fingerprint: &Fingerprint) -> Result<Option<Named>, OpenError> {
    let dir = Dir::new(Arc::new(RealDisk), path);
    let failed = |reason| OpenError::Io { dir: path.to_owned(), reason };
    let files = dir.list().map_err(failed)?;
    let Some(header) = read_header(&dir, &files)? else { return Ok(None) };
    let mut last = None;
    for (file, _) in Segments::list(&dir).map_err(failed)?.iter() {
        match Segment::open(&dir, &segment::name(file), header.filter()) {
            Ok(Ok(mut segment)) => search(&mut segment, fingerprint, &mut last).map_err(failed)?,
            Ok(Err(_)) => {}
            // Dropped meanwhile, as it was not needed any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(last)
}

fn search(
    segment: &mut Segment,
    fingerprint: &Fingerprint,
    last: &mut Option<Named>,
) -> io::Result<()> {
    loop {
        match segment.next() {
            Ok(entry) => {
                if entry.fingerprints().contains(fingerprint) {
                    let position = entry.head.position;
                    *last = Some(match entry.head.kind {
                        Kind::Batch => Named::Batch(position),
                        Kind::Adds => Named::Added(position),
                        Kind::Forgets => Named::Forgotten(position),
                    });
                }
            }
            Err(Stop::Io(error)) => return Err(error),
            Err(_) => return Ok(()),
        }
    }
}
