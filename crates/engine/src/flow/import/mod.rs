//! Import of fingerprints from a crawl by another program. The import is a feed of raw digests.
//!
//! The digests stay raw bytes on their way to the filter. Each page contains the cursor that marks
//! its end, so that the next import of the same input can continue there.
//!
//! About once a second, the storage thread syncs the log, and then writes the cursors of all
//! sources to the file `notes`. Path, size and modification time identify a file. The server's
//! `run_id` identifies a set, because the cursor of a set is invalid for another server
//! process. Each checkpoint has the id of the filter, so those from before a reset are ignored.
//! So are unreadable ones, because a second import does no harm.

mod cut;
mod frames;
mod lines;
mod set;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::feed::{Feed, FeedError, InputName, Page, Place};
use super::input::{self, Cutter, Input};
use cut::{Cut, advice, shown};
use frames::Frames;
use lines::FingerprintLines;
pub use urlseen_filter::choice::ImportFormat;
use urlseen_redis::RedisAddress;
use urlseen_storage::Checkpoint;

/// Origin of the fingerprints of an import.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Files, plain or compressed. Standard input if there are no files, and in place of a file
    /// named `-`.
    Files {
        /// Names of the files, in their order.
        files: Vec<PathBuf>,
        /// Format of all these files.
        format: ImportFormat,
    },
    /// Set in Redis. Its members are fingerprints as hex digits.
    Set {
        /// Address of the server.
        address: Box<RedisAddress>,
        /// Name of the set in Redis.
        key: String,
    },
}

impl Origin {
    /// Opens the feed of the digests. If a checkpoint shows that an earlier import has read a part
    /// of the input, the feed begins after that part.
    ///
    /// # Errors
    /// Redis does not have the set, or does not answer.
    pub fn open(self, checkpoints: Vec<Checkpoint>) -> Result<Feed, FeedError> {
        match self {
            Self::Files { files, format } => {
                Ok(input::feed(files, move |name| Digests::new(name, format, &checkpoints)))
            }
            Self::Set { address, key } => set::feed(&address, key, &checkpoints),
        }
    }
}

/// Cuts pages of digests.
struct Digests {
    name: String,
    format: ImportFormat,
    /// Cutter for the format of the input, once the format is known.
    cutter: Option<FormatCutter>,
    /// Checkpoint at the start of the input; `None` if the input can be read only once.
    start: Option<Checkpoint>,
    /// Checkpoint of an earlier import; `None` after the reading has continued from there.
    resumed: Option<Checkpoint>,
}

enum FormatCutter {
    Lines(FingerprintLines),
    Frames(Frames),
}

impl Digests {
    fn new(name: &Path, format: ImportFormat, checkpoints: &[Checkpoint]) -> Self {
        let start = start(name, format);
        let is_this = |checkpoint: &&Checkpoint| {
            start.as_ref().is_some_and(|start| {
                start.source == checkpoint.source && start.version == checkpoint.version
            })
        };
        let resumed =
            checkpoints.iter().find(is_this).filter(|checkpoint| checkpoint.at > 0).cloned();
        Self { name: InputName(name).to_string(), format, cutter: None, start, resumed }
    }
}

impl Cutter for Digests {
    fn next(&mut self, input: &mut Input) -> Result<Option<Page>, FeedError> {
        loop {
            input.fill();
            if self.cutter.is_none() {
                match self.detect(input) {
                    Some(Ok(cutter)) => self.cutter = Some(cutter),
                    Some(Err(reason)) => {
                        input.close();
                        let mut cut = Cut::new(&self.name, Some(0));
                        cut.bad(0, None, || reason);
                        return Ok(Some(cut.into_page()));
                    }
                    None if !input.has_ended() => continue,
                    None => {}
                }
            }
            let resumed = self.resumed.take();
            if let Some(checkpoint) = &resumed {
                input.skip_to(checkpoint.at)?;
                input.fill();
            }
            let mut cut = Cut::new(&self.name, Some(input.offset));
            let used = match &mut self.cutter {
                Some(cutter) => {
                    cutter.follow(input.bytes(), input.is_end());
                    cutter.cut(input.bytes(), input.is_end(), &mut cut)
                }
                None => 0,
            };
            input.drop_front(used);
            if used > 0 || resumed.is_some() {
                return Ok(Some(self.page(input.offset, cut, resumed)));
            }
            if input.has_ended() {
                input.finish(Input::place)?;
                return Ok(None);
            }
        }
    }
}

