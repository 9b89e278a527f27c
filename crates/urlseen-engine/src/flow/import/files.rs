//! Files of fingerprints, and standard input.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Format;
use super::cut::{Cut, CutError, shown};
use super::frames::{self, Frames};
use super::lines::{self, LineCutter};
use crate::flow::feed::{Bad, Feed, FeedError, InputName, Page, Place};
use crate::flow::input::{self, BLOCK, ByteSource, FileReader};
use urlseen_core::storage::Checkpoint;

/// Returns the digests of all `files`, each from where an earlier import of it ended.
pub(super) fn feed(files: Vec<PathBuf>, format: Format, checkpoints: Vec<Checkpoint>) -> Feed {
    input::feed(files, move |name| Input::open(name, format, &checkpoints))
}

/// An input that is read.
struct Input {
    name: PathBuf,
    source: ByteSource,
    format: Format,
    /// Once the format is known.
    cutter: Option<Cutter>,
    /// What is read goes here.
    buffer: Vec<u8>,
    /// How much of it was read and not cut yet, and where in the input that begins.
    filled: usize,
    offset: u64,
    /// How the input ended, if it has: told once all before is handed on.
    end: Option<io::Result<()>>,
    /// What it goes by in checkpoints; not there if it can be read but once.
    identity: Option<FileIdentity>,
    /// Where an earlier import ended, until the reading goes on there.
    resumed: Option<Checkpoint>,
}

/// What tells an input from others.
struct FileIdentity {
    source: String,
    version: String,
}

enum Cutter {
    Lines(LineCutter),
    Frames(Frames),
}

impl Input {
    fn open(name: PathBuf, format: Format, checkpoints: &[Checkpoint]) -> Result<Self, FeedError> {
        let identity = FileIdentity::of(&name, format);
        let source = input::open(&name)?;
        let is_this = |checkpoint: &&Checkpoint| {
            identity.as_ref().is_some_and(|it| {
                it.source == checkpoint.source && it.version == checkpoint.version
            })
        };
        let resumed =
            checkpoints.iter().find(is_this).filter(|checkpoint| checkpoint.at > 0).cloned();
        Ok(Self {
            name,
            source,
            format,
            cutter: None,
            buffer: vec![0; BLOCK],
            filled: 0,
            offset: 0,
            end: None,
            identity,
            resumed,
        })
    }
}

impl FileReader for Input {
    fn next(&mut self) -> Result<Option<Page>, FeedError> {
        loop {
            self.fill();
            if self.cutter.is_none() {
                match self.detect() {
                    Some(Ok(cutter)) => self.cutter = Some(cutter),
                    Some(Err(reason)) => return Ok(Some(self.refused(reason))),
                    None if self.end.is_none() => continue,
                    None => {}
                }
            }
            let resumed = self.resumed.take();
            if let Some(checkpoint) = &resumed {
                self.skip_to(checkpoint.at)?;
                self.fill();
            }
            let is_end = matches!(self.end, Some(Ok(())));
            let mut cut = Cut::new(self.offset);
            let used = match &mut self.cutter {
                Some(cutter) => cutter.cut(&self.buffer[..self.filled], is_end, &mut cut),
                None => 0,
            };
            self.drop_front(used);
            if used > 0 || resumed.is_some() {
                return Ok(Some(self.page(cut, resumed)));
            }
            match self.end.take() {
                Some(Err(reason)) => return Err(self.broken(reason)),
                Some(Ok(())) => {
                    // Asked once more, it says the same.
                    self.end = Some(Ok(()));
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    fn consumed(&self) -> u64 {
        self.source.consumed()
    }
}

impl Input {
    /// Reads a block, or what there is.
    fn fill(&mut self) {
        while self.end.is_none() && self.filled < BLOCK {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(read) => self.filled += read,
                Err(error) => self.end = Some(Err(error)),
            }
            if self.source.is_live() {
                return;
            }
        }
    }

    /// Finds out what the input holds; `None` as long as that cannot be told.
    fn detect(&self) -> Option<Result<Cutter, CutError>> {
        let bytes = &self.buffer[..self.filled];
        let behind = self.resumed.as_ref().map_or(0, |checkpoint| checkpoint.count);
        let hex = || Cutter::Lines(LineCutter::behind(behind));
        let binary = || Cutter::Frames(Frames::behind(behind));
        let is_end = self.end.is_some();
        match self.format {
            Format::Hex => return Some(Ok(hex())),
            Format::RequestsSeen => return Some(Ok(binary())),
            // Nothing is in either.
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

    /// Passes over what an earlier import had.
    fn skip_to(&mut self, at: u64) -> Result<(), FeedError> {
        let held = usize::try_from(at).unwrap_or(usize::MAX).min(self.filled);
        self.drop_front(held);
        let rest = at - self.offset;
        if rest > 0 {
            self.source.skip(rest).map_err(|reason| self.broken(reason))?;
            self.offset = at;
        }
        Ok(())
    }

    fn drop_front(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        self.offset += bytes as u64;
    }

    fn page(&self, cut: Cut, resumed: Option<Checkpoint>) -> Page {
        let bad_count = cut.bad_count();
        let (items, bad) = cut.into_parts();
        let source = InputName(&self.name).to_string();
        let bad = bad.into_iter().map(|(at, line, reason)| Bad {
            source: source.clone(),
            offset: Some(at),
            line,
            reason: reason.to_string(),
        });
        let cursor = self.identity.as_ref().map(|FileIdentity { source, version }| Checkpoint {
            source: source.clone(),
            version: version.clone(),
            at: self.offset,
            count: self.cutter.as_ref().map_or(0, Cutter::count),
        });
        let resumed = resumed.map(|checkpoint| {
            format!("{source} up to byte {} ({} read)", checkpoint.at, checkpoint.count)
        });
        let (bad, read) = (bad.collect(), self.consumed());
        let place = Place { name: source.into(), ..Place::default() };
        Page { items, place, bad, bad_count, read, cursor, resumed }
    }

    /// Gives up an input that holds something else.
    fn refused(&mut self, reason: CutError) -> Page {
        (self.filled, self.end, self.identity) = (0, Some(Ok(())), None);
        self.cutter = Some(Cutter::Lines(LineCutter::default()));
        let mut cut = Cut::new(0);
        cut.bad(0, None, || reason);
        self.page(cut, None)
    }

    fn broken(&self, reason: io::Error) -> FeedError {
        let place = format!("byte {}", self.offset + self.filled as u64);
        FeedError::Read { name: self.name.clone(), place, reason }
    }
}

impl Cutter {
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
    /// Of a file as it is now; `None` for what is none.
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
