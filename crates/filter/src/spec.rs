//! Filter spec: the parameters of a filter in any place.
//!
//! The names of a spec's parts are the names of the configuration keys. So the configuration, a
//! storage folder, Redis and the commands describe a filter in the same way.

use std::fmt;

use urlseen_fingerprint::FingerprintSpec;

use super::kinds::kind::{CAPACITY, ERROR_RATE};
use super::kinds::values::Values;
use super::{Kind, Parameters, id};
use crate::SpecError;

/// All parameters that determine a filter's bits and fingerprints.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterSpec {
    /// The filter's kind, with the parameters of that kind.
    pub parameters: Parameters,
    /// The spec of the fingerprints.
    pub fingerprint: FingerprintSpec,
}

/// Difference between an existing filter and the wanted filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecDifference {
    /// Name of the part: a key of the configuration if there is one.
    pub what: &'static str,
    /// Text of the part in the existing filter.
    pub found: String,
    /// Text of the part in the wanted filter.
    pub wanted: String,
}

impl fmt::Display for SpecDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, wanted } = self;
        write!(f, "{what} is {wanted}, and the filter was made for {found}")
    }
}

/// Name of the part that names the version of w3lib.
pub const CANONICAL: &str = "fingerprint.canonical";
/// Name of the part that names the list of tracking parameters.
pub const DROP_TRACKING: &str = "fingerprint.drop_tracking";
/// Name of the part with the rules by which different URLs are the same.
pub const SAME: &str = "fingerprint.same";
/// Name for the division of a native filter's bits. No configuration key sets this division.
pub const DIVISION: &str = "the division of the filter's bits";

impl FilterSpec {
    /// Reads a spec. `value` returns the text of a part under its name in the configuration.
    ///
    /// # Errors
    /// A part is missing or invalid, or no filter can have these parts.
    pub fn read(value: impl Fn(&'static str) -> Option<String>) -> Result<Self, SpecError> {
        let values = Values(&value);
        Ok(Self {
            parameters: values.part::<Kind>("filter.kind")?.read(&value)?,
            fingerprint: FingerprintSpec {
                algorithm: values.part("fingerprint.algorithm")?,
                canonical: values.open(CANONICAL)?.unwrap_or_default(),
                keep_fragments: values.part("fingerprint.keep_fragments")?,
                drop_tracking: values.open(DROP_TRACKING)?.unwrap_or_default(),
                same: values.open(SAME)?.unwrap_or_default(),
            },
        })
    }

    /// Returns the parts under their names in the configuration, for [`FilterSpec::read`].
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("filter.kind", self.kind().to_string())];
        fields.extend(self.parameters.fields());
        let FingerprintSpec { algorithm, canonical, keep_fragments, drop_tracking, same } =
            &self.fingerprint;
        fields.push(("fingerprint.algorithm", algorithm.name().to_owned()));
        fields.push((CANONICAL, canonical.to_string()));
        fields.push(("fingerprint.keep_fragments", keep_fragments.to_string()));
        fields.push((DROP_TRACKING, drop_tracking.to_string()));
        fields.push((SAME, same.to_string()));
        fields
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> Kind {
        self.parameters.kind()
    }

    /// Returns the parts that differ from those of `wanted`. A part that one spec leaves open is
    /// not compared: a seed not yet drawn, or the size of an imported filter. If the kinds differ,
    /// their parameters are not compared.
    pub fn differences(&self, wanted: &Self) -> Vec<SpecDifference> {
        let of_wanted = wanted.fields();
        let is_same_kind = self.kind() == wanted.kind();
        let comparable =
            |name: &str| is_same_kind || name == "filter.kind" || name.starts_with("fingerprint.");
        let mut differences: Vec<_> = self
            .fields()
            .into_iter()
            .filter(|(name, _)| comparable(name) && self.parameters.is_compared(name))
            .filter_map(|(what, found)| {
                let (_, wanted) = of_wanted.iter().find(|(name, _)| *name == what)?;
                let wanted = wanted.clone();
                (found != wanted).then_some(SpecDifference { what, found, wanted })
            })
            .collect();
        let is_same_size = !differences.iter().any(|it| matches!(it.what, CAPACITY | ERROR_RATE));
        let divisions = (self.parameters.division(), wanted.parameters.division());
        if let (Some(found), Some(wanted)) = divisions
            && found != wanted
            && is_same_size
        {
            differences.push(SpecDifference { what: DIVISION, found, wanted });
        }
        differences
    }
}

