//! Spec of a filter: a program passes the spec when it opens the filter.

use std::collections::BTreeMap;

use crate::{Error, ErrorKind};
use urlseen_filter::{FilterSpec as CoreSpec, Kind, SpecError};
use urlseen_fingerprint::FingerprintSpec;

/// Spec of a filter: its kind, its size, and the spec of its fingerprints.
///
/// The methods set values that have the same names in the daemon's configuration, such as
/// `filter.capacity`. A spec needs exactly the values that [`keys`](Kind::keys) lists for its
/// [`Kind`]. A spec is checked when a program opens a filter. An invalid spec fails with
/// [`ErrorKind::Spec`].
///
/// A filter in a folder or in Redis records its spec. A call that opens the filter with another
/// spec fails with [`ErrorKind::Mismatch`]. Only the capacity of [`Kind::TWO_CHOICE`] may differ.
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
    fingerprint: FingerprintSpec,
}

/// Declares the methods that set a value, which has the name of its method.
macro_rules! setters {
    ($( $(#[$doc:meta])* $method:ident($value:ident: $type:ty); )+) => {
        impl FilterSpec { $(
            $(#[$doc])*
            #[must_use]
            pub fn $method(mut self, $value: $type) -> Self {
                self.values.insert(concat!("filter.", stringify!($method)), $value.to_string());
                self
            }
        )+ }
    };
}

setters! {
    /// Sets the number of keys that the filter is made for. If filters of the kind can grow, this
    /// number is only the initial capacity.
    capacity(keys: u64);

    /// Sets the share of unseen keys that a full filter reports as seen.
    error_rate(share: f64);

    /// Sets the number of keys up to which a filter of the kind [`Kind::TWO_CHOICE`] keeps its
    /// error rate while it grows.
    grow_to(keys: u64);

    /// Sets the seed of the hash. Without this call, each new filter gets a random seed, so that an
    /// attacker cannot craft URLs which the filter reports as seen. Give two filters the same seed
    /// to compare their keys: see [`LocalFilter::key_hashes`](crate::LocalFilter::key_hashes).
    seed(seed: u32);

    /// Sets the growth factor of a filter of the kind [`Kind::REDISBLOOM`]. When such a filter is
    /// full, it adds a layer with `factor` times the capacity of the layer before. With the factor
    /// 0, the filter does not grow.
    expansion(factor: u32);

    /// Sets the binary logarithm of the number of bits in a Redis string: 30 stands for 2^30 bits,
    /// or 128 MiB. The projects of [`Kind::SCRAPY_REDIS_BLOOMFILTER`] and [`Kind::BLOCK_CLUSTER`]
    /// call this setting `BLOOMFILTER_BIT`.
    bit(logarithm: u32);

    /// Sets the number of bits that a key sets. The projects of [`Kind::SCRAPY_REDIS_BLOOMFILTER`]
    /// and [`Kind::BLOCK_CLUSTER`] call this setting `BLOOMFILTER_HASH_NUMBER`.
    hash_number(bits: u32);

    /// Sets the number of Redis strings that hold the bits of the filter. The project of
    /// [`Kind::BLOCK_CLUSTER`] calls this setting `BLOOMFILTER_BLOCK_NUM`.
    block_num(strings: u32);
}

impl FilterSpec {
    /// Creates the spec of a filter of urlseen's own kind, for the fingerprints of Scrapy.
    ///
    /// `capacity` is the number of keys, 1 to 1e12. `error_rate`, 1e-12 to 0.1, is the share of
    /// unseen keys that the filter reports as seen once the filter holds `capacity` keys. With more
    /// keys the filter continues to work, but its error rate grows.
    pub fn native(capacity: u64, error_rate: f64) -> Self {
        Self::new(Kind::NATIVE).capacity(capacity).error_rate(error_rate)
    }

    /// Creates a spec without a size, for a filter of this kind with the fingerprints of Scrapy.
    /// The other methods set the size.
    pub fn new(kind: Kind) -> Self {
        Self { kind, values: BTreeMap::new(), fingerprint: FingerprintSpec::default() }
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sets the spec of the fingerprints, or only their algorithm. The default is
    /// [`Algorithm::Scrapy`](crate::Algorithm::Scrapy). The filter records the spec, so that later
    /// programs compute the same fingerprints.
    #[must_use]
    pub fn fingerprint(self, spec: impl Into<FingerprintSpec>) -> Self {
        Self { fingerprint: spec.into(), ..self }
    }

    /// Checks the spec by the rules of the daemon's configuration, and converts it for the core
    /// crate.
    pub(crate) fn read(&self) -> Result<CoreSpec, Error> {
        let kind = self.kind;
        let invalid = |error: SpecError| Error::new(ErrorKind::Spec, error);
        if let Some(name) = self.values.keys().find(|name| !kind.keys().contains(name)) {
            let allowed = kind.keys().join(", ");
            let text = format!("the filter kind {kind} takes no {name}; it takes: {allowed}");
            return Err(Error::new(ErrorKind::Spec, text));
        }
        let parameters = kind.read(&|name| self.values.get(name).cloned()).map_err(invalid)?;
        Ok(CoreSpec { parameters, fingerprint: self.fingerprint.clone() })
    }
}
