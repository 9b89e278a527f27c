//! Everything that is needed to start an engine.

use std::sync::Arc;

use crate::item::Options;
use urlseen_core::filter::{
    BuildError, FilterKind, KeyHasher, Parameters, Recent, RedisFilterKeys,
};

/// Builds an owner's part of a filter. The arguments are the owner's number and the number of
/// owners.
pub(super) type Build =
    dyn Fn(usize, usize) -> Result<Box<dyn FilterKind>, BuildError> + Send + Sync;

/// Everything that is needed to start an engine.
pub struct Parts {
    pub(super) hasher: KeyHasher,
    pub(super) build: Arc<Build>,
    /// Keys of the filter in Redis; `None` for a filter in memory.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) items: Options,
    pub(super) threads: usize,
    /// True for an engine whose caller does the jobs of the only thread.
    #[cfg(feature = "simulation")]
    pub(super) is_stepped: bool,
}

impl Parts {
    /// Describes a filter in memory. Each of the threads owns its share of the shards. The
    /// parameters must have a seed, if their kind has one.
    pub fn local(parameters: Parameters, items: Options, threads: usize) -> Self {
        let hasher = parameters.hasher();
        let build = Arc::new(move |owner, owners| parameters.build(owner, owners));
        Self::new(hasher, build, None, items, threads)
    }

    /// Describes a filter in Redis. Redis judges the keys. The threads only cache at most `recent`
    /// seen fingerprints.
    pub fn in_redis(
        shared: Arc<RedisFilterKeys>,
        hasher: KeyHasher,
        recent: usize,
        items: Options,
        threads: usize,
    ) -> Self {
        let build = move |_, owners| Ok(Box::new(Recent::new(recent / owners)) as _);
        Self::new(hasher, Arc::new(build), Some(shared), items, threads)
    }

    fn new(
        hasher: KeyHasher,
        build: Arc<Build>,
        shared: Option<Arc<RedisFilterKeys>>,
        items: Options,
        threads: usize,
    ) -> Self {
        Self {
            hasher,
            build,
            shared,
            items,
            threads,
            #[cfg(feature = "simulation")]
            is_stepped: false,
        }
    }

    /// Describes the same engine without threads: the caller does its jobs, one by one.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn stepped(self) -> Self {
        Self { threads: 1, is_stepped: true, ..self }
    }
}
