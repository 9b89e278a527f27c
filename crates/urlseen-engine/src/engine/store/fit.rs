//! Checks that a filter can continue a crawl. They change nothing.

use std::path::Path;

use super::MismatchError;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{AtRest, Head, Header, Look, Target, look};

/// Position of a crawl in Redis.
#[derive(Debug, Clone, Copy)]
pub struct CrawlPosition {
    /// Head of the crawl; `None` if Redis has no state of the crawl.
    pub head: Option<Head>,
    /// Id of the filter that Redis names.
    pub filter: Option<RandomId>,
}

impl CrawlPosition {
    /// Returns the head of a crawl that has committed batches. Before batch 1 there is no state
    /// that could be lost.
    fn committed(self) -> Option<Head> {
        self.head.filter(|head| head.seq > 0)
    }

    /// Checks that the filter of a folder can belong to the crawl. `header` is the header of the
    /// folder `dir`.
    pub(super) fn check_header(
        self,
        dir: &Path,
        header: Option<&Header>,
        emit_again: bool,
    ) -> Result<(), MismatchError> {
        let Some(theirs) = self.committed() else { return Ok(()) };
        match (header, self.filter) {
            (None, _) if !emit_again => Err(MismatchError::New { dir: dir.to_owned(), theirs }),
            (Some(header), Some(theirs)) if header.filter() != theirs.get() => {
                let (dir, ours) = (dir.to_owned(), RandomId::new(header.filter()));
                Err(MismatchError::OtherFilter { dir, ours, theirs })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the filter `ours` in Redis can belong to the crawl.
    ///
    /// # Errors
    /// The crawl has committed batches with another filter.
    pub fn check_redis_filter(self, ours: RandomId) -> Result<(), MismatchError> {
        let theirs = self.filter.filter(|&theirs| self.committed().is_some() && theirs != ours);
        theirs.map_or(Ok(()), |theirs| Err(MismatchError::OtherFilterInRedis { ours, theirs }))
    }

    /// Checks that the crawl can begin with an empty filter, because the folder `dir` is missing.
    /// With `emit_again`, the filter may lack batches that Redis has.
    ///
    /// # Errors
    /// Redis has batches of the crawl.
    pub fn check_missing_folder(self, dir: &Path, emit_again: bool) -> Result<(), MismatchError> {
        self.check_header(dir, None, emit_again)
    }

    /// Checks that the filter in `folder`, at the path `dir`, can be recovered to the position of
    /// the crawl. With `emit_again`, the filter may lack batches that Redis has.
    ///
    /// # Errors
    /// The errors of [`Store::recover_to`](super::Store::recover_to), except for those of a disk
    /// that cannot be written.
    pub fn check_folder(
        self,
        dir: &Path,
        folder: &AtRest,
        emit_again: bool,
    ) -> Result<(), MismatchError> {
        self.check_header(dir, folder.header(), emit_again)?;
        if folder.header().is_none() {
            return Ok(());
        }
        let target = match self.head {
            Some(head) => head,
            None => start(dir, &look(dir)?, emit_again)?,
        };
        let Err(error) = folder.reaches(Target::At(target)) else { return Ok(()) };
        let unfit = MismatchError::Recovery(dir.to_owned(), Box::new(error));
        if emit_again && unfit.lack().is_some() { Ok(()) } else { Err(unfit) }
    }
}

/// Returns the start position, which is the target of a recovery if Redis has no state of the
/// crawl. `look` is the content of the folder `dir`. Fails if the folder may have batches and the
/// configuration does not permit that URLs are emitted again.
pub(super) fn start(dir: &Path, look: &Look, emit_again: bool) -> Result<Head, MismatchError> {
    let snapshots = look.snapshots.iter().map(|snapshot| snapshot.last);
    let last = look.last.into_iter().chain(snapshots).map(|position| position.head);
    let ours = last.max_by_key(|head| head.seq).unwrap_or(Head::START);
    // A damaged file may have contained batches.
    let is_new = ours.seq == 0 && look.damages.is_empty();
    if !is_new && !emit_again {
        return Err(MismatchError::NoState { dir: dir.to_owned(), ours });
    }
    Ok(Head::START)
}
