//! What an engine is started with.

use std::sync::Arc;

use crate::item::Options;
use urlseen_core::filter::{
    BuildError, FilterKind, KeyHasher, Parameters, Recent, RedisFilterKeys,
};

/// Builds the part of a filter that an owner has: its number, and how many there are.
pub(super) type Build =
    dyn Fn(usize, usize) -> Result<Box<dyn FilterKind>, BuildError> + Send + Sync;

/// What an engine is started with.
pub struct Parts {
    pub(super) hasher: KeyHasher,
    pub(super) build: Arc<Build>,
    /// Where in Redis the filter is, if it is there.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) items: Options,
    pub(super) threads: usize,
}

impl Parts {
    /// For a filter in the memory of so many threads, each of which owns its share of the shards;
    /// a seed must be there if there can be one.
    pub fn local(parameters: Parameters, items: Options, threads: usize) -> Self {
        let hasher = parameters.hasher();
        let build = Arc::new(move |owner, owners| parameters.build(owner, owners));
        Self { hasher, build, shared: None, items, threads }
    }

    /// For a filter in Redis, which judges. The threads remember some of what they know to be
    /// seen: at most `recent` fingerprints.
    pub fn in_redis(
        shared: Arc<RedisFilterKeys>,
        hasher: KeyHasher,
        recent: usize,
        items: Options,
        threads: usize,
    ) -> Self {
        let build = move |_, owners| Ok(Box::new(Recent::new(recent / owners)) as _);
        Self { hasher, build: Arc::new(build), shared: Some(shared), items, threads }
    }
}
