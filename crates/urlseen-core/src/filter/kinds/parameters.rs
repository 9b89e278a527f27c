//! A kind of filter with its parameters.

use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use super::{CAPACITY, KindParameters};
use crate::filter::Seed;
use crate::filter::layout::native::Native;

/// Parameters of a filter of any kind.
#[derive(Debug, Clone)]
pub struct Parameters(Arc<dyn KindParameters>);

impl Parameters {
    pub(super) fn new(parameters: impl KindParameters + 'static) -> Self {
        Self(Arc::new(parameters))
    }

    /// Returns the part of this name, if the kind has it.
    pub fn field<T: FromStr>(&self, name: &str) -> Option<T> {
        self.fields().into_iter().find(|&(it, _)| it == name)?.1.parse().ok()
    }

    /// Bytes of memory that an empty filter takes at most; 0 if nothing tells.
    pub fn bytes(&self) -> u64 {
        self.outlook(0).map_or(0, |outlook| outlook.bytes[1])
    }

    /// Number of fingerprints that the filter was made for, if that is recorded.
    pub fn capacity(&self) -> Option<u64> {
        self.field(CAPACITY)
    }

    /// Layout of a filter of shards of bits.
    pub fn layout(&self) -> Option<Native> {
        self.in_redis().ok()?.native()
    }

    /// Returns the same with a seed: the one that is set, or one that `draw` gives.
    #[must_use]
    pub fn seeded(&self, draw: impl FnOnce() -> Seed) -> Self {
        match self.seed() {
            Some(_) => self.clone(),
            // A kind without a seed has none to set.
            None => self.reseeded(draw()),
        }
    }

    /// Returns the same with that seed, if the kind has a seed.
    #[must_use]
    pub fn reseeded(&self, seed: Seed) -> Self {
        self.with_seed(seed).unwrap_or_else(|| self.clone())
    }
}

impl Deref for Parameters {
    type Target = dyn KindParameters;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.kind(), it.fields(), it.division());
        parts(self) == parts(other)
    }
}
