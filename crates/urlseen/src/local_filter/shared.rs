//! Filter in memory that threads share, protected by a lock.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, ErrorKind};
use urlseen_filter::Generation;
#[cfg(feature = "storage")]
use urlseen_filter::limit::Counts;
use urlseen_filter::{
    BuildError, ForgettingFilter, Full, Gauge, Hashed, KeyHash, KeyHasher, Parameters, ShardId,
    Verdict,
};
use urlseen_fingerprint::Fingerprint;
#[cfg(feature = "storage")]
use urlseen_storage::Position;

/// Filter that is protected by a lock. All clones refer to the same filter.
#[derive(Debug, Clone)]
pub(super) struct SharedFilter {
    pub(super) parameters: Parameters,
    hasher: KeyHasher,
    state: Arc<Mutex<FilterState>>,
}

/// Filter with its position in the log.
#[derive(Debug)]
pub(super) struct FilterState {
    pub(super) filter: ForgettingFilter,
    /// Position of the last record of the log whose keys are in the filter.
    #[cfg(feature = "storage")]
    pub(super) at: Position,
    /// Counts of limits. The filter has no limits, but its folder may have been that of a crawl.
    #[cfg(feature = "storage")]
    pub(super) counts: Counts,
    /// First error of a recovery from the log: the filter had no room for a key.
    #[cfg(feature = "storage")]
    pub(super) full: Option<Full>,
}

impl SharedFilter {
    /// Builds an empty filter.
    pub(super) fn new(parameters: Parameters) -> Result<Self, Error> {
        let unbuildable = |error: BuildError| match error {
            BuildError::InRedis(_) => Error::new(ErrorKind::Spec, error),
            _ => Error::new(ErrorKind::Memory, error),
        };
        parameters.check_memory().map_err(|error| Error::new(ErrorKind::Memory, error))?;
        let filter = parameters.build().map_err(unbuildable)?;
        let state = FilterState {
            filter: ForgettingFilter::new(filter),
            #[cfg(feature = "storage")]
            at: Position::START,
            #[cfg(feature = "storage")]
            counts: Counts::default(),
            #[cfg(feature = "storage")]
            full: None,
        };
        let hasher = parameters.hasher();
        Ok(Self { parameters, hasher, state: Arc::new(Mutex::new(state)) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FilterState> {
        // A panic of another thread does no harm: each key is either set completely or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gauge(&self) -> Arc<dyn Gauge> {
        self.lock().filter.kind().gauge()
    }

    /// Returns the number of bits of the filter at its current fill, and the number of bits that a
    /// key sets.
    pub(super) fn shape(&self) -> (u64, u32) {
        let fill = self.gauge().fill();
        match self.parameters.outlook(fill.keys) {
            Ok(outlook) => (outlook.bits, outlook.hashes),
            // The parameters of an imported filter do not determine its layers.
            Err(_) if fill.hashes > 0 => (8 * fill.bytes, fill.hashes),
            Err(_) => (0, 0),
        }
    }

    pub(super) fn key_hashes(&self, keys: &[Fingerprint]) -> Vec<KeyHash> {
        keys.iter().map(|key| self.key_hash(key)).collect()
    }

    /// Computes the key hash of a key.
    pub(super) fn key_hash(&self, key: &Fingerprint) -> KeyHash {
        self.hasher.key_hash(key)
    }

    /// Copies the ids of the keys of a shard, if the kind stores keys.
    pub(super) fn shard_ids(&self, shard: ShardId) -> Option<Vec<u128>> {
        let saved = self.lock().filter.kind().save(shard, Vec::new());
        Some(saved.key_hashes(shard)?.into_iter().map(|(key_hash, _)| key_hash.id()).collect())
    }

    /// Tests keys. Returns true for each seen key.
    pub(super) fn test(&self, keys: &[Fingerprint]) -> Vec<bool> {
        let (key_hashes, mut verdicts) = (self.key_hashes(keys), Vec::new());
        self.lock().filter.test(&key_hashes, &mut verdicts);
        verdicts.into_iter().map(|verdict| verdict == Verdict::Seen).collect()
    }

    /// Adds the keys that are `Unseen`, or forgets those that are `Seen`, as `wanted` says. If a
    /// key comes several times, only the first one counts. Returns true for each key that changes.
    /// Calls `log` with these answers before the filter changes, unless no key does.
    pub(super) fn change(
        &self,
        wanted: Verdict,
        keys: &[Fingerprint],
        log: impl FnOnce(&mut FilterState, &[bool]) -> Result<(), Error>,
    ) -> Result<Vec<bool>, Error> {
        let key_hashes = self.key_hashes(keys);
        let mut state = self.lock();
        let (mut verdicts, mut chosen) = (Vec::new(), Vec::new());
        state.filter.test(&key_hashes, &mut verdicts);
        let mut known = HashSet::<u128, Hashed>::default();
        let choose = |(verdict, key_hash): (Verdict, KeyHash)| {
            let is_chosen = verdict == wanted && known.insert(key_hash.id());
            chosen.extend(is_chosen.then_some(key_hash));
            is_chosen
        };
        let is_chosen: Vec<bool> = verdicts.into_iter().zip(key_hashes).map(choose).collect();
        if wanted == Verdict::Unseen {
            state.filter.kind().reserve_for(&chosen).map_err(no_room)?;
        }
        if !chosen.is_empty() {
            log(&mut state, &is_chosen)?;
        }
        match wanted {
            Verdict::Unseen => {
                state.filter.insert(Generation::FOREVER, &chosen).map_err(no_room)?;
            }
            Verdict::Seen => chosen.into_iter().for_each(|it| state.filter.forget(it)),
        }
        Ok(is_chosen)
    }
}

pub(super) fn no_room(full: Full) -> Error {
    Error::new(ErrorKind::Memory, full)
}
