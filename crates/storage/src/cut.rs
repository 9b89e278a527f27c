//! Deletes all batches after a head, so that the log can continue there.
//!
//! If the process is killed or the power fails during these steps, the next start still finds the
//! head:
//!
//! 1. A new file replaces the file of the first dropped batch. It has the records before that
//!    batch, and then the records after the head that are no batches, which stay. Later files no
//!    longer follow the new file. To cut the file in place would be wrong: if the power fails
//!    before the sync, some disks return blocks of zeros beyond the cut, in records that were
//!    synced.
//! 2. The later files of the log are removed, newest first. Then the snapshots to drop are removed,
//!    and the folder is synced.
//!
//! After that, new records can use the numbers of the dropped records.

use std::io;

use super::disk::{DiskFile, aside, read_exact_at};
use super::history::{LogPlace, Plan, Segments, Stand};
use super::record::{self, RecordKind};
use super::requests::LOG_SYNC;
use super::segment::{self, LogEntry};
use crate::head::{Head, Position};

/// Number of bytes to copy at a time.
const COPY: usize = 1 << 20;

/// Carries out the plan. Returns the end of the log and its place.
pub(super) fn apply(
    segments: &Segments<'_>,
    plan: &Plan,
    snapshots: &[String],
) -> io::Result<Stand> {
    let dir = &segments.begun.dir;
    let (mut end, mut tail) = (plan.end, plan.place);
    if let Some(place) = plan.place
        && (plan.keep_adds || place.offset < segments.files[&place.file])
    {
        let offset;
        (end, offset) = rewrite(segments, plan, place)?;
        tail = Some(LogPlace { offset, ..place });
    }
    for &file in segments.files.keys().rev() {
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
    // Even without a cut, the syncs are needed: an earlier process may have written the records
    // without a sync.
    for &file in segments.files.keys() {
        let next = segments.files.range(file + 1..).next();
        let is_before = next.is_some_and(|(&next, _)| next <= plan.from.number);
        if is_before || plan.place.is_none_or(|place| file > place.file) {
            continue;
        }
        let open = dir.append(&segment::name(file))?;
        let _answer = dir.requests().begin(LOG_SYNC);
        open.sync()?;
    }
    Ok((end, tail))
}

/// Copies files of the log to names that no part of urlseen reads, for people. The copies are on
/// the disk when the function returns.
pub(super) fn copy_aside(segments: &Segments<'_>, from: u64) -> io::Result<()> {
    let dir = &segments.begun.dir;
    let names: Vec<String> = dir.list()?.into_iter().map(|file| file.name).collect();
    let is_used = |prefix: &String| names.iter().any(|name| name.starts_with(prefix.as_str()));
    let mut prefixes = (1..).map(|number: u32| format!("damaged-{number}-"));
    let prefix = prefixes.find(|prefix| !is_used(prefix)).expect("the folder has fewer files");
    for (&file, &len) in segments.files.range(from..) {
        let name = segment::name(file);
        let copy = dir.create(&format!("{prefix}{name}"))?;
        copy_part(&*dir.open(&name)?, len, &*copy)?;
        copy.sync()?;
    }
    dir.sync()
}

/// Appends the first `len` bytes of a file to another file.
fn copy_part(from: &dyn DiskFile, len: u64, to: &dyn DiskFile) -> io::Result<()> {
    let (mut offset, mut buffer) = (0, Vec::with_capacity(COPY));
    while offset < len {
        let left = usize::try_from(len - offset).unwrap_or(usize::MAX);
        buffer.resize(COPY.min(left), 0);
        read_exact_at(from, &mut buffer, offset)?;
        to.append(&buffer)?;
        offset += buffer.len() as u64;
    }
    Ok(())
}

/// Replaces the file of `place` by a new file: the records up to `place`, and then all later ones
/// that are no batches.
fn rewrite(segments: &Segments<'_>, plan: &Plan, place: LogPlace) -> io::Result<(Position, u64)> {
    let dir = &segments.begun.dir;
    let name = &segment::name(place.file);
    let old = dir.open(name)?;
    let new = dir.create(&aside(name))?;
    copy_part(&*old, place.offset, &*new)?;
    let (mut offset, mut buffer) = (place.offset, Vec::new());
    let (mut end, mut result) = (plan.end, io::Result::Ok(()));
    let mut keep = |_, entry: LogEntry| {
        if entry.head.kind != RecordKind::Batch
            && entry.head.position.number > plan.end.number
            && result.is_ok()
        {
            end.number += 1;
            let before: Head = end.head;
            // The cut may come before a sync of earlier files.
            let content = entry.content(entry.head.synced.min(plan.end.number));
            let kind = entry.head.kind;
            result = record::encode(kind, before, end, content, &mut buffer).and_then(|()| {
                offset += buffer.len() as u64;
                new.append(&buffer)
            });
            buffer.clear();
        }
    };
    if plan.keep_adds {
        segments.walk(plan.from, &mut keep)?;
    }
    result?;
    let answer = dir.requests().begin(LOG_SYNC);
    new.sync()?;
    drop(answer);
    dir.replace(name)?;
    dir.sync()?;
    Ok((end, offset))
}
