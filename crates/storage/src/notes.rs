//! Notes: what a folder records beside its filter, in the file `notes`.
//!
//! ```text
//! {"lock":131090,"runs":["2b1d9f0c66a1e4d7"],"filter":null,"checkpoints":[],"timing":null}
//! 89abcdef
//! ```
//!
//! The first line is JSON. The last line is the CRC-32C of the first line in hex. The file `header`
//! has this form, too. A change replaces the whole file.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use urlseen_filter::id::RandomId;

use super::clock::Timing;
use super::disk::{Dir, aside};
use super::error::{Damage, ReadError};

/// Name of the file in the folder.
pub(super) const NAME: &str = "notes";

/// Maximum number of runs to remember, for restarts in quick succession.
pub(super) const RUNS_MAX: usize = 64;

/// Maximum number of sources to remember. Only the most recently imported sources are kept.
pub(super) const CHECKPOINTS_MAX: usize = 1000;

/// All that a folder records beside its filter.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Inode of the folder's file `lock`. A process that holds the lock of the same file knows that
    /// the `runs` have ended. In a copy of the folder, the lock is another file and proves nothing.
    pub(super) lock: u64,
    /// Runs that may hold the crawl's lease in Redis, newest first.
    pub runs: Vec<RandomId>,
    /// Id of the filter of the `checkpoints`.
    pub(super) filter: Option<RandomId>,
    /// Progress of the imports into the filter.
    pub checkpoints: Vec<Checkpoint>,
    /// Times that the clocks showed when a run began generations. Without them, it is unknown how
    /// much time has passed since that run.
    pub timing: Option<Timing>,
}

/// Progress of the import of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Name of the imported source.
    pub source: String,
    /// Version of the source. It distinguishes the source from other content of the same name.
    pub version: String,
    /// Place in the source: everything before it is in the log.
    pub at: u64,
    /// Number of elements of the source before `at`.
    pub count: u64,
}

impl Notes {
    /// Reads the notes of a folder. A new folder has none.
    pub(super) fn read(dir: &Dir) -> Result<Self, ReadError> {
        Ok(dir.read(NAME)?.map_or_else(|| Ok(Self::default()), |bytes| decode(NAME, &bytes))?)
    }

    /// Adds checkpoints, and removes the earlier ones of the same sources.
    pub fn add(&mut self, new: &[Checkpoint]) {
        self.checkpoints.retain(|known| new.iter().all(|new| new.source != known.source));
        self.checkpoints.extend_from_slice(new);
        self.checkpoints.drain(..self.checkpoints.len().saturating_sub(CHECKPOINTS_MAX));
    }
}

/// Returns the bytes of a file: the content, and its CRC.
pub(super) fn encode(content: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_string(content).expect("text and numbers");
    text.push('\n');
    text.push_str(&crc_line(text.as_bytes()));
    text.into_bytes()
}

/// Reads the content of a file with these bytes.
pub(super) fn decode<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Damage> {
    let end = memchr::memchr(b'\n', bytes).map_or(0, |end| end + 1);
    let (content, crc) = bytes.split_at(end);
    if crc != crc_line(content).as_bytes() {
        return Err(Damage::new(name, 0, "the CRC does not match"));
    }
    serde_json::from_slice(content).map_err(|_| Damage::new(name, 0, "a value cannot be read"))
}

fn crc_line(content: &[u8]) -> String {
    format!("{:08x}\n", crc32c::crc32c(content))
}

/// Replaces the file called `name`. It is on the disk when the function returns.
pub(super) fn write(dir: &Dir, name: &str, content: &impl Serialize) -> io::Result<()> {
    dir.write_aside(name, &encode(content)).and_then(|()| dir.replace(name)).inspect_err(|_| {
        // If the disk is full, the half-written file must not occupy the last free space.
        let _ = dir.remove(&aside(name));
    })?;
    dir.sync()
}
