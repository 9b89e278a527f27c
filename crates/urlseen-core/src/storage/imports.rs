//! How far imports into the filter came: the file `imports`.
//!
//! ```text
//! {"filter":"2b1d9f0c66a1e4d7","checkpoints":[{"source":"…","version":"…","at":22,"count":1}]}
//! 89abcdef
//! ```
//!
//! The last line is the CRC-32C of all before it. Marks of another filter, or that cannot be read,
//! say nothing: the import begins anew then, which costs time alone.

use std::io;

use serde::{Deserialize, Serialize};

use super::disk::Dir;
use super::folder::Folder;

/// The file's name.
pub(super) const NAME: &str = "imports";

/// How many sources are remembered, of those imported last.
pub(super) const CHECKPOINTS_MAX: usize = 1000;

/// How far the import of a source came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What is imported.
    pub source: String,
    /// What tells it from what went under that name at other times.
    pub version: String,
    /// All that lies before this place in it is in the log.
    pub at: u64,
    /// How many elements that is.
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
struct File {
    filter: String,
    checkpoints: Vec<Checkpoint>,
}

impl Folder {
    /// How far imports into this filter came, as far as that is known.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let filter = self.header().map(|header| id(header.filter()));
        let file = read(self.place()).filter(|file| Some(&file.filter) == filter.as_ref());
        file.map(|file| file.checkpoints).unwrap_or_default()
    }

    /// Records how far imports came, in place of what was known of these sources. On the disk when
    /// this returns; the log must have been synced up to there before.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn record_checkpoints(&mut self, new: &[Checkpoint]) -> io::Result<()> {
        let mut checkpoints = self.checkpoints();
        checkpoints.retain(|checkpoint| new.iter().all(|new| new.source != checkpoint.source));
        checkpoints.extend_from_slice(new);
        checkpoints.drain(..checkpoints.len().saturating_sub(CHECKPOINTS_MAX));
        let file = File { filter: id(self.begun().filter()), checkpoints };
        let mut bytes = serde_json::to_vec(&file)?;
        bytes.push(b'\n');
        bytes.extend(crc_line(&bytes).into_bytes());
        let dir = self.place();
        dir.write_aside(NAME, &bytes)?;
        dir.replace(NAME)?;
        dir.sync()
    }

    /// Forgets how far imports came: the filter may lack some of what they added.
    pub fn drop_checkpoints(&mut self) -> io::Result<()> {
        match self.place().remove(NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.place().sync(),
        }
    }
}

fn read(dir: &Dir) -> Option<File> {
    let bytes = dir.read(NAME).ok()??;
    let end = memchr::memchr(b'\n', &bytes)? + 1;
    let (content, crc) = bytes.split_at(end);
    (crc == crc_line(content).as_bytes()).then(|| serde_json::from_slice(content).ok())?
}

fn id(filter: u64) -> String {
    format!("{filter:016x}")
}

pub(super) fn crc_line(content: &[u8]) -> String {
    format!("{:08x}\n", crc32c::crc32c(content))
}
