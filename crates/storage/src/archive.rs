//! Export of the archive and the log: the fingerprints that a filter let through.

use std::collections::HashMap;

use urlseen_fingerprint::Fingerprint;

use super::error::{Damage, RecoveryError};
use super::head::Position;
use super::header::Begun;
use super::history::Target;
use super::prune;
use super::reader::AtRest;
use super::record::Change;
use super::recovery;
use super::segment::LogEntry;

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
    /// Calls `visit` once with each fingerprint that counts as seen, until `visit` fails.
    ///
    /// # Errors
    /// If the disk or `visit` fails.
    pub fn each<E: From<RecoveryError>>(
        mut self,
        mut visit: impl FnMut(&Fingerprint) -> Result<(), E>,
    ) -> Result<(), E> {
        let (tombstones, mut visited) = (&mut self.tombstones, Ok(()));
        read(self.begun, self.target, &mut |change, fingerprint| {
            if change == Change::Forget || visited.is_err() {
                return;
            }
            // A fingerprint that passed more than once is visited only the first time.
            let counts = tombstones.get_mut(&fingerprint);
            if counts.is_none_or(std::mem::take) {
                visited = visit(&fingerprint);
            }
        })?;
        visited
    }
}

/// Calls `visit` with each change up to `target`, in order. Returns the position after which
/// archive and log are complete, and the damaged places of the parts.
fn read(
    begun: &Begun,
    target: Target,
    visit: &mut impl FnMut(Change, Fingerprint),
) -> Result<(Option<Position>, Vec<Damage>), RecoveryError> {
    let (way, ()) = recovery::find(begun, target, |_, _| Ok(()))?;
    let from = way.snapshot.first;
    let mut visit = |entry: LogEntry| {
        entry.changes().for_each(|(change, _, fingerprint)| visit(change, fingerprint));
    };
    let (mut end, mut gap) = (None, None);
    let (lacks_before, damaged) = prune::follow(begun, from.number, |file| {
        if end.is_some_and(|end| end != file.follows.number) {
            gap = Some(file.follows);
        }
        // A file of the log may continue after the snapshot's first position.
        file.each(from.number, &mut visit)?;
        end = Some(file.position.number);
        Ok(())
    })?;
    if end != Some(from.number) && !way.snapshot.is_empty() {
        gap = Some(from);
    }
    way.replay_all(begun, visit)?;
    Ok((lacks_before.into_iter().chain(gap).max_by_key(|at| at.number), damaged))
}
