//! Definition of a filter in Redis: a Redis hash with the parameters on which all users of the
//! filter must agree.

use std::collections::BTreeMap;

use redis::{Cmd, cmd};
use urlseen_filter::id::RandomId;
use urlseen_filter::{FilterSpec, Seed, SpecDifference, SpecError};

use crate::hash_tag::tagged;

/// Script that defines a filter unless a definition exists, and returns the definition.
pub const DEFINE: &str = include_str!("define.lua");

/// Builds the command that defines the filter under `key` unless a definition exists, and returns
/// the definition. `words` are [`Definition::words`]. Without the words, the command only reads.
pub fn define(key: &str, words: &[String]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(DEFINE).arg(1).arg(self::key(key)).arg(words);
    command
}

/// Returns the key of the hash that defines the filter under `key`.
pub fn key(key: &str) -> String {
    format!("urlseen:{}:spec", tagged(key))
}

/// Returns the prefix of the keys that hold the last answers to a client. `key` is the filter's
/// name, and `client` is a random number of the client.
pub fn answers(key: &str, client: u64) -> String {
    format!("urlseen:{}:answer:{client:016x}", tagged(key))
}

/// Field with the version of the definition's fields, and its value in this version of urlseen.
const VERSION: (&str, &str) = ("version", "2");

/// Name of the field with the filter's id.
const ID: &str = "id";

/// Fields with the two rules of a filter: the rule from keys to bit positions, and the rule from
/// keys to shards.
const RULES: [&str; 2] = ["the rule of positions", "the rule of shards"];

/// Spec and id of a filter in Redis, in the form that the Redis hash stores.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Random id of the filter.
    pub id: RandomId,
    /// The spec of the filter, with its seed.
    pub spec: FilterSpec,
    version: String,
    rules: [String; 2],
}

impl Definition {
    /// Creates the definition of a new filter, with a random id, and with a random seed if the kind
    /// needs one.
    pub fn new(spec: &FilterSpec) -> Self {
        let parameters = spec.parameters.seeded(Seed::random);
        Self::of(RandomId::random(), FilterSpec { parameters, ..spec.clone() })
    }

    /// Creates the definition of a filter that already has an id and a seed.
    pub(crate) fn of(id: RandomId, spec: FilterSpec) -> Self {
        let rules = spec.parameters.rules();
        Self { id, spec, version: VERSION.1.to_owned(), rules }
    }

    /// Reads the fields of a definition in Redis. Returns `None` if there are no fields.
    ///
    /// # Errors
    /// The fields are not a definition that urlseen has written.
    pub fn found(fields: &BTreeMap<String, String>) -> Result<Option<Self>, SpecError> {
        let field = |name| fields.get(name).cloned();
        if fields.is_empty() {
            return Ok(None);
        }
        let spec = FilterSpec::read(field)?;
        if spec.parameters.seeded(|| Seed::new(0)) != spec.parameters {
            return Err(SpecError::unreadable("filter.seed", None));
        }
        let [version, positions, shards] =
            [VERSION.0, RULES[0], RULES[1]].map(|name| field(name).unwrap_or_default());
        let rules = [positions, shards];
        let found = field(ID);
        let id = found.as_deref().and_then(RandomId::parse);
        let id = id.ok_or_else(|| SpecError::unreadable(ID, found.as_deref()))?;
        Ok(Some(Self { id, spec, version, rules }))
    }

    /// Returns the fields of the hash and their values, alternately.
    pub fn words(&self) -> Vec<String> {
        let own = [(VERSION.0, self.version.clone()), (ID, self.id.to_string())];
        let rules = RULES.into_iter().zip(self.rules.clone()).filter(|(_, rule)| !rule.is_empty());
        let fields = own.into_iter().chain(self.spec.fields()).chain(rules);
        fields.flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// Returns the differences between this definition and the wanted spec.
    pub fn differences(&self, wanted: &FilterSpec) -> Vec<SpecDifference> {
        let mut differences = self.spec.differences(wanted);
        let mut compare = |what, found: &str, wanted: &str| {
            if found != wanted {
                let (found, wanted) = (found.to_owned(), wanted.to_owned());
                differences.push(SpecDifference { what, found, wanted });
            }
        };
        compare(VERSION.0, &self.version, VERSION.1);
        if self.spec.kind() == wanted.kind() {
            for ((what, found), wanted) in
                RULES.into_iter().zip(&self.rules).zip(wanted.parameters.rules())
            {
                compare(what, found, &wanted);
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_filter::{Capacity, ErrorRate, Kind, Parameters, Sizing};
    use urlseen_fingerprint::Algorithm;

    fn spec() -> FilterSpec {
        let sizing = Sizing::new(Capacity::new(10).unwrap(), ErrorRate::new(0.1).unwrap());
        FilterSpec {
            parameters: Parameters::native(&sizing, None),
            fingerprint: Algorithm::Scrapy.into(),
        }
    }

    fn fields(definition: &Definition) -> BTreeMap<String, String> {
        let words = definition.words();
        words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    #[test]
    fn a_written_definition_is_read_unchanged() {
        let set = "scrapy-redis".parse::<Kind>().unwrap().read(&|_| None).unwrap();
        let set = FilterSpec { parameters: set, ..spec() };
        for ours in [Definition::new(&spec()), Definition::new(&set)] {
            let found = Definition::found(&fields(&ours));
            assert_eq!(found, Ok(Some(ours)));
        }
        assert_eq!(Definition::found(&BTreeMap::new()), Ok(None));
    }

    #[test]
    fn an_error_names_the_missing_field() {
        let ours = fields(&Definition::new(&spec()));
        for name in ["id", "filter.seed", "filter.kind", "filter.capacity", "fingerprint.algorithm"]
        {
            let mut without = ours.clone();
            without.remove(name);
            let error = Definition::found(&without).unwrap_err();
            assert_eq!(error, SpecError::unreadable(name, None));
        }
    }

    #[test]
    fn a_definition_with_another_version_or_rules_differs() {
        let mut ours = fields(&Definition::new(&spec()));
        for name in ["version", "the rule of positions", "the rule of shards"] {
            ours.insert(name.to_owned(), "other".to_owned());
        }
        let Ok(Some(found)) = Definition::found(&ours) else { panic!() };
        let whats: Vec<_> = found.differences(&spec()).iter().map(|it| it.what).collect();
        assert_eq!(whats, ["version", "the rule of positions", "the rule of shards"]);
    }
}
