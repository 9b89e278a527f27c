//! Reader of an archive, and of the log after it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use super::super::damage::{Damage, ReadError};
use super::super::dir::Dir;
use super::super::error::RecoveryError;
use super::super::header::Header;
use super::super::history::Segments;
use super::super::reader::AtRest;
use super::super::recovery;
use super::super::scan::Target;
use super::super::segment::{self, Segment};
use super::part::{Archived, Part};
use super::retire::kind;
use super::standing::{Chain, start};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// All fingerprints that a filter let through, if archive and log have them.
///
/// Only fingerprints that were ever forgotten are in memory.
#[derive(Debug)]
pub struct Archive<'a> {
    folder: &'a AtRest,
    header: &'a Header,
    target: Target,
    extent: Extent,
    /// Fingerprints that were ever forgotten; true if one was let through again since.
    tombstones: HashMap<Fingerprint, bool>,
}

/// Gaps and damage of an archive and a log.
#[derive(Debug, Default)]
struct Extent {
    lacks_before: Option<Position>,
    damaged: Vec<Damage>,
}

impl AtRest {
    /// Reads the archive and the log up to `target`.
    ///
    /// # Errors
    /// If the disk fails, or the folder does not lead to `target`.
    pub fn archive(&self, target: Target) -> Result<Archive<'_>, RecoveryError> {
        let header = self.header().ok_or(RecoveryError::Fresh)?;
        let mut tombstones = HashMap::new();
        let extent = read(&self.dir, header, target, &mut |kind, fingerprint| match kind {
            Archived::Forgotten => drop(tombstones.insert(fingerprint, false)),
            Archived::Through => {
                tombstones.entry(fingerprint).and_modify(|is_through| *is_through = true);
            }
        })?;
        Ok(Archive { folder: self, header, target, extent, tombstones })
    }
}

impl Archive<'_> {
    /// Returns the position after which everything is there; `None` if the archive has all
    /// fingerprints of the filter.
    pub fn lacks_before(&self) -> Option<Position> {
        self.extent.lacks_before
    }

    /// Returns the parts that cannot be read.
    pub fn damaged(&self) -> &[Damage] {
        &self.extent.damaged
    }

    /// Calls `visit` once with each fingerprint that counts as seen, until `visit` returns a break.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn each(
        mut self,
        mut visit: impl FnMut(&Fingerprint) -> ControlFlow<()>,
    ) -> Result<(), RecoveryError> {
        let (dir, tombstones, mut flow) =
            (&self.folder.dir, &mut self.tombstones, ControlFlow::Continue(()));
        read(dir, self.header, self.target, &mut |kind, fingerprint| {
            if kind == Archived::Forgotten || flow.is_break() {
                return;
            }
            // A fingerprint that passed more than once is visited the first time.
            let counts = tombstones.get_mut(&fingerprint);
            if counts.is_none_or(std::mem::take) {
                flow = visit(&fingerprint);
            }
        })?;
        Ok(())
    }
}

/// Calls `visit` with each change up to `target`, in order.
fn read(
    dir: &Dir,
    header: &Header,
    target: Target,
    visit: &mut impl FnMut(Archived, Fingerprint),
) -> Result<Extent, RecoveryError> {
    let way = recovery::find(dir, header, target, |_| Ok(()))?;
    let (from, start) = (way.snapshot.first, start(dir, header)?);
    let (mut extent, mut chain) = (Extent::default(), Chain::default());
    let segments = Segments::list(dir)?;
    let logs: BTreeSet<u64> = segments.iter().map(|(follows, _)| follows).collect();
    let files = dir.list()?;
    let parts = files.iter().filter_map(|file| super::follows(&file.name));
    let numbers: BTreeSet<u64> = logs.iter().copied().chain(parts).collect();
    let counts = |&&number: &&u64| start.is_none_or(|start| number >= start.number);
    for &number in numbers.range(..from.number).filter(counts) {
        let read = if logs.contains(&number) {
            read_log(dir, header, (number, start), from, &mut chain, visit)
        } else {
            read_part(dir, header, number, &mut chain, visit)
        };
        if let Err(error) = read {
            extent.damaged.push(error.damage()?);
        }
    }
    chain.begin(from, from.number == 0 || start == Some(from));
    way.replay_all(dir, header, |entry| {
        entry.fingerprints().into_iter().for_each(|it| visit(kind(entry.head.kind), it));
    })?;
    extent.lacks_before = chain.lacks_before();
    Ok(extent)
}

fn read_part(
    dir: &Dir,
    header: &Header,
    number: u64,
    chain: &mut Chain,
    visit: &mut impl FnMut(Archived, Fingerprint),
) -> Result<(), ReadError> {
    let part = Part::open(dir, &super::name(number), header.filter())?;
    chain.begin(part.follows, part.is_first);
    part.read(visit)?;
    chain.end(part.last);
    Ok(())
}

/// Reads a file of the log up to `until`; the file may continue after that.
fn read_log(
    dir: &Dir,
    header: &Header,
    (number, start): (u64, Option<Position>),
    until: Position,
    chain: &mut Chain,
    visit: &mut impl FnMut(Archived, Fingerprint),
) -> Result<(), ReadError> {
    let mut log = Segment::open(dir, &segment::name(number), header.filter())?;
    chain.begin(log.follows(), number == 0 || start == Some(log.follows()));
    while log.position().number < until.number
        && let Some(entry) = log.next()?
    {
        let kind = kind(entry.head.kind);
        entry.fingerprints().into_iter().for_each(|it| visit(kind, it));
    }
    chain.end(log.position());
    Ok(())
}
