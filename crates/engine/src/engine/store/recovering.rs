//! Recovery of the filter to the last batch that Redis has committed.

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::{BinaryBytes, HumanCount};

use super::fit::{CrawlPosition, start};
use super::{MismatchError, Store};
use crate::engine::EngineError;
use urlseen_filter::id::RandomId;
use urlseen_storage::{Head, Recovered, RecoveryError, Target};

/// Result of recovering a filter.
#[derive(Debug)]
pub struct Recovery {
    /// Last batch in the filter.
    pub head: Head,
    /// Random id of the filter.
    pub filter: RandomId,
    /// Description of the recovery.
    pub how: How,
}

/// Description of how a filter reached its position.
#[derive(Debug)]
pub enum How {
    /// The folder is new, and the filter is empty.
    New,
    /// The filter was already at its position.
    Stayed,
    /// The filter is in Redis, so nothing is recovered.
    Shared,
    /// The filter was loaded from the folder.
    Loaded {
        /// Contents of the folder.
        recovered: Recovered,
        /// Time that the recovery took.
        took: Duration,
    },
    /// The filter lacks some batches that Redis has. The configuration permits this.
    Partly {
        /// Last batch that the folder had, if any.
        best: Option<Head>,
        /// Error that names the missing batches.
        lacking: MismatchError,
    },
}