impl Digests {
    /// Detects the format of the input. Returns `None` if more bytes are needed to know. The error
    /// says why the input is not imported.
    fn detect(&self, input: &Input) -> Option<Result<FormatCutter, String>> {
        let bytes = input.bytes();
        let behind = self.resumed.as_ref().map_or(0, |checkpoint| checkpoint.count);
        let hex = || FormatCutter::Lines(FingerprintLines::behind(behind));
        let binary = || FormatCutter::Frames(Frames::behind(behind));
        let is_end = input.has_ended();
        match self.format {
            ImportFormat::Hex => return Some(Ok(hex())),
            ImportFormat::RequestsSeen => return Some(Ok(binary())),
            // An empty input is valid in either format.
            ImportFormat::Auto if bytes.is_empty() => return is_end.then(|| Ok(hex())),
            ImportFormat::Auto => {}
        }
        match frames::begins(bytes) {
            Some(true) => return Some(Ok(binary())),
            None if is_end => return Some(Ok(binary())),
            None => return None,
            Some(false) => {}
        }
        Some(if lines::begins(bytes, is_end)? {
            Ok(hex())
        } else {
            Err(format!(
                "neither lines of 32, 40 or 64 hex digits nor a requests.seen of Scrapy; this \
                 input is not imported. The input begins with {}{}",
                shown(bytes),
                advice(&bytes[..bytes.len().min(80)])
            ))
        })
    }

    /// Makes a page from `cut`, which ends at the offset `at`.
    fn page(&self, at: u64, cut: Cut<'_>, resumed: Option<Checkpoint>) -> Page {
        let count = self.cutter.as_ref().map_or(0, FormatCutter::count);
        let cursor = self.start.clone().map(|start| Checkpoint { at, count, ..start });
        let resumed = resumed.map(|checkpoint| {
            format!("{} up to byte {} ({} entries)", self.name, checkpoint.at, checkpoint.count)
        });
        let place = Place { name: self.name.as_str().into(), ..Place::default() };
        Page { place, cursor, resumed, ..cut.into_page() }
    }
}

impl FormatCutter {
    /// Changes to the format in which the input goes on: another version of Scrapy has continued a
    /// file.
    fn follow(&mut self, bytes: &[u8], is_end: bool) {
        match self {
            Self::Lines(lines) if frames::begins(bytes) == Some(true) => {
                *self = Self::Frames(Frames::behind(lines.count));
            }
            Self::Frames(frames) if lines::begins_at(bytes, 0, is_end) == Some(true) => {
                *self = Self::Lines(FingerprintLines::behind(frames.count));
            }
            Self::Lines(_) | Self::Frames(_) => {}
        }
    }

    fn cut(&mut self, bytes: &[u8], is_end: bool, cut: &mut Cut<'_>) -> usize {
        match self {
            Self::Lines(lines) => lines.cut(bytes, is_end, cut),
            Self::Frames(frames) => frames.cut(bytes, is_end, cut),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.count,
            Self::Frames(frames) => frames.count,
        }
    }
}

/// Returns a checkpoint at the start of a file, which identifies the file and its present content.
/// Returns `None` if `name` is not a regular file.
fn start(name: &Path, format: ImportFormat) -> Option<Checkpoint> {
    let path = fs::canonicalize(name).ok()?;
    let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let version = format!(
        "{} bytes, written {}.{:09}, read as {format}",
        file.len(),
        file.mtime(),
        file.mtime_nsec()
    );
    Some(Checkpoint { source: format!("file {}", path.to_str()?), version, at: 0, count: 0 })
}
