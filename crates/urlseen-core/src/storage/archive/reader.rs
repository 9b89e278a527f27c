//! Reader of an archive, and of the log after it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::super::error::{Damage, ReadError, RecoveryError};
use super::super::header::Begun;
use super::super::reader::AtRest;
use super::super::record::Change;
use super::super::recovery::{self, Target};
use super::super::segment::Segment;
use super::{Chain, Part, files, start};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// Fingerprints that a filter let through, as the archive and the log record them.
///
/// Only fingerprints that were ever forgotten are in memory.
#[derive(Debug)]
pub struct Archive<'a> {
    begun: &'a Begun,
    target: Target,
    /// Position after which archive and log are complete. `None` if archive and log have all
    /// fingerprints of the filter.
    pub lacks_before: Option<Position>,
    /// Parts that cannot be read.
    pub damaged: Vec<Damage>,
    /// Fingerprints that were ever forgotten. The value is true if the filter let the fingerprint
    /// through later.
    tombstones: HashMap<Fingerprint, bool>,
}

impl AtRest {
    /// Reads the archive and the log up to `target`.
    ///
    /// # Errors
    /// If the disk fails, or the folder does not lead to `target`.
    pub fn archive(&self, target: Target) -> Result<Archive<'_>, RecoveryError> {
        let begun = self.begun()?;
        let mut tombstones = HashMap::new();
        let (lacks_before, damaged) =
            read(begun, target, &mut |change, fingerprint| match change {
                Change::Forget => drop(tombstones.insert(fingerprint, false)),
                Change::Add => {
                    tombstones.entry(fingerprint).and_modify(|is_through| *is_through = true);
                }
            })?;
        Ok(Archive { begun, target, lacks_before, damaged, tombstones })
    }
}

impl Archive<'_> {
    /// Calls `visit` once with each fingerprint that counts as seen, until `visit` returns a break.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn each(
        mut self,
        mut visit: impl FnMut(&Fingerprint) -> ControlFlow<()>,
    ) -> Result<(), RecoveryError> {
        let (tombstones, mut flow) = (&mut self.tombstones, ControlFlow::Continue(()));
        read(self.begun, self.target, &mut |change, fingerprint| {
            if change == Change::Forget || flow.is_break() {
                return;
            }
            // A fingerprint that passed more than once is visited only the first time.
            let counts = tombstones.get_mut(&fingerprint);
            if counts.is_none_or(std::mem::take) {
                flow = visit(&fingerprint);
            }
        })?;
        Ok(())
    }
}

/// Calls `visit` with each change up to `target`, in order. Returns the position after which
/// archive and log are complete, and the damaged places of the parts.
fn read(
    begun: &Begun,
    target: Target,
    visit: &mut impl FnMut(Change, Fingerprint),
) -> Result<(Option<Position>, Vec<Damage>), RecoveryError> {
    let (way, ()) = recovery::find(begun, target, |_| Ok(()))?;
    let (from, start) = (way.snapshot.first, start(begun)?);
    let (mut damaged, mut chain) = (Vec::new(), Chain::default());
    for part in files(begun)? {
        let is_old = start.is_some_and(|start| part.follows < start.number);
        if is_old || part.follows >= from.number {
            continue;
        }
        if let Err(error) = read_part(begun, &part, start, from, &mut chain, visit) {
            damaged.push(error.damage()?);
        }
    }
    chain.begin(from, from.number == 0 || start == Some(from));
    way.replay_all(begun, |entry| {
        entry.changes().for_each(|(change, _, fingerprint)| visit(change, fingerprint));
    })?;
    Ok((chain.lacks_before, damaged))
}

/// Reads a part or a file of the log up to `until`; the file may continue after that.
fn read_part(
    begun: &Begun,
    part: &Part,
    start: Option<Position>,
    until: Position,
    chain: &mut Chain,
    visit: &mut impl FnMut(Change, Fingerprint),
) -> Result<(), ReadError> {
    let mut log = Segment::open(begun, &part.name)?;
    chain.begin(log.follows, part.is_first || start == Some(log.follows));
    while log.position.number < until.number
        && let Some(entry) = log.next()?
    {
        entry.changes().for_each(|(change, _, fingerprint)| visit(change, fingerprint));
    }
    chain.end = Some(log.position.number);
    Ok(())
}
