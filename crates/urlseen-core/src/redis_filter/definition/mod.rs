//! What a filter in Redis was made for, as all that share it must agree on: a Redis hash.

mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::filter::choice::FilterKind;
use crate::filter::id::{self, RandomId};
use crate::filter::native::POSITION_RULE;
use crate::filter::{SHARD_RULE, Seed};
use crate::redis::hash_tag::tagged;
pub use settings::{Settings, SpecError};

/// The script that defines a filter unless it is defined, and answers its definition. It takes the
/// [`keys`], and [`Definition::words`], or none where nothing is to be defined.
pub const DEFINE: &str = include_str!("define.lua");

/// Hash: what the filter under `key` was made for.
pub fn key(key: &str) -> String {
    format!("urlseen:{}:spec", tagged(key))
}

/// The keys of [`DEFINE`]: of the filter under `key`, now and in earlier versions.
pub fn keys(key: &str) -> [String; 2] {
    [self::key(key), format!("urlseen:{}:definition", tagged(key))]
}

/// What the keys begin with where a client of the filter under `key` finds its last answers.
pub fn answers(key: &str, client: u64) -> String {
    format!("urlseen:{}:answer:{client:016x}", tagged(key))
}

/// The version of the fields.
const VERSION: &str = "1";

/// The field with the filter's id.
const ID: &str = "id";

/// The field that says that the filter is being written.
const UNFINISHED: &str = "unfinished";

/// The field with the seed of a kind that has one.
const SEED: &str = "filter.seed";

/// A filter's settings by their names in the configuration, and its id; a Redis hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    fields: BTreeMap<String, String>,
}

impl Definition {
    /// That of a new filter for these settings, with a fresh id, and a seed if it needs one.
    pub fn new(settings: &Settings) -> Self {
        let mut fields = BTreeMap::new();
        let mut set = |name: &str, value: String| drop(fields.insert(name.to_owned(), value));
        set("version", VERSION.to_owned());
        set(ID, RandomId::random().to_string());
        set("filter.kind", settings.kind.name().to_owned());
        set("fingerprint.algorithm", settings.algorithm.name().to_owned());
        set("fingerprint.keep_fragments", settings.keep_fragments.to_string());
        match settings.kind {
            FilterKind::Native => {
                // The upper half of a random number is one.
                #[allow(clippy::cast_possible_truncation)]
                let drawn = || (id::random() >> 32) as u32;
                let seed = settings.seed.map_or_else(drawn, Seed::get);
                set(SEED, seed.to_string());
                set("the rule of positions", POSITION_RULE.to_owned());
                set("the rule of shards", SHARD_RULE.to_owned());
                set("filter.capacity", settings.capacity.to_string());
                set("filter.error_rate", settings.error_rate.to_string());
            }
            FilterKind::Imooc | FilterKind::PyreBloom | FilterKind::Luw2007 => {
                set("filter.capacity", settings.capacity.to_string());
                set("filter.error_rate", settings.error_rate.to_string());
            }
            FilterKind::ScrapyRedisBloomFilter => {
                set("filter.bit", settings.bit.to_string());
                set("filter.hash_number", settings.hash_number.to_string());
            }
            FilterKind::BlockCluster => {
                set("filter.bit", settings.bit.to_string());
                set("filter.hash_number", settings.hash_number.to_string());
                set("filter.block_num", settings.block_num.to_string());
            }
            // The latter is refused before.
            FilterKind::ScrapyRedis | FilterKind::RedisBloom => {}
        }
        Self { fields }
    }

    /// The one that Redis holds; `None` where it holds none.
    pub fn found(fields: BTreeMap<String, String>) -> Option<Self> {
        (!fields.is_empty()).then_some(Self { fields })
    }

    /// The field, and its value, that a filter has in place of a definition while it is written.
    pub fn mark(id: RandomId) -> [String; 2] {
        [UNFINISHED.to_owned(), id.to_string()]
    }

    /// The id of the filter, if it is not all there.
    pub fn unfinished(&self) -> Option<RandomId> {
        RandomId::parse(self.fields.get(UNFINISHED)?)
    }

    /// That of a filter which is known already.
    pub fn keep(&mut self, id: RandomId, seed: Seed) {
        self.fields.insert(ID.to_owned(), id.to_string());
        if let Some(drawn) = self.fields.get_mut(SEED) {
            *drawn = seed.get().to_string();
        }
    }

