//! Moments by which snapshots existed: the file `ages`.
//!
//! ```text
//! {"boot":"5f6…b1 time:[4026531834]","known":[[17,"2b1d9f0c66a1e4d7",93000]]}
//! 89abcdef
//! ```
//!
//! `boot` names the boot of the machine, and the time namespace, whose clock counts. `known` has an
//! entry for each snapshot: the number and the `commit_id` of its last record, and a time. By that
//! time, in milliseconds since the boot, the filter had reached the record. The last line is the
//! CRC-32C of all before it.
//!
//! The file has no time of day, because that clock can be set. A snapshot may be missing from the
//! file, or have a time of another boot. Then this program can only prove that it exists now. Such
//! snapshots seem younger than they are, and stay for longer.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::dir::{Dir, aside};
use super::encoding::crc_line;
use super::snapshot::Summary;
use crate::filter::id::RandomId;
use crate::storage::head::Position;

/// Name of the file in the folder.
pub(super) const NAME: &str = "ages";

#[derive(Serialize, Deserialize)]
struct File {
    boot: String,
    known: Vec<(u64, String, u64)>,
}

/// Returns the moments by which the snapshots `all` existed, in their order. Records those that
/// were not known before as of `now`.
pub(super) fn note(dir: &Dir, all: &[Summary], now: Moment) -> Vec<Moment> {
    let known = read(dir).filter(|file| file.boot == now.boot()).map(|file| file.known);
    let known = known.unwrap_or_default();
    let milliseconds = u64::try_from(now.since_boot().as_millis()).unwrap_or(u64::MAX);
    let since = |last: Position| {
        let is_it = |number, commit_id: &str| {
            number == last.number && RandomId::parse(commit_id) == Some(last.head.commit_id)
        };
        let found = known.iter().find(|(number, commit_id, _)| is_it(*number, commit_id));
        // A recorded moment after `now` is not of this clock.
        found.map_or(milliseconds, |(_, _, at)| milliseconds.min(*at))
    };
    let ages: Vec<_> = all.iter().map(|each| (each.last, since(each.last))).collect();
    let known = ages.iter().map(|(last, at)| (last.number, last.head.commit_id.to_string(), *at));
    // If this fails, the snapshots seem younger to the next process.
    let _ = write(dir, &File { boot: now.boot().to_owned(), known: known.collect() });
    ages.into_iter().map(|(_, at)| Moment::new(now.boot(), Duration::from_millis(at))).collect()
}

fn read(dir: &Dir) -> Option<File> {
    let bytes = dir.read(NAME).ok()??;
    let end = memchr::memchr(b'\n', &bytes)? + 1;
    let (content, crc) = bytes.split_at(end);
    (crc == crc_line(content).as_bytes()).then(|| serde_json::from_slice(content).ok())?
}

fn write(dir: &Dir, file: &File) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(file)?;
    bytes.push(b'\n');
    bytes.extend(crc_line(&bytes).into_bytes());
    dir.write_aside(NAME, &bytes).and_then(|()| dir.replace(NAME)).inspect_err(|_| {
        // The partial file would take room on a full disk.
        let _ = dir.remove(&aside(NAME));
    })
}
