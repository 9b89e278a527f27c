//! Dropping what lies beyond a batch, so that the log can go on from there.
//!
//! Killed, or without power, at any point, it leaves a folder that leads to the same batch:
//!
//! 1. Adds among the dropped batches count all the same. Where there are any, the file that the
//!    first dropped batch is in is written anew aside, up to that batch and with those adds behind,
//!    and put in the old one's place on the disk. Files behind it do not follow it any more.
//! 2. Files behind it go, newest first, and snapshots that are to go; on the disk.
//! 3. Where the file was not written anew, it is cut, and synced.
//!
//! Only then are the dropped records' numbers used again.

use std::io;

use super::dir::{Dir, aside};
use super::disk::read_exact_at;
use super::error::RecoveryError;
use super::history::{Place, Segments};
use super::record::{self, Kind};
use super::segment;
use crate::storage::head::{Head, Position};

/// Bytes that are copied at once.
const COPY: usize = 1 << 20;

/// What is to be dropped.
#[derive(Debug)]
pub(super) struct Plan {
    /// Where the records that stay as they are begin and end, the position that a walk started at
    /// included.
    pub(super) from: Position,
    pub(super) end: Position,
    /// Where in the files they end; `None` if no file comes up to them.
    pub(super) place: Option<Place>,
    /// Whether there are adds behind that.
    pub(super) keep_adds: bool,
    /// Snapshots that are to go.
    pub(super) snapshots: Vec<String>,
}

/// What was dropped of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Batches that Redis does not know.
    pub batches: u64,
    /// Fingerprints of theirs.
    pub(crate) fingerprints: u64,
    /// Bytes, those that could not be read included.
    pub(crate) bytes: u64,
}

/// The file that the log goes on in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) name: String,
    pub(super) len: u64,
}

/// Where the log ends, and the file that it can go on in, if there is one.
pub(super) type Stand = (Position, Option<Tail>);

/// Drops it: where the log ends then, and the file that it goes on in, if there is one that can.
pub(super) fn apply(dir: &Dir, filter: u64, plan: &Plan) -> Result<Stand, RecoveryError> {
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
    for name in &plan.snapshots {
        dir.remove(name)?;
    }
    let answer = dir.requests().begin("a sync of the folder");
    dir.sync()?;
    drop(answer);
    // Where nothing is to be cut this sees to it that what a process without fsync has written is
    // on the disk before the log goes on behind it.
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

/// Puts the file that `place` is in anew, up to there and with the adds that lie behind.
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