/// Seed of a filter's hash: 32 bits, as in MurmurHash3.
///
/// The seed is drawn at random once, and stored with the filter. An attacker who knows the seed can
/// craft links that make the filter report certain unseen links as seen. Filters with different
/// seeds report different unseen keys as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(pub(crate) u32);

impl Seed {
    /// Draws a random seed from the system.
    pub fn random() -> Self {
        // 32 of the 64 random bits are enough.
        #[allow(clippy::cast_possible_truncation)]
        Self(id::random() as u32)
    }

    /// Makes a seed of a number that was configured, or recorded with the filter.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(fields: &[(&'static str, &str)]) -> Result<FilterSpec, SpecError> {
        let fields: BTreeMap<_, _> = fields.iter().copied().collect();
        FilterSpec::read(|name| fields.get(name).map(ToString::to_string))
    }

    fn native(capacity: &str, seed: Option<&str>) -> FilterSpec {
        let mut fields = vec![
            ("filter.kind", "native"),
            ("filter.capacity", capacity),
            ("filter.error_rate", "0.000001"),
            ("fingerprint.algorithm", "scrapy"),
            ("fingerprint.keep_fragments", "false"),
        ];
        fields.extend(seed.map(|seed| ("filter.seed", seed)));
        read(&fields).unwrap()
    }

    #[test]
    fn each_kind_reads_back() {
        for kind in Kind::all() {
            let all = read(&[
                ("filter.kind", kind.name()),
                ("filter.capacity", "1000"),
                ("filter.error_rate", "0.01"),
                ("filter.expansion", "2"),
                ("filter.grow_to", "5000"),
                ("filter.expire_after", "30d"),
                ("filter.seed", "7"),
                ("filter.bit", "20"),
                ("filter.hash_number", "6"),
                ("filter.block_num", "3"),
                ("fingerprint.algorithm", "scrapy"),
                ("fingerprint.keep_fragments", "true"),
            ])
            .unwrap();
            assert_eq!(all.kind(), kind);
            let fields: BTreeMap<_, _> = all.fields().into_iter().collect();
            let own = fields
                .keys()
                .copied()
                .filter(|it| it.starts_with("filter.") && *it != "filter.kind");
            let mut keys = kind.keys().to_vec();
            keys.sort_unstable();
            assert_eq!(own.collect::<Vec<_>>(), keys, "{kind}");
            assert_eq!(FilterSpec::read(|name| fields.get(name).cloned()), Ok(all), "{kind}");
            let optional = ["filter.seed", "filter.expire_after", CANONICAL, DROP_TRACKING, SAME];
            for &name in fields.keys().filter(|name| !optional.contains(name)) {
                let without = FilterSpec::read(|it| fields.get(it).filter(|_| it != name).cloned());
                let error = without.unwrap_err().to_string();
                assert_eq!(error, format!("{name} is missing"), "{kind}");
            }
        }
    }

    #[test]
    fn a_difference_is_named_by_the_part_that_has_another_value() {
        let base = native("1000", Some("7"));
        let whats = |wanted: &FilterSpec| {
            base.differences(wanted).iter().map(|it| it.what).collect::<Vec<_>>()
        };
        assert_eq!(whats(&base), [] as [&str; 0]);
        assert_eq!(whats(&native("1000", None)), [] as [&str; 0], "any seed will do");
        let expiring = |time: Option<&str>| {
            let fields = [("filter.kind", "two-choice"), ("filter.capacity", "1000")];
            let more = [("filter.grow_to", "1000"), ("filter.error_rate", "0.01")];
            let spec =
                [("fingerprint.algorithm", "scrapy"), ("fingerprint.keep_fragments", "true")];
            let mut fields = [fields, more, spec].concat();
            fields.extend(time.map(|time| ("filter.expire_after", time)));
            read(&fields).unwrap()
        };
        for [one, other] in [[None, Some("30d")], [Some("30d"), None], [Some("30d"), Some("5d")]] {
            let whats = expiring(one).differences(&expiring(other));
            let whats: Vec<_> = whats.iter().map(|it| it.what).collect();
            assert_eq!(whats, ["filter.expire_after"], "{one:?} and {other:?}");
        }
        let set = "scrapy-redis".parse::<Kind>().unwrap().read(&|_| None).unwrap();
        let set = FilterSpec { parameters: set, ..base.clone() };
        assert_eq!(whats(&set), ["filter.kind"]);
    }
}
