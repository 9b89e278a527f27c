//! What a filter in Redis was made for, as all that share it must agree on.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::config::{self, Config, Layout, SeedChoice};
use crate::filter::native::POSITION_RULE;
use crate::filter::{SHARD_RULE, Seed};
use crate::head::{self, Tip};

/// The version of the fields.
const VERSION: &str = "1";

/// The field with the filter's id.
const ID: &str = "id";

/// The field that says that the filter is being written.
const UNFINISHED: &str = "unfinished";

/// The field with the seed of a layout that has one.
pub(super) const SEED: &str = "filter.seed";

/// A filter's settings by their names in the configuration, and its id; a Redis hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    fields: BTreeMap<String, String>,
}

impl Definition {
    /// That of a new filter as configured, with a fresh id, and a seed if it needs one.
    pub(super) fn new(config: &Config) -> Self {
        let Config { filter, fingerprint, .. } = config;
        let mut fields = BTreeMap::new();
        let mut set = |name: &str, value: String| drop(fields.insert(name.to_owned(), value));
        set("version", VERSION.to_owned());
        set(ID, Tip::random().to_string());
        set("filter.layout", filter.layout.name().to_owned());
        set("fingerprint.algorithm", fingerprint.algorithm.name().to_owned());
        set("fingerprint.keep_fragments", fingerprint.keep_fragments.to_string());
        match filter.layout {
            Layout::Native => {
                // The upper half of a random number is one.
                #[allow(clippy::cast_possible_truncation)]
                let drawn = || (head::random() >> 32) as u32;
                let seed = match filter.seed {
                    SeedChoice::Fixed(seed) => seed,
                    SeedChoice::Random => drawn(),
                };
                set(SEED, seed.to_string());
                set("the rule of positions", POSITION_RULE.to_owned());
                set("the rule of shards", SHARD_RULE.to_owned());
                set("filter.capacity", filter.capacity.to_string());
                set("filter.error_rate", filter.error_rate.to_string());
            }
            Layout::Imooc | Layout::PyreBloom | Layout::Luw2007 => {
                set("filter.capacity", filter.capacity.to_string());
                set("filter.error_rate", filter.error_rate.to_string());
            }
            Layout::ScrapyRedisBloomFilter => {
                set("filter.bit", filter.bit.to_string());
                set("filter.hash_number", filter.hash_number.to_string());
            }
            Layout::BlockCluster => {
                set("filter.bit", filter.bit.to_string());
                set("filter.hash_number", filter.hash_number.to_string());
                set("filter.block_num", filter.block_num.to_string());
            }
            // The latter is refused before.
            Layout::ScrapyRedis | Layout::RedisBloom => {}
        }
        Self { fields }
    }

    /// The one that Redis holds; `None` where it holds none.
    pub(super) fn found(fields: BTreeMap<String, String>) -> Option<Self> {
        (!fields.is_empty()).then_some(Self { fields })
    }

    /// The field, and its value, that a filter has in place of a definition while it is written.
    pub(super) fn mark(id: Tip) -> [String; 2] {
        [UNFINISHED.to_owned(), id.to_string()]
    }

    /// The id of the filter, if it is not all there.
    pub(super) fn unfinished(&self) -> Option<Tip> {
        Tip::parse(self.fields.get(UNFINISHED)?)
    }

    /// That of a filter which is known already.
    pub(super) fn keep(&mut self, id: Tip, seed: Seed) {
        self.fields.insert(ID.to_owned(), id.to_string());
        if let Some(drawn) = self.fields.get_mut(SEED) {
            *drawn = seed.get().to_string();
        }
    }

    /// Sets what the filter was made for.
    pub(super) fn configure(&self, filter: &mut config::Filter) {
        fn set<T: FromStr>(field: Option<&String>, value: &mut T) {
            if let Some(read) = field.and_then(|field| field.parse().ok()) {
                *value = read;
            }
        }
        let field = |name| self.fields.get(name);
        set(field("filter.layout"), &mut filter.layout);
        set(field("filter.capacity"), &mut filter.capacity);
        set(field("filter.error_rate"), &mut filter.error_rate);
        set(field("filter.bit"), &mut filter.bit);
        set(field("filter.hash_number"), &mut filter.hash_number);
        set(field("filter.block_num"), &mut filter.block_num);
    }

    /// The fields and their values, one after the other.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()])
    }

    /// The filter's id.
    pub(super) fn id(&self) -> Option<Tip> {
        Tip::parse(self.fields.get(ID)?)
    }

    /// The seed that was drawn for it.
    pub(super) fn seed(&self) -> Option<u32> {
        self.fields.get(SEED)?.parse().ok()
    }

    /// What `wanted` differs in. An id is nobody's wish, and a seed only where the configuration
    /// names one.
    pub(super) fn differences(&self, wanted: &Self, seed: SeedChoice) -> Vec<Difference> {
        let names = self.fields.keys().chain(wanted.fields.keys());
        let names: std::collections::BTreeSet<_> = names.collect();
        let mut differences = Vec::new();
        for name in names {
            if name == ID || name == SEED && seed == SeedChoice::Random {
                continue;
            }
            let (found, wanted) = (self.fields.get(name), wanted.fields.get(name));
            if found != wanted {
                let shown = |value: Option<&String>| value.map_or("nothing", |it| it).to_owned();
                let (found, wanted) = (shown(found), shown(wanted));
                differences.push(Difference { what: name.clone(), found, wanted });
            }
        }
        differences
    }
}

/// Something that a filter was made for and that is wanted otherwise now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a key of the configuration where there is one.
    pub what: String,
    /// What the filter was made for.
    pub found: String,
    /// What is wanted.
    pub wanted: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, wanted } = self;
        write!(f, "{what} is {wanted}, and the filter was made for {found}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn config(set: &[&str]) -> Config {
        let env: [(&str, &str); 0] = [];
        let set = set.iter().map(|&it| it.to_owned()).collect();
        Config::load(Sources { file: None, env, set }).unwrap()
    }

    #[test]
    fn what_all_must_agree_on_differs_and_nothing_else() {
        let base = ["filter.store=redis"];
        let ours = Definition::new(&config(&base));
        let with = |key: &str| {
            let other = config(&[base[0], key]);
            ours.differences(&Definition::new(&other), other.filter.seed)
        };
        for same in ["source.batch=7", "filter.when_full=stop", "filter.seed=random"] {
            assert_eq!(with(same), [], "{same}");
        }
        for (key, found, wanted) in [
            ("filter.capacity=5", "10000000", "5"),
            ("filter.error_rate=0.01", "0.000001", "0.01"),
            ("fingerprint.keep_fragments=true", "false", "true"),
            ("fingerprint.algorithm=scrapy-redis", "scrapy", "scrapy-redis"),
        ] {
            let what = key.split('=').next().unwrap().to_owned();
            let (found, wanted) = (found.to_owned(), wanted.to_owned());
            assert_eq!(with(key), [Difference { what, found, wanted }]);
        }
        assert_eq!(with("filter.seed=7").len(), 1);
        let other = with("filter.layout=scrapy-redis");
        assert!(other.iter().any(|it| it.what == "filter.layout"), "{other:?}");
    }

    #[test]
    fn a_definition_reads_back() {
        let ours = Definition::new(&config(&["filter.store=redis", "filter.seed=7"]));
        let words: Vec<_> = ours.words().map(str::to_owned).collect();
        let fields = words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let found = Definition::found(fields).unwrap();
        assert_eq!((found.seed(), found.id().is_some()), (Some(7), true));
        assert_eq!(found, ours);
        assert_eq!(Definition::found(BTreeMap::new()), None);
    }
}
