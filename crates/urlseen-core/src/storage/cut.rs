//! Drops everything after a batch, so that the log can continue there.
//!
//! If the process is killed or the power fails at any point, the folder still leads to the same
//! batch:
//!
//! 1. Adds and forgets among the dropped batches count all the same. If there are any, the file of
//!    the first dropped batch is written anew aside: up to that batch, and then those records. It
//!    replaces the old file, on the disk. The files after it do not follow it any more.
//! 2. The files after it are removed, newest first, and the snapshots to drop; on the disk.
//! 3. If the file was not written anew, it is cut and synced.
//!
//! Only then are the numbers of the dropped records used again.

use std::io;

use super::dir::{Dir, aside};
use super::disk::read_exact_at;
use super::error::RecoveryError;
use super::history::{Place, Segments};
use super::record::{self, Kind};
use super::segment;
use crate::storage::head::{Head, Position};

/// Number of bytes to copy together.
const COPY: usize = 1 << 20;

/// Files and records to drop.
#[derive(Debug)]
pub(super) struct Plan {
    /// First and last position of the records that stay as they are. A walk began at the first.
    pub(super) from: Position,
    pub(super) end: Position,
    /// Place of that end in the files; `None` if no file reaches it.
    pub(super) place: Option<Place>,
    /// True if adds or forgets follow.
    pub(super) keep_adds: bool,
}

/// Dropped part of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Dropped batches, which Redis does not know.
    pub batches: u64,
    /// Fingerprints of the dropped batches.
    pub(crate) fingerprints: u64,
    /// Dropped bytes, with those that could not be read.
    pub(crate) bytes: u64,
}

/// File in which the log continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) name: String,
    pub(super) len: u64,
}

/// End of the log, and the file in which it can continue, if there is one.
pub(super) type Stand = (Position, Option<Tail>);

/// Carries out the plan. Returns the end of the log, and the file in which it can continue, if
/// there is one.
pub(super) fn apply(
    dir: &Dir,
    filter: u64,
    plan: &Plan,
    snapshots: &[String],
) -> Result<Stand, RecoveryError> {
    let segments = Segments::list(dir)?;
    let mut end = plan.end;
    let mut tail = None;
    if let Some(place) = plan.place {
        let name = segment::name(place.file);
        let mut len = place.offset;
        if plan.keep_adds {
            (end, len) = rewrite(dir, filter, &segments, plan, place, &name)?;
        }
        tail = Some(Tail { name, len });
    }
    for (file, _) in segments.iter().rev() {
        let is_beyond = match plan.place {
            Some(place) => file > place.file,
            None => file >= plan.end.number,
        };
        if is_beyond {
            dir.remove(&segment::name(file))?;
        }
    }
    for name in snapshots {
        dir.remove(name)?;
    }
    let answer = dir.requests().begin("a sync of the folder");
    dir.sync()?;
    drop(answer);
    // Even if nothing is cut, this puts the records of a process without fsync on the disk, before
    // the log continues after them.
    for (file, len) in segments.iter() {
        let Some(place) = plan.place.filter(|place| file <= place.file) else { continue };
        let next = segments.iter().map(|(other, _)| other).find(|&other| other > file);
        if next.is_some_and(|next| next <= plan.from.number) {
            continue;
        }
        let open = dir.append(&segment::name(file))?;
        if file == place.file && !plan.keep_adds && place.offset < len {
            open.set_len(place.offset)?;
        }
        let _answer = dir.requests().begin("a sync of the log");
        open.sync()?;
    }
    Ok((end, tail))
}

/// Writes the file of `place` anew: up to `place`, and then the adds and forgets from after it.
fn rewrite(
    dir: &Dir,
    filter: u64,
    segments: &Segments,
    plan: &Plan,
    place: Place,
    name: &str,
) -> Result<(Position, u64), RecoveryError> {
    let old = dir.open(name)?;
    let new = dir.create(&aside(name))?;
    let (mut offset, mut buffer) = (0, Vec::with_capacity(COPY));
    while offset < place.offset {
        let left = usize::try_from(place.offset - offset).unwrap_or(usize::MAX);
        buffer.resize(COPY.min(left), 0);
        read_exact_at(&*old, &mut buffer, offset)?;
        new.append(&buffer)?;
        offset += buffer.len() as u64;
    }
    buffer.clear();
    let (mut end, mut result) = (plan.end, Ok(()));
    segments.walk(dir, filter, plan.from, |_, entry| {
        if entry.head.kind != Kind::Batch
            && entry.head.position.number > plan.end.number
            && result.is_ok()
        {
            end.number += 1;
            let before: Head = end.head;
            let added = entry.fingerprints();
            result =
                record::encode(entry.head.kind, before, end, &added, &mut buffer).and_then(|()| {
                    offset += buffer.len() as u64;
                    new.append(&buffer)
                });
            buffer.clear();
        }
    })?;
    result.map_err(|error: io::Error| RecoveryError::Io(error))?;
    let answer = dir.requests().begin("a sync of the log");
    new.sync()?;
    drop(answer);
    dir.replace(name)?;
    dir.sync()?;
    Ok((end, offset))
}
