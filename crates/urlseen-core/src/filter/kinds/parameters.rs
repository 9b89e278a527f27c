//! A kind of filter with its parameters.

use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use super::{CAPACITY, GROW_TO, KindParameters};
use crate::filter::Seed;
use crate::filter::layout::native::Native;
use crate::filter::memory::{self, Available, TooLarge};

/// Parameters of a filter of any kind.
#[derive(Debug, Clone)]
pub struct Parameters(Arc<dyn KindParameters>);

impl Parameters {
    pub(super) fn new(parameters: impl KindParameters + 'static) -> Self {
        Self(Arc::new(parameters))
    }

    /// Returns true if a full filter grows: it takes more memory and keeps its error rate.
    pub fn grows(&self) -> bool {
        self.kind().0.grows
    }

    /// Returns true if a client's addition is to be inserted when it is answered, before the log
    /// has it.
    pub fn inserts_at_once(&self) -> bool {
        self.kind().0.inserts_at_once
    }

    /// Returns true if the filter never reports an unseen fingerprint as seen.
    pub fn is_exact(&self) -> bool {
        self.kind().0.is_exact
    }

    /// Returns the names of two rules: the rule from keys to bit positions, and the rule from keys
    /// to shards. A name is empty if only one such rule is possible.
    pub fn rules(&self) -> [String; 2] {
        let [positions, shards] = self.kind().0.rules.map(str::to_owned);
        match self.frozen() {
            Some(frozen) => [format!("{positions} over {}", frozen.rules()[0]), shards],
            None => [positions, shards],
        }
    }

    /// Returns the number of shards of a filter in memory.
    pub fn shards(&self) -> usize {
        self.kind().0.shards
    }

    /// Returns the parameter of this name, if the kind has one.
    pub fn field<T: FromStr>(&self, name: &str) -> Option<T> {
        self.fields().into_iter().find(|&(it, _)| it == name)?.1.parse().ok()
    }

    /// Checks that an empty filter fits into the memory that this process can still take.
    ///
    /// # Errors
    /// The filter does not fit.
    pub fn check_memory(&self) -> Result<(), TooLarge> {
        memory::check(self.capacity().unwrap_or(0), self.bytes(), memory::available())
    }

    /// Returns the number of bytes that a filter takes with as many fingerprints as it keeps its
    /// error rate for, and the memory available to this process, if that is less.
    pub fn outgrown(&self) -> Option<(u64, Available)> {
        let bytes = self.outlook(self.field(GROW_TO)?).ok()?.bytes[0];
        memory::available().filter(|available| available.bytes < bytes).map(|it| (bytes, it))
    }

    /// Returns the largest number of fingerprints with which a filter takes at most this number of
    /// bytes. A filter that grows takes as much in the worst case.
    pub fn keys_within(&self, bytes: u64) -> u64 {
        let fits = |keys| self.outlook(keys).is_ok_and(|it| it.bytes[1] <= bytes);
        let (mut keys, mut step) = (0, 1_u64 << 40);
        while step > 0 {
            keys += if fits(keys + step) { step } else { 0 };
            step /= 2;
        }
        keys
    }

    /// Returns the maximum memory of an empty filter in bytes; 0 if it is unknown.
    pub fn bytes(&self) -> u64 {
        self.outlook(0).map_or(0, |outlook| outlook.bytes[1])
    }

    /// Returns the number of fingerprints that the filter is made for. `None` if the parameters
    /// contain no capacity.
    pub fn capacity(&self) -> Option<u64> {
        self.field(CAPACITY)
    }

    /// Returns the native layout; `None` for all other kinds.
    pub fn layout(&self) -> Option<Native> {
        self.in_redis().ok()?.native()
    }

    /// Returns the parameters with a seed. If no seed is set, `draw` draws one.
    #[must_use]
    pub fn seeded(&self, draw: impl FnOnce() -> Seed) -> Self {
        match self.seed() {
            Some(_) => self.clone(),
            // A kind without a seed stays as it is.
            None => self.reseeded(draw()),
        }
    }

    /// Returns the parameters for an existing filter: with its seed, and with its frozen filter if
    /// it has one.
    #[must_use]
    pub fn continuing(&self, existing: &Self) -> Self {
        let over = existing.frozen().and_then(|frozen| self.over(frozen));
        let parameters = over.unwrap_or_else(|| self.clone());
        match existing.seed() {
            Some(seed) => parameters.reseeded(seed),
            None => parameters,
        }
    }

    /// Returns the parameters with another seed. A kind without a seed stays as it is.
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
