//! Filter in memory that threads share by a lock.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, ErrorKind};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{
    BuildError, ForgettingFilter, Full, Gauge, Hashed, KeyHasher, Outlook, Parameters, Verdict,
    count_by_shard,
};
use urlseen_core::fingerprint::Fingerprint;
#[cfg(feature = "storage")]
use urlseen_core::storage::Position;

/// A filter behind a lock. All clones refer to the same filter.
#[derive(Debug, Clone)]
pub(super) struct SharedFilter {
    pub(super) parameters: Parameters,
    hasher: KeyHasher,
    state: Arc<Mutex<State>>,
}

/// The filter, and its place in the log.
#[derive(Debug)]
pub(super) struct State {
    pub(super) filter: ForgettingFilter,
    /// The last record of the log whose keys are in the filter.
    #[cfg(feature = "storage")]
    pub(super) at: Position,
    /// Reason why the filter had no room for a key of the log.
    #[cfg(feature = "storage")]
    pub(super) full: Option<Full>,
}

/// Result of testing keys that are to be inserted.
pub(super) struct Judged {
    /// True for each key that is new.
    pub(super) is_new: Vec<bool>,
    /// Key hashes of the new keys.
    pub(super) new: Vec<KeyHash>,
}

impl SharedFilter {
    /// Builds an empty filter.
    pub(super) fn new(parameters: Parameters) -> Result<Self, Error> {
        let unbuildable = |error: BuildError| match error {
            BuildError::InRedis(_) => Error::new(ErrorKind::Spec, error),
            _ => Error::new(ErrorKind::Memory, error),
        };
        parameters.check_memory().map_err(unbuildable)?;
        let filter = parameters.build(0, 1).map_err(unbuildable)?;
        let state = State {
            filter: ForgettingFilter::new(filter, Arc::default()),
            #[cfg(feature = "storage")]
            at: Position::START,
            #[cfg(feature = "storage")]
            full: None,
        };
        let hasher = parameters.hasher();
        Ok(Self { parameters, hasher, state: Arc::new(Mutex::new(state)) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic, each key is either set completely or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gauge(&self) -> Arc<dyn Gauge> {
        self.lock().filter.gauge()
    }

    /// Returns the number of bits and hashes of the filter at its current fill.
    pub(super) fn outlook(&self) -> Option<Outlook> {
        self.parameters.outlook(self.gauge().fill().keys).ok()
    }

    pub(super) fn key_hashes(&self, keys: &[Fingerprint]) -> Vec<KeyHash> {
        keys.iter().map(|key| self.hasher.key_hash(key)).collect()
    }

    /// Returns true for each key that is seen.
    pub(super) fn test(&self, keys: &[Fingerprint]) -> Vec<bool> {
        let (key_hashes, mut verdicts) = (self.key_hashes(keys), Vec::new());
        self.lock().filter.test(&key_hashes, &mut verdicts);
        verdicts.into_iter().map(|verdict| verdict == Verdict::Seen).collect()
    }
}

impl State {
    /// Tests keys, and reserves room for the new ones.
    pub(super) fn judge(&mut self, key_hashes: &[KeyHash]) -> Result<Judged, Error> {
        let (mut verdicts, mut new) = (Vec::new(), Vec::new());
        self.filter.test(key_hashes, &mut verdicts);
        let mut known = HashSet::<u128, Hashed>::default();
        let judge = |(verdict, &key_hash): (Verdict, &KeyHash)| {
            let is_new = verdict == Verdict::Unseen && known.insert(key_hash.id());
            new.extend(is_new.then_some(key_hash));
            is_new
        };
        let is_new = verdicts.into_iter().zip(key_hashes).map(judge).collect();
        self.filter.reserve(&count_by_shard(&new)).map_err(no_room)?;
        Ok(Judged { is_new, new })
    }

    pub(super) fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Error> {
        self.filter.insert(key_hashes).map_err(no_room)
    }
}

pub(super) fn no_room(full: Full) -> Error {
    Error::new(ErrorKind::Memory, full)
}
