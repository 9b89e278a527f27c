//! Files of fingerprints, and standard input.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Format;
use super::cut::{Cut, CutError, shown};
use super::frames::{self, Frames};
use super::lines::{self, LineCutter};
use crate::flow::feed::{Bad, Feed, FeedError, InputName, Page, Place};
use crate::flow::input::{self, Cutter, Input};
use urlseen_core::storage::Checkpoint;

/// Returns a feed of the digests of all `files`. A file that an earlier import has read in part
/// continues after that part.
pub(super) fn feed(files: Vec<PathBuf>, format: Format, checkpoints: Vec<Checkpoint>) -> Feed {
    input::feed(files, move |name| Digests::new(name, format, &checkpoints))
}

/// Cuts pages of digests.
struct Digests {
    name: String,
    format: Format,
    /// Cutter for the format of the input, after that is known.
    cutter: Option<FormatCutter>,
    /// Identity of the input in checkpoints; `None` if the input can be read only once.
    identity: Option<FileIdentity>,
    /// Checkpoint of an earlier import, until reading continues there.
    resumed: Option<Checkpoint>,
}

/// Identity of a file and of its contents, for checkpoints.
struct FileIdentity {
    source: String,
    version: String,
}

enum FormatCutter {
    Lines(LineCutter),
    Frames(Frames),
}

impl Digests {
    fn new(name: &Path, format: Format, checkpoints: &[Checkpoint]) -> Self {
        let identity = FileIdentity::of(name, format);
        let is_this = |checkpoint: &&Checkpoint| {
            identity.as_ref().is_some_and(|it| {
                it.source == checkpoint.source && it.version == checkpoint.version
            })
        };
        let resumed =
            checkpoints.iter().find(is_this).filter(|checkpoint| checkpoint.at > 0).cloned();
        Self { name: InputName(name).to_string(), format, cutter: None, identity, resumed }
    }
}

impl Cutter for Digests {
    fn next(&mut self, input: &mut Input) -> Result<Option<Page>, FeedError> {
        loop {
            input.fill();
            if self.cutter.is_none() {
                match self.detect(input) {
                    Some(Ok(cutter)) => self.cutter = Some(cutter),
                    Some(Err(reason)) => return Ok(Some(self.refused(input, reason))),
                    None if !input.has_ended() => continue,
                    None => {}
                }
            }
            let resumed = self.resumed.take();
            if let Some(checkpoint) = &resumed {
                input.skip_to(checkpoint.at)?;
                input.fill();
            }
            let mut cut = Cut::new(input.offset);
            let used = match &mut self.cutter {
                Some(cutter) => cutter.cut(input.bytes(), input.is_end(), &mut cut),
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
    /// Detects the format of the input. Returns `None` if more bytes are needed to know.
    fn detect(&self, input: &Input) -> Option<Result<FormatCutter, CutError>> {
        let bytes = input.bytes();
        let behind = self.resumed.as_ref().map_or(0, |checkpoint| checkpoint.count);
        let hex = || FormatCutter::Lines(LineCutter::behind(behind));
        let binary = || FormatCutter::Frames(Frames::behind(behind));
        let is_end = input.has_ended();
        match self.format {
            Format::Hex => return Some(Ok(hex())),
            Format::RequestsSeen => return Some(Ok(binary())),
            // An empty input is valid in either format.
            Format::Auto if bytes.is_empty() => return is_end.then(|| Ok(hex())),
            Format::Auto => {}
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
            Err(CutError::Neither { shown: shown(bytes) })
        })
    }

    fn page(&self, at: u64, cut: Cut, resumed: Option<Checkpoint>) -> Page {
        let bad_count = cut.bad_count();
        let (items, bad) = cut.into_parts();
        let source = &self.name;
        let bad = bad.into_iter().map(|(at, line, reason)| Bad {
            source: source.clone(),
            offset: Some(at),
            line,
            reason: reason.to_string(),
        });
        let cursor = self.identity.as_ref().map(|FileIdentity { source, version }| Checkpoint {
            source: source.clone(),
            version: version.clone(),
            at,
            count: self.cutter.as_ref().map_or(0, FormatCutter::count),
        });
        let resumed = resumed.map(|checkpoint| {
            format!("{source} up to byte {} ({} entries)", checkpoint.at, checkpoint.count)
        });
        let place = Place { name: source.as_str().into(), ..Place::default() };
        Page { items, place, bad: bad.collect(), bad_count, cursor, resumed, ..Page::default() }
    }

    /// Stops reading an input of an unknown format. Returns a page that has only the error.
    fn refused(&mut self, input: &mut Input, reason: CutError) -> Page {
        input.close();
        (self.identity, self.cutter) = (None, Some(FormatCutter::Lines(LineCutter::default())));
        let mut cut = Cut::new(0);
        cut.bad(0, None, || reason);
        self.page(0, cut, None)
    }
}

impl FormatCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool, cut: &mut Cut) -> usize {
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

impl FileIdentity {
    /// Returns the identity of a file as it is now, or `None` if `name` is not a regular file.
    fn of(name: &Path, format: Format) -> Option<Self> {
        let path = fs::canonicalize(name).ok()?;
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let version = format!(
            "{} bytes, written {}.{:09}, read as {format}",
            file.len(),
            file.mtime(),
            file.mtime_nsec()
        );
        Some(Self { source: format!("file {}", path.to_str()?), version })
    }
}