    /// Sets what the filter was made for.
    pub fn configure(&self, settings: &mut Settings) {
        fn set<T: FromStr>(field: Option<&String>, value: &mut T) {
            if let Some(read) = field.and_then(|field| field.parse().ok()) {
                *value = read;
            }
        }
        let field = |name| self.fields.get(name);
        set(field("filter.kind"), &mut settings.kind);
        set(field("filter.capacity"), &mut settings.capacity);
        set(field("filter.error_rate"), &mut settings.error_rate);
        set(field("filter.bit"), &mut settings.bit);
        set(field("filter.hash_number"), &mut settings.hash_number);
        set(field("filter.block_num"), &mut settings.block_num);
    }

    /// The fields and their values, one after the other.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()])
    }

    /// The filter's id.
    pub fn id(&self) -> Option<RandomId> {
        RandomId::parse(self.fields.get(ID)?)
    }

    /// The seed that was drawn for it.
    pub fn seed(&self) -> Option<u32> {
        self.fields.get(SEED)?.parse().ok()
    }

    /// What `wanted` differs in. An id is nobody's wish, and a seed only where `settings` name
    /// one.
    pub fn differences(&self, wanted: &Self, settings: &Settings) -> Vec<SpecDifference> {
        let names = self.fields.keys().chain(wanted.fields.keys());
        let names: std::collections::BTreeSet<_> = names.collect();
        let mut differences = Vec::new();
        for name in names {
            if name == ID || name == SEED && settings.seed.is_none() {
                continue;
            }
            let (found, wanted) = (self.fields.get(name), wanted.fields.get(name));
            if found != wanted {
                let shown = |value: Option<&String>| value.map_or("nothing", |it| it).to_owned();
                let (found, wanted) = (shown(found), shown(wanted));
                differences.push(SpecDifference { what: name.clone(), found, wanted });
            }
        }
        differences
    }
}

/// Something that a filter was made for and that is wanted otherwise now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecDifference {
    /// What differs: a key of the configuration where there is one.
    pub what: String,
    /// What the filter was made for.
    pub(crate) found: String,
    /// What is wanted.
    pub(crate) wanted: String,
}

impl fmt::Display for SpecDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, wanted } = self;
        write!(f, "{what} is {wanted}, and the filter was made for {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Algorithm;

    #[test]
    fn what_all_must_agree_on_differs_and_nothing_else() {
        let base = Settings::native("f", 10_000_000, 1e-6);
        let ours = Definition::new(&base);
        let differ = |other: &Settings| ours.differences(&Definition::new(other), other);
        assert_eq!(differ(&base), []);
        for (what, found, wanted, other) in [
            ("filter.capacity", "10000000", "5", Settings { capacity: 5, ..base.clone() }),
            (
                "filter.error_rate",
                "0.000001",
                "0.01",
                Settings { error_rate: 0.01, ..base.clone() },
            ),
            (
                "fingerprint.keep_fragments",
                "false",
                "true",
                Settings { keep_fragments: true, ..base.clone() },
            ),
            (
                "fingerprint.algorithm",
                "scrapy",
                "scrapy-redis",
                Settings { algorithm: Algorithm::ScrapyRedis, ..base.clone() },
            ),
        ] {
            let (what, found, wanted) = (what.to_owned(), found.to_owned(), wanted.to_owned());
            assert_eq!(differ(&other), [SpecDifference { what, found, wanted }]);
        }
        assert_eq!(differ(&Settings { seed: Some(Seed::new(7)), ..base.clone() }).len(), 1);
        let other = differ(&Settings { kind: FilterKind::ScrapyRedis, ..base.clone() });
        assert!(other.iter().any(|it| it.what == "filter.kind"), "{other:?}");
    }

    #[test]
    fn a_definition_reads_back() {
        let settings = Settings::native("f", 10, 0.1);
        let ours = Definition::new(&Settings { seed: Some(Seed::new(7)), ..settings });
        let words: Vec<_> = ours.words().map(str::to_owned).collect();
        let fields = words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let found = Definition::found(fields).unwrap();
        assert_eq!((found.seed(), found.id().is_some()), (Some(7), true));
        assert_eq!(found, ours);
        assert_eq!(Definition::found(BTreeMap::new()), None);
    }
}
