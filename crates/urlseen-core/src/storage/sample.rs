//! Sample of the filter's answers at the end of a run: the file `sample`.
//!
//! ```text
//! {"filter":"2b1d9f0c66a1e4d7","at":[22,9,"5f0c…"],"shards":[{"halvings":0,"asked":[…],…},…]}
//! 89abcdef
//! ```
//!
//! The last line is the CRC-32C of all before it. The log lacks the wrong answers since the last
//! snapshot, and this file has them. It counts only if the filter is recovered to the position
//! (number, seq and `commit_id`) at which the run ended. After a kill it is not there, or has
//! another position.

use std::io;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::note;
use crate::filter::ShardSample;
use crate::filter::id::RandomId;
use crate::storage::head::Position;

/// Name of the file in the folder.
const NAME: &str = "sample";

#[derive(Serialize, Deserialize)]
struct Sample {
    filter: RandomId,
    at: (u64, u64, RandomId),
    shards: Vec<ShardSample>,
}

fn fields(at: Position) -> (u64, u64, RandomId) {
    (at.number, at.head.seq, at.head.commit_id)
}

/// Returns the samples of all shards of a filter at this position, if they are known.
pub(super) fn read(dir: &Dir, filter: u64, at: Position) -> Vec<ShardSample> {
    let is_due = |note: &Sample| (note.filter.get(), note.at) == (filter, fields(at));
    note::read::<Sample>(dir, NAME).filter(is_due).map_or_else(Vec::new, |note| note.shards)
}

/// Records the samples of all shards.
pub(super) fn record(
    dir: &Dir,
    filter: u64,
    at: Position,
    shards: Vec<ShardSample>,
) -> io::Result<()> {
    note::write(dir, NAME, &Sample { filter: RandomId::new(filter), at: fields(at), shards })?;
    dir.sync()
}
