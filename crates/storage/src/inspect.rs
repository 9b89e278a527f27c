//! Inspection of a folder without changes, even while another process writes to the folder.

use std::io;
use std::path::Path;

use serde::Serialize;
use urlseen_filter::LetThrough;
use urlseen_fingerprint::Fingerprint;

use super::clock::Timing;
use super::disk::{Dir, RealDisk};
use super::error::{Damage, Holder, OpenError};
use super::folder::Folder;
use super::header::{Begun, Header, Notes};
use super::history::{Segments, read_header};
use super::prune::{self, ArchiveState};
use super::reader::AtRest;
use super::record::RecordKind;
use super::segment::{self, LogEntry, Segment};
use super::snapshot::{Snapshot, Snapshots};
use crate::head::Position;

/// Maximum number of attempts to read a folder while another process removes files.
const LOOKS: u32 = 16;

/// Content of a storage folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// The header; `None` if the folder is new.
    pub header: Option<Header>,
    /// Process that writes to the folder, if the lock file names it.
    pub holder: Option<Holder>,
    /// True if a process writes to the folder.
    pub is_held: bool,
    /// Snapshots whose header and end can be read, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// Files of the log whose headers can be read, oldest first.
    pub segments: Vec<SegmentLook>,
    /// Size and completeness of the archive.
    pub archive: ArchiveState,
    /// End of the log. If no log follows the newest snapshot, the end of the snapshot.
    pub last: Option<Position>,
    /// Number of bytes of all files in the folder.
    pub bytes: u64,
    /// Unreadable data. In a folder that a process writes to, the process may still be writing that
    /// data.
    pub damages: Vec<Damage>,
}

/// A file of the log in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentLook {
    /// Name of the log's file.
    pub name: String,
    /// Bytes of the log's file.
    pub bytes: u64,
    /// Position of the last record before the file.
    pub(crate) follows: Position,
    /// Position of its last record that can be read.
    pub last: Position,
    /// Number of readable records.
    pub records: u64,
    /// Number of fingerprints in the readable records.
    pub fingerprints: u64,
}

/// Reads the header of a folder. Returns `None` for a new or missing folder. Writes nothing.
///
/// # Errors
/// If the disk fails, or the header cannot be read.
pub fn header(path: &Path) -> Result<Option<Header>, OpenError> {
    if !path.is_dir() {
        return Ok(None);
    }
    Ok(read_header(&RealDisk::at(path))?.map(|begun| begun.header))
}

/// Reads what the clocks showed when the last run began. Returns `None` if the folder
/// does not have it. Writes nothing.
pub fn timing(path: &Path) -> Option<Timing> {
    Notes::read(&RealDisk::at(path)).ok()?.timing
}

/// Reads the content of a folder. Writes nothing.
///
/// # Errors
/// If the disk fails, or the header cannot be read. Other damage is part of the result.
pub fn look(dir: &Path) -> Result<Look, OpenError> {
    look_on(&RealDisk::at(dir))
}

impl Folder {
    /// Reads the content of the folder. Writes nothing.
    ///
    /// # Errors
    /// If the disk fails, or the header cannot be read.
    pub fn look(&self) -> Result<Look, OpenError> {
        look_on(&self.dir)
    }
}

pub(super) fn look_on(dir: &Dir) -> Result<Look, OpenError> {
    for _ in 1..LOOKS {
        match look_once(dir) {
            // A running daemon pruned a file after this process had listed it.
            Err(OpenError::Missing { .. }) if dir.list().is_ok() => {}
            looked => return looked,
        }
    }
    look_once(dir)
}

fn look_once(dir: &Dir) -> Result<Look, OpenError> {
    // Releases the lock immediately, so that no other process finds the folder locked.
    let (AtRest { begun, .. }, beside) = AtRest::look(dir)?;
    let mut look = Look {
        is_held: beside.is_some(),
        holder: beside.and_then(|beside| beside.holder),
        ..Look::default()
    };
    look.fill(dir, begun.as_ref()).map_err(|reason| OpenError::unreadable(dir.path(), reason))?;
    look.header = begun.map(|begun| begun.header);
    Ok(look)
}

impl Look {
    fn fill(&mut self, dir: &Dir, begun: Option<&Begun>) -> io::Result<()> {
        self.bytes = dir.list()?.iter().map(|file| file.len).sum();
        if let Err(error) = Notes::read(dir) {
            self.damages.push(error.damage()?);
        }
        let Some(begun) = begun else { return Ok(()) };
        self.archive = prune::archive_state(begun)?;
        let Snapshots { sound, damaged, .. } = Snapshots::list(begun)?;
        self.damages.extend(damaged);
        self.last = sound.first().map(|newest| newest.last);
        self.snapshots = sound.into_iter().rev().collect();
        let mut gaps = Vec::new();
        let damages = segment::each(begun, Segments::list(begun)?.names(), |mut segment| {
            let (mut records, mut fingerprints) = (0, 0);
            let read = segment.each(u64::MAX, |entry| {
                records += 1;
                fingerprints += u64::from(entry.head.count);
            });
            let last = segment.position;
            if self.last.is_none_or(|known| known.number < last.number) {
                self.last = Some(last);
            }
            let Segment { name, len: bytes, follows, .. } = segment;
            let before = self.segments.last().map(|before| before.last);
            if before.is_some_and(|before| before != follows) {
                let what = "the file does not follow the one before";
                gaps.push(Damage::new(&name, 0, what));
            }
            let segment = SegmentLook { name, bytes, follows, last, records, fingerprints };
            self.segments.push(segment);
            read
        })?;
        self.damages.extend(damages.into_iter().chain(gaps));
        Ok(())
    }
}

/// Finds the last record about a fingerprint in a folder's log. Writes nothing and takes no lock: a
/// daemon may write to the folder. Returns its kind and position, and when and for how long it let
/// the fingerprint through.
///
/// # Errors
/// If the disk fails, or the header cannot be read. Damage in a file of the log is no error: it
/// only ends the search in that file.
pub fn named(
    path: &Path,
    fingerprint: &Fingerprint,
) -> Result<Option<(RecordKind, Position, LetThrough)>, OpenError> {
    let failed = |reason| OpenError::Io { dir: path.to_owned(), reason };
    let Some(begun) = read_header(&RealDisk::at(path))? else { return Ok(None) };
    let mut last = None;
    let mut find = |entry: LogEntry| {
        let place = entry.body.fingerprints.iter().position(|other| other == fingerprint);
        let Some(place) = place else { return };
        last = Some((entry.head.kind, entry.head.position, entry.let_through(place)));
    };
    let segments = Segments::list(&begun).map_err(failed)?;
    segment::each(&begun, segments.names(), |mut file| file.each(u64::MAX, &mut find))
        .map_err(failed)?;
    Ok(last)
}