impl Store {
    /// Checks that this filter can belong to a crawl. `theirs` is the head of the crawl in Redis,
    /// and `filter` is the id of the filter that Redis names. Reads only the folder's header.
    pub fn check_fit(
        &self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<(), MismatchError> {
        let (folder, position) = (&self.kept.folder, CrawlPosition { head: theirs, filter });
        position.check_header(folder.dir(), folder.header(), self.emit_again)
    }

    /// Recovers the filter to `theirs`, the head in Redis. Fails if `filter`, the id that Redis
    /// names, is the id of another filter. If `theirs` is `None`, Redis has no state of the crawl.
    /// The call can take long.
    pub fn recover_to(
        &mut self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<Recovery, MismatchError> {
        self.check_fit(theirs, filter)?;
        let Some(ours) = self.filter() else { return self.begin(theirs) };
        let folder = &self.kept.folder;
        let target = match theirs {
            Some(theirs) => theirs,
            None => start(folder.dir(), &folder.look()?, self.emit_again)?,
        };
        if self.at == Some(target) {
            return Ok(Recovery { head: target, filter: ours, how: How::Stayed });
        }
        match self.load(Target::At(target)) {
            Ok((_, how)) => Ok(Recovery { head: target, filter: ours, how }),
            Err(unfit) => match unfit.lack().map(RecoveryError::best) {
                Some(best) if self.emit_again => self.load_partly(target, best, unfit),
                _ => Err(unfit),
            },
        }
    }

    /// Recovers the filter to the last position in the folder, without a position of Redis.
    pub fn recover(&mut self) -> Result<How, MismatchError> {
        match self.filter() {
            None => self.begin(None).map(|recovered| recovered.how),
            Some(_) => self.load(Target::Last).map(|(_, how)| how),
        }
    }

    /// Replaces the contents of the folder with the filter in memory, whose head becomes `head`.
    /// Before that, empties the filter if `empties` is true: no batch may be judged or uncommitted
    /// then, and no question may be under way. The call can be repeated after a failure.
    pub(crate) fn replace(&mut self, head: Head, empties: bool) -> Result<(), MismatchError> {
        self.at = None;
        let position = self.kept.rebase(head, empties)?.ok_or(EngineError::Panicked)?;
        self.at = Some(position.head);
        Ok(())
    }

    /// Keeps the filter of the folder, and moves the filter to `theirs`, the position of Redis. If
    /// `theirs` is `None`, the filter stays at the position of the folder. Returns the new
    /// position.
    pub(crate) fn adopt(&mut self, theirs: Option<Head>) -> Result<Head, MismatchError> {
        if self.filter().is_none() {
            let at = theirs.unwrap_or(Head::START);
            self.kept.folder.begin(&self.spec, RandomId::random(), at)?;
            return Ok(at);
        }
        let (ours, _) = self.load(Target::Last)?;
        match theirs {
            Some(theirs) if theirs != ours => self.replace(theirs, false)?,
            _ => {}
        }
        Ok(theirs.unwrap_or(ours))
    }

    /// Returns the id of the filter, if the folder is not new.
    pub(crate) fn filter(&self) -> Option<RandomId> {
        self.kept.folder.header().map(|header| header.filter)
    }

    fn begun(&self) -> RandomId {
        self.filter().expect("the folder has a header")
    }

    /// Begins the new folder with an empty filter.
    fn begin(&mut self, theirs: Option<Head>) -> Result<Recovery, MismatchError> {
        let at = theirs.unwrap_or(Head::START);
        let dir = self.kept.folder.dir().to_owned();
        let lacking = (at.seq > 0).then_some(MismatchError::New { dir, theirs: at });
        self.load(Target::At(at))?;
        let how = match lacking {
            Some(lacking) => How::Partly { best: None, lacking },
            None => How::New,
        };
        Ok(Recovery { head: at, filter: self.begun(), how })
    }

    /// Recovers the filter to `target`, and opens the log there.
    fn load(&mut self, target: Target) -> Result<(Head, How), MismatchError> {
        let begun = Instant::now();
        self.at = None;
        let recovered = self.kept.recover(&self.spec, target);
        let recovered = recovered.map_err(|error| {
            MismatchError::Recovery(self.kept.folder.dir().to_owned(), Box::new(error))
        })?;
        let head = recovered.position.head;
        self.at = Some(head);
        Ok((head, How::Loaded { recovered, took: begun.elapsed() }))
    }

    /// Recovers the filter to `best`, the last batch that the folder has, or empties the filter.
    /// Then records `target` as the position of the filter.
    fn load_partly(
        &mut self,
        target: Head,
        best: Option<Head>,
        lacking: MismatchError,
    ) -> Result<Recovery, MismatchError> {
        // The folder may also lack imported keys, so imports must start from their beginning.
        self.kept.folder.note(|notes| notes.checkpoints.clear())?;
        if let Some(best) = best {
            self.load(Target::At(best))?;
        }
        self.replace(target, best.is_none())?;
        let how = How::Partly { best, lacking };
        Ok(Recovery { head: target, filter: self.begun(), how })
    }
}

impl How {
    /// Returns warnings for the user.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::New | Self::Stayed | Self::Shared => Vec::new(),
            Self::Loaded { recovered, .. } => {
                let damaged = recovered.damaged.iter();
                damaged.map(|damage| format!("skipped because of damage: {damage}")).collect()
            }
            Self::Partly { lacking, .. } => {
                vec![format!(
                    "{lacking}. The run continues, because storage.on_rollback is \"emit-again\""
                )]
            }
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("The storage folder is new, the filter is empty"),
            Self::Stayed => f.write_str("The filter is already at this batch"),
            Self::Shared => f.write_str("The filter is in Redis and needs no recovery"),
            Self::Loaded { recovered, took } => {
                let Recovered { snapshot, snapshot_bytes, records, fingerprints, dropped, .. } =
                    recovered;
                write!(
                    f,
                    "The filter was recovered in {:.2} s from {snapshot} ({}) and the later log \
                     (records: {}, fingerprints: {})",
                    took.as_secs_f64(),
                    BinaryBytes(*snapshot_bytes),
                    HumanCount(*records),
                    HumanCount(*fingerprints),
                )?;
                if *dropped > 0 {
                    write!(f, ". Batches that were logged and not committed: {dropped}")?;
                }
                Ok(())
            }
            Self::Partly { best: Some(best), .. } => write!(
                f,
                "The filter was recovered to {best}; later URLs are emitted again if they are \
                 found again"
            ),
            Self::Partly { best: None, .. } => f.write_str(
                "The filter is empty: URLs that were seen are emitted again if they are found \
                 again",
            ),
        }
    }
}

/// Errors after which `storage.on_rollback = "emit-again"` uses the filter anyway.
impl MismatchError {
    /// Returns the reason if the only problem is that the folder lacks batches that Redis has.
    pub(super) fn lack(&self) -> Option<&RecoveryError> {
        let Self::Recovery(_, error) = self else { return None };
        let lack = matches!(
            **error,
            RecoveryError::Behind { .. }
                | RecoveryError::Beyond { .. }
                | RecoveryError::NoSnapshot { .. }
        );
        lack.then_some(error)
    }
}
