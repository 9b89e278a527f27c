//! File `ages`: for each snapshot, a moment at which it already existed.
//!
//! ```text
//! {"boot":"5f6…b1 time:[4026531834]","known":[[17,"2b1d9f0c66a1e4d7",93000]]}
//! 89abcdef
//! ```
//!
//! `boot` names the boot of the machine and the time namespace of the clock. `known` has an
//! entry for each snapshot: the number and the `commit_id` of its last record, and a time. By that
//! time, in milliseconds since the boot, the filter had reached the record. The last line is the
//! CRC-32C of all before it.
//!
//! The file does not use the time of day, because a user can change the clock for it. A snapshot
//! may be missing from the file, or have a time of another boot. Then the snapshot counts as made
//! now, seems younger than it is, and stays for longer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::dir::Dir;
use super::note;
use super::snapshot::Summary;
use crate::filter::id::RandomId;

/// Name of the file in the folder.
pub(super) const NAME: &str = "ages";

#[derive(Serialize, Deserialize)]
struct Ages {
    boot: String,
    known: Vec<(u64, RandomId, u64)>,
}

/// Returns, for each snapshot of `all`, a moment at which it already existed. A snapshot without a
/// recorded moment gets `now`.
pub(super) fn record(dir: &Dir, all: &[Summary], now: Moment) -> Vec<Moment> {
    let known = note::read::<Ages>(dir, NAME).filter(|ages| ages.boot == now.boot);
    let known = known.map(|ages| ages.known).unwrap_or_default();
    let milliseconds = u64::try_from(now.since_boot().as_millis()).unwrap_or(u64::MAX);
    let age = |Summary { last, .. }: &Summary| {
        let (number, commit_id) = (last.number, last.head.commit_id);
        let found = known.iter().find(|&&(other, id, _)| (other, id) == (number, commit_id));
        // If this clock is earlier, the recorded moment came from another clock.
        (number, commit_id, found.map_or(milliseconds, |&(.., at)| milliseconds.min(at)))
    };
    let ages = Ages { boot: now.boot.to_owned(), known: all.iter().map(age).collect() };
    // If the write fails, snapshots seem younger to the next process.
    let _ = note::write(dir, NAME, &ages);
    let moment = |(.., at): (u64, RandomId, u64)| Moment::new(now.boot, Duration::from_millis(at));
    ages.known.into_iter().map(moment).collect()
}
