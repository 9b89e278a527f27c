//! A filter for a caller that may wait for the disk.

use std::io;

use super::{
    Change, Footprint, How, Keeping, MismatchError, Recovery, Storage, Store, Write, Written,
};
use crate::engine::Engine;
use crate::item::batch::{Batch, Judged, Ready};
use urlseen_core::filter::id::RandomId;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Checkpoint, Finished, Folder, Head, Moment, Position};

/// A filter in memory, and its folder if it has one.
#[derive(Debug)]
pub struct Local {
    /// Ended before the engine that it copies from.
    store: Option<Store>,
    /// Judges.
    pub engine: Engine,
}

impl Local {
    /// A filter of which nothing is kept.
    pub fn volatile(engine: Engine) -> Self {
        Self { store: None, engine }
    }

    /// A filter kept in `folder`; [`Local::recover_to`] or [`Local::recover`] comes before anything
    /// is judged by it.
    pub fn kept(engine: Engine, folder: Folder, keeping: Keeping) -> Self {
        Self { store: Some(Store::new(&engine, folder, keeping)), engine }
    }

    /// Hands the folder, if there is one, to a thread of its own.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn started(self) -> io::Result<(Engine, Option<Storage>)> {
        let storage = self.store.map(Storage::start).transpose()?;
        Ok((self.engine, storage))
    }

    /// Writes a batch down as the one that follows the last. It has been written when this returns.
    ///
    /// # Errors
    /// The disk fails, or nothing is kept.
    pub fn append(&mut self, batch: Batch<Judged>) -> io::Result<Batch<Ready>> {
        let unkept = || io::Error::other("the filter is not kept in a folder");
        self.store.as_mut().ok_or_else(unkept)?.append(batch)
    }

    /// Adds what a batch has that is new, whatever becomes of the crawl's batches: its fingerprints
    /// are written down, and then are seen.
    pub(crate) fn add(&mut self, batch: &Batch<Judged>) -> io::Result<()> {
        let at = self.store.as_mut().map_or(Ok(Position::START), |store| store.add(batch))?;
        self.engine.committed(at);
        Ok(())
    }

    /// Writes down what was answered outside of batches. It has been written when this returns.
    pub(crate) fn record(&mut self, changes: Vec<(Change, Fingerprint)>) -> io::Result<Position> {
        let Some(store) = &mut self.store else { return Ok(Position::START) };
        let written = store.write([Write::Changes((), changes)])?;
        let at = written.into_iter().find_map(|it| match it {
            Written::Changes((), at) => Some(at),
            Written::Batch(_) => None,
        });
        Ok(at.unwrap_or(Position::START))
    }

    /// Fails if what was logged is lost to the next start, as far as that can be seen at a glance.
    pub fn check(&self) -> io::Result<()> {
        self.store.as_ref().map_or(Ok(()), |store| store.kept.check())
    }

    /// What is kept, if anything is.
    pub fn footprint(&self) -> Option<Footprint> {
        self.store.as_ref().map(Store::footprint)
    }

    /// Empties the filter in memory: see [`Store::empty`].
    pub(crate) fn empty(&mut self) -> Result<Head, MismatchError> {
        let threads = self.engine.restoring();
        let Some(store) = &mut self.store else {
            threads.clear();
            return Ok(Head::START);
        };
        store.empty()
    }

    /// Begins a snapshot where the log has grown long; says why none could be taken, if that is so.
    pub fn tend(&mut self) -> Option<io::Error> {
        self.store.as_mut()?.kept.tend()
    }

    /// Begins a snapshot: see [`FilterStorage::begin_snapshot`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_snapshot(&mut self, horizon: Option<Moment>) -> io::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.kept.begin_snapshot(horizon))
    }

    /// Waits for the snapshot under way.
    pub fn wait_for_snapshot(&mut self) -> Option<io::Result<Finished>> {
        self.store.as_mut()?.kept.wait_for_snapshot()
    }

    /// How far imports into the filter came.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        self.store.as_ref().map_or_else(Vec::new, |store| store.kept.folder().checkpoints())
    }

    /// Records how far imports came: see [`Store::record_checkpoints`].
    pub(crate) fn record_checkpoints(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.record_checkpoints(checkpoints))
    }

    /// The run ends, with `head` as the last batch committed: leaves the folder as Redis is, and
    /// all of it on the disk.
    pub fn rest(&mut self, head: Head) -> io::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.rest(Some(head)))
    }

    /// The same where no Redis names the last batch.
    pub fn rest_as_it_is(&mut self) -> io::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.rest(None))
    }

    /// The id of the filter, where it is kept and not new.
    pub fn filter(&self) -> Option<RandomId> {
        self.store.as_ref()?.filter()
    }

    /// Brings the filter to where Redis stands: see [`Store::recover_to`].
    pub fn recover_to(
        &mut self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<Recovery, MismatchError> {
        self.engine.restoring();
        let recovered = match &mut self.store {
            Some(store) => store.recover_to(theirs, filter)?,
            None => Recovery::empty(theirs),
        };
        self.engine.restored_blocking()?;
        Ok(recovered)
    }

    /// Brings the filter back as far as the folder goes, where no Redis says how far that is.
    pub fn recover(&mut self) -> Result<How, MismatchError> {
        self.engine.restoring();
        let Some(store) = &mut self.store else { return Ok(How::New) };
        let how = store.recover()?;
        self.engine.restored_blocking()?;
        Ok(how)
    }

    /// Has the folder remember the filter as it is in memory, in place of what it did, at `head`.
    /// Where that fails, it can be done again.
    pub fn replace(&mut self, head: Head) -> Result<(), MismatchError> {
        self.store.as_mut().map_or(Ok(()), |store| store.replace(head))
    }

    /// Keeps the filter as the folder has it: see [`Store::adopt`].
    pub fn adopt(&mut self, theirs: Option<Head>) -> Result<Head, MismatchError> {
        self.engine.restoring();
        let head = match &mut self.store {
            Some(store) => store.adopt(theirs)?,
            None => theirs.unwrap_or(Head::START),
        };
        self.engine.restored_blocking()?;
        Ok(head)
    }
}
