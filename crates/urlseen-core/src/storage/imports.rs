//! Checkpoints of imports into the filter: the file `imports`.
//!
//! ```text
//! {"filter":"2b1d9f0c66a1e4d7","checkpoints":[{"source":"…","version":"…","at":22,"count":1}]}
//! 89abcdef
//! ```
//!
//! The last line is the CRC-32C of all before it. Checkpoints of another filter, or that cannot be
//! read, are ignored: the import then starts from the beginning, which only costs time.

use std::io;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::encoding::crc_line;

/// Name of the file in the folder.
pub(super) const NAME: &str = "imports";

/// Most sources that are remembered: those imported last.
pub(super) const CHECKPOINTS_MAX: usize = 1000;

/// Progress of the import of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Name of the imported source.
    pub source: String,
    /// Version of the source, to tell it from other content under the same name.
    pub version: String,
    /// Place in the source: everything before it is in the log.
    pub at: u64,
    /// Number of elements before that place.
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
struct File {
    filter: String,
    checkpoints: Vec<Checkpoint>,
}

/// Returns the known checkpoints of imports into `filter`.
pub(super) fn read(dir: &Dir, filter: u64) -> Vec<Checkpoint> {
    let file = decode(dir).filter(|file| file.filter == id(filter));
    file.map(|file| file.checkpoints).unwrap_or_default()
}

/// Records checkpoints, and replaces the earlier ones of the same sources.
pub(super) fn record(dir: &Dir, filter: u64, new: &[Checkpoint]) -> io::Result<()> {
    let mut checkpoints = read(dir, filter);
    checkpoints.retain(|checkpoint| new.iter().all(|new| new.source != checkpoint.source));
    checkpoints.extend_from_slice(new);
    checkpoints.drain(..checkpoints.len().saturating_sub(CHECKPOINTS_MAX));
    let file = File { filter: id(filter), checkpoints };
    let mut bytes = serde_json::to_vec(&file)?;
    bytes.push(b'\n');
    bytes.extend(crc_line(&bytes).into_bytes());
    dir.write_aside(NAME, &bytes)?;
    dir.replace(NAME)?;
    dir.sync()
}

/// Deletes all checkpoints.
pub(super) fn clear(dir: &Dir) -> io::Result<()> {
    match dir.remove(NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => dir.sync(),
    }
}

fn decode(dir: &Dir) -> Option<File> {
    let bytes = dir.read(NAME).ok()??;
    let end = memchr::memchr(b'\n', &bytes)? + 1;
    let (content, crc) = bytes.split_at(end);
    (crc == crc_line(content).as_bytes()).then(|| serde_json::from_slice(content).ok())?
}

fn id(filter: u64) -> String {
    format!("{filter:016x}")
}
