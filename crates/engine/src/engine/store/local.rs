//! Filter for a caller that may wait for the disk.

use std::io;

use super::{How, Keeping, MismatchError, Recovery, Storage, Store};
use crate::engine::query::QueryDispatcher;
use crate::engine::{Engine, Works};
use crate::item::batch::{Batch, Judged, Ready};
use urlseen_filter::id::RandomId;
use urlseen_storage::{Checkpoint, Folder, Head};

/// Filter in memory, with its folder if there is one.
#[derive(Debug)]
pub struct Local {
    /// The storage. It copies shards from the engine, so it must be dropped before the engine.
    pub(in crate::engine) store: Option<Store>,
    /// The threads that judge.
    pub engine: Engine,
}

impl Local {
    /// Makes a filter without a folder.
    pub fn volatile(engine: Engine) -> Self {
        Self { store: None, engine }
    }

    /// Makes a filter that is stored in `folder`. The filter judges nothing before
    /// [`Local::recover_to`] or [`Local::recover`].
    pub fn kept(engine: Engine, folder: Folder, keeping: Keeping) -> Self {
        Self { store: Some(Store::new(&engine, folder, keeping)), engine }
    }

    /// Starts the work with the queries of `dispatcher`. If there is a folder, a new thread takes
    /// over the folder.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn work(self, dispatcher: QueryDispatcher) -> io::Result<Works> {
        let storage = self.store.map(Storage::start).transpose()?;
        Ok(Works::new(self.engine, storage, dispatcher))
    }

    /// Logs a batch of the crawl after the last logged batch. The batch is written when the call
    /// returns.
    ///
    /// # Errors
    /// The disk fails, or the filter has no folder.
    pub fn append(&mut self, batch: Batch<Judged>) -> io::Result<Batch<Ready>> {
        let unkept = || io::Error::other("the filter has no storage folder");
        let store = self.store.as_mut().ok_or_else(unkept)?;
        store.at = None;
        let mut group = store.kept.journal()?.group();
        let found = &batch.findings;
        group.append(&found.added, &found.lifetimes, &found.counted)?;
        Ok(batch.logged(&group.finish()?[0]))
    }

    /// Returns the progress of imports into the filter.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let notes = self.store.as_ref().map(|store| &store.kept.folder.notes);
        notes.map_or_else(Vec::new, |notes| notes.checkpoints.clone())
    }

    /// Ends the run: leaves the folder at `head`, the last committed batch, with everything on the
    /// disk.
    pub fn rest(&mut self, head: Head) -> io::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.kept.close(Some(head)))
    }

    /// Returns the id of the filter, if the filter has a folder and the folder is not new.
    pub fn filter(&self) -> Option<RandomId> {
        self.store.as_ref()?.filter()
    }

    /// Recovers the filter to `theirs`, the head that Redis records: see [`Store::recover_to`].
    pub fn recover_to(
        &mut self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<Recovery, MismatchError> {
        let head = theirs.unwrap_or(Head::START);
        let empty = || Recovery { head, filter: RandomId::random(), how: How::New };
        self.restored(empty, |store| store.recover_to(theirs, filter))
    }

    /// Recovers the filter to the last position that the folder records. The caller needs no head
    /// from Redis.
    pub fn recover(&mut self) -> Result<How, MismatchError> {
        self.restored(|| How::New, Store::recover)
    }

    /// Keeps the filter of the folder: see [`Store::adopt`].
    pub fn adopt(&mut self, theirs: Option<Head>) -> Result<Head, MismatchError> {
        self.restored(|| theirs.unwrap_or(Head::START), |store| store.adopt(theirs))
    }

    /// Restores the filter from the folder. If there is none, only makes the result `empty`.
    fn restored<T>(
        &mut self,
        empty: impl FnOnce() -> T,
        restore: impl FnOnce(&mut Store) -> Result<T, MismatchError>,
    ) -> Result<T, MismatchError> {
        self.engine.restoring();
        let done = match &mut self.store {
            Some(store) => restore(store)?,
            None => empty(),
        };
        self.engine.restored_blocking()?;
        Ok(done)
    }
}
