//! Spec that a filter is opened with.

use std::collections::BTreeMap;

use crate::{Error, ErrorKind};
use urlseen_core::filter::{FilterSpec as CoreSpec, Kind, SpecError};
use urlseen_core::fingerprint::Algorithm;

/// Everything that a filter is made for: its kind, its size, and the fingerprints that it holds.
///
/// The methods are named after the keys of the daemon's configuration. A [`Kind`] needs those that
/// its [`keys`](Kind::keys) list, and takes no others. A spec is checked when a filter is opened
/// with it. If it is not valid, that fails with [`ErrorKind::Spec`].
///
/// A filter in a folder or in Redis records its spec. It is refused with
/// [`ErrorKind::Mismatch`] if it is opened with another spec.
///
/// ```
/// use urlseen::{ErrorKind, FilterSpec, Kind, LocalFilter};
///
/// let spec = FilterSpec::native(10_000_000, 1e-6);
/// let growing = FilterSpec::new(Kind::REDISBLOOM).capacity(1000).error_rate(1e-6).expansion(2);
/// assert!(LocalFilter::new(&spec).is_ok() && LocalFilter::new(&growing).is_ok());
///
/// let in_redis = FilterSpec::new(Kind::SCRAPY_REDIS_BLOOMFILTER).bit(30).hash_number(6);
/// assert_eq!(LocalFilter::new(&in_redis).unwrap_err().kind(), ErrorKind::Spec);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FilterSpec {
    kind: Kind,
    values: BTreeMap<&'static str, String>,
    algorithm: Algorithm,
    keep_fragments: bool,
}

impl FilterSpec {
    /// Creates the spec of a filter of urlseen's own kind for `capacity` keys, 1 to 1e12.
    ///
    /// The `error_rate`, 1e-12 to 0.1, is the share of unseen keys that the filter takes for seen
    /// once it holds `capacity` keys. Beyond them, the filter works on, and its error rate grows.
    pub fn native(capacity: u64, error_rate: f64) -> Self {
        Self::new(Kind::NATIVE).capacity(capacity).error_rate(error_rate)
    }

    /// Creates the spec of a filter of some kind, without a size, for the fingerprints of Scrapy.
    pub fn new(kind: Kind) -> Self {
        let algorithm = Algorithm::default();
        Self { kind, values: BTreeMap::new(), algorithm, keep_fragments: false }
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sets the number of keys that the filter is made for. For a kind that grows, it is the
    /// initial size.
    #[must_use]
    pub fn capacity(self, keys: u64) -> Self {
        self.set("filter.capacity", &keys)
    }

    /// Sets the share of unseen keys that the filter takes for seen once it is full.
    #[must_use]
    pub fn error_rate(self, share: f64) -> Self {
        self.set("filter.error_rate", &share)
    }

    /// Sets the factor by which each layer is larger than the one before, for [`Kind::REDISBLOOM`];
    /// 0 for a filter that does not grow.
    #[must_use]
    pub fn expansion(self, factor: u32) -> Self {
        self.set("filter.expansion", &factor)
    }

    /// Sets the `BLOOMFILTER_BIT` of [`Kind::SCRAPY_REDIS_BLOOMFILTER`] and
    /// [`Kind::BLOCK_CLUSTER`]: the binary logarithm of the number of bits.
    #[must_use]
    pub fn bit(self, logarithm: u32) -> Self {
        self.set("filter.bit", &logarithm)
    }

    /// Sets the `BLOOMFILTER_HASH_NUMBER` of the same kinds: the number of bits of a key.
    #[must_use]
    pub fn hash_number(self, bits: u32) -> Self {
        self.set("filter.hash_number", &bits)
    }

    /// Sets the `BLOOMFILTER_BLOCK_NUM` of [`Kind::BLOCK_CLUSTER`]: the number of strings.
    #[must_use]
    pub fn block_num(self, strings: u32) -> Self {
        self.set("filter.block_num", &strings)
    }

    /// Sets the algorithm of the fingerprints. The default is that of Scrapy.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets whether URLs that differ only in what follows `#` are different. The default is that
    /// they are the same.
    #[must_use]
    pub fn keep_fragments(self, keep_fragments: bool) -> Self {
        Self { keep_fragments, ..self }
    }

    fn set(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.values.insert(name, value.to_string());
        self
    }

    /// Reads the spec as the daemon reads its configuration.
    pub(crate) fn read(&self) -> Result<CoreSpec, Error> {
        let kind = self.kind;
        let invalid = |error: SpecError| Error::new(ErrorKind::Spec, error);
        if let Some(name) = self.values.keys().find(|name| !kind.keys().contains(name)) {
            let allowed = kind.keys().join(", ");
            let text = format!("the filter kind {kind} has no {name}; it has: {allowed}");
            return Err(Error::new(ErrorKind::Spec, text));
        }
        let parameters = kind.read(&|name| self.values.get(name).cloned()).map_err(invalid)?;
        let Self { algorithm, keep_fragments, .. } = *self;
        Ok(CoreSpec { parameters, algorithm, keep_fragments })
    }
}
