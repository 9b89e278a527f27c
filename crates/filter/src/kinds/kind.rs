//! A kind of filter: its entry in the registry, and what the parameters of a filter can do.

use std::fmt;
use std::sync::Arc;

use super::values::Values;
use crate::choice::FilterPlace;
use crate::{BuildError, FilterKind, KeyHasher, Outlook, RedisKind, SHARDS, Seed, SpecError};

/// Kind of a filter: urlseen's own kind, or a kind that sets the same bits as another project.
///
/// A kind is one of the constants, or the parsed word of `filter.kind`. The kinds of other projects
/// hash the hex digits of a fingerprint. They hash any other key unchanged. Some of these kinds
/// refuse a key that is empty or not UTF-8.
#[derive(Clone, Copy)]
pub struct Kind(pub(crate) &'static Registered);

/// Entry of the registry.
pub(crate) struct Registered {
    /// The word of `filter.kind`.
    pub(crate) name: &'static str,
    /// A shorter word for tables; empty if the name is short enough.
    pub(crate) short: &'static str,
    /// Keys of the section `filter` from which the parameters of a filter are read.
    pub(crate) keys: &'static [&'static str],
    /// Default settings of the kind's project, besides capacity and error rate.
    pub(crate) usual: &'static [(&'static str, &'static str)],
    /// Places that a filter of this kind can live in.
    pub(crate) places: &'static [FilterPlace],
    /// True if a full filter takes more memory and keeps its error rate.
    pub(crate) grows: bool,
    /// True if a client's addition is to be inserted when it is answered, before the log has it.
    /// The answer for a key then follows from the bits of all earlier additions.
    pub(crate) inserts_at_once: bool,
    /// True if a filter never reports an unseen fingerprint as seen.
    pub(crate) is_exact: bool,
    /// Names of two rules: the rule from keys to bit positions, and the rule from keys to shards. A
    /// name is empty if only one such rule is possible.
    pub(crate) rules: [&'static str; 2],
    /// Number of shards of a filter in memory.
    pub(crate) shards: usize,
    /// Keys whose values in the configuration may differ from those of an existing filter.
    pub(crate) free: &'static [&'static str],
    /// Names under which a folder records the values of a frozen native filter below, with their
    /// own names. Empty if the kind cannot be over such a filter.
    pub(crate) frozen: &'static [(&'static str, &'static str)],
    /// Reads the values that are configured for a filter.
    pub(crate) read: fn(&Values<'_>) -> Result<Arc<dyn KindParameters>, SpecError>,
}

/// Default values for the entry of a kind that exists only in Redis. Its filters have a capacity
/// and an error rate.
pub(crate) const IN_REDIS: Registered = Registered {
    name: "",
    short: "",
    keys: &[CAPACITY, ERROR_RATE],
    usual: &[],
    places: &[FilterPlace::Redis],
    grows: false,
    inserts_at_once: false,
    is_exact: false,
    rules: ["", ""],
    shards: SHARDS,
    free: &[],
    frozen: &[],
    read: |_| Err(SpecError::unreadable("filter.kind", None)),
};

impl Kind {
    /// Returns the word of the kind in the configuration.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the word of the kind in tables, which have little room.
    pub fn short(self) -> &'static str {
        if self.0.short.is_empty() { self.0.name } else { self.0.short }
    }

    /// Returns the keys of the configuration that set the parameters of a filter of this kind.
    pub fn keys(self) -> &'static [&'static str] {
        self.0.keys
    }

    /// Returns the default that the kind's project has for a configuration key, unless the key is
    /// about capacity or error rate. urlseen's own default may differ.
    pub fn usual(self, name: &str) -> Option<&'static str> {
        self.0.usual.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }

    /// Returns true if the hash of the kind has a seed.
    pub fn has_seed(self) -> bool {
        self.0.keys.contains(&SEED)
    }

    /// Returns true if a filter of this kind can live in this place.
    pub fn is_in(self, place: FilterPlace) -> bool {
        self.0.places.contains(&place)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parameters of a filter that only its kind has.
pub(crate) trait KindParameters: fmt::Debug + Send + Sync {
    /// Returns the parameters under their names in the configuration.
    fn fields(&self) -> Vec<(&'static str, String)>;

    /// Returns the values that a storage folder records in addition.
    fn derived(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Describes the shape of a filter in memory, for people.
    fn shape(&self) -> String {
        String::new()
    }

    /// Computes memory and error rate of a filter with this number of keys.
    ///
    /// # Errors
    /// No filter can have these parameters.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError>;

    /// Returns the hasher that computes key hashes from fingerprints, for a filter in memory.
    fn hasher(&self, seed: Seed) -> KeyHasher {
        KeyHasher::new(seed)
    }

    /// Builds an empty filter in memory. `None` if the kind exists only in Redis.
    fn build(&self, _seed: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        None
    }

    /// Returns the filter in Redis, or the reason why no filter can have this size. `None` if the
    /// kind does not exist in Redis.
    fn in_redis(&self, _seed: Seed) -> Option<Result<Arc<dyn RedisKind>, SpecError>> {
        None
    }
}

/// Names of parameters that several kinds have.
pub(crate) const CAPACITY: &str = "filter.capacity";
pub(crate) const ERROR_RATE: &str = "filter.error_rate";
/// Number of fingerprints up to which the error rate holds.
pub(crate) const GROW_TO: &str = "filter.grow_to";
/// Mark of an imported filter in the header of a storage folder.
pub(crate) const IMPORTED: &str = "filter.imported";
pub(crate) const SEED: &str = "filter.seed";
pub(crate) const BIT: &str = "filter.bit";
pub(crate) const HASH_NUMBER: &str = "filter.hash_number";

pub(crate) fn size_fields(capacity: u64, error_rate: f64) -> [(&'static str, String); 2] {
    [(CAPACITY, capacity.to_string()), (ERROR_RATE, format!("{error_rate:e}"))]
}
