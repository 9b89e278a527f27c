//! Whether the log names a fingerprint: then it is certain what the filter can only believe.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::disk::{Dir, RealDisk};
use super::error::OpenError;
use super::folder::read_header;
use super::history::Segments;
use super::record::Kind;
use super::segment::{self, Segment, Stop};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// The last that a log says of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// It was unseen in this batch, and has been seen since.
    Batch(Position),
    /// It was added by somebody who asked, or by an import.
    Added(Position),
    /// It was forgotten, and is to pass once more.
    Tombstones(Position),
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
                        Kind::Forgets => Named::Tombstones(position),
                    });
                }
            }
            Err(Stop::Io(error)) => return Err(error),
            Err(_) => return Ok(()),
        }
    }
}
