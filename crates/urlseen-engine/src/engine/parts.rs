//! Everything that is needed to start an engine.

use std::sync::Arc;

use super::Threads;
use crate::item::Options;
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::{
    BuildError, FilterKind, KeyHasher, Parameters, Recent, RedisFilterKeys,
};

/// Builds an empty filter.
pub(super) type Build = dyn Fn() -> Result<Box<dyn FilterKind>, BuildError> + Send + Sync;

/// Everything that is needed to start an engine.
#[derive(Clone)]
pub struct Parts {
    pub(super) hasher: KeyHasher,
    pub(super) build: Arc<Build>,
    /// True if a client's addition is to be inserted when it is answered.
    pub(super) inserts_at_once: bool,
    /// Time after which fingerprints of the filter pass again, if they expire.
    pub(super) expire_after: Option<ExpireAfter>,
    /// Keys of the filter in Redis; `None` for a filter in memory.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) items: Options,
    pub(super) threads: Threads,
}

impl Parts {
    /// Describes a filter in memory. The parameters must have a seed, if their kind has one.
    pub fn local(parameters: Parameters, items: Options, threads: Threads) -> Self {
        let (hasher, expire_after) = (parameters.hasher(), parameters.expire_after());
        let inserts_at_once = parameters.inserts_at_once();
        let build = Arc::new(move || parameters.build());
        Self { hasher, build, inserts_at_once, expire_after, shared: None, items, threads }
    }

    /// Describes a filter in Redis. Redis judges the keys. The judge only caches at most `recent`
    /// seen fingerprints.
    pub fn in_redis(
        shared: Arc<RedisFilterKeys>,
        hasher: KeyHasher,
        recent: usize,
        items: Options,
        threads: Threads,
    ) -> Self {
        let build = Arc::new(move || Ok(Box::new(Recent::new(recent)) as _));
        let (inserts_at_once, expire_after, shared) = (false, None, Some(shared));
        Self { hasher, build, inserts_at_once, expire_after, shared, items, threads }
    }
}
