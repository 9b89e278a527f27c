//! Exact kind: a set of key hashes in the memory of this process.
//!
//! A key hash has 128 bits, so an unseen fingerprint passes for a seen one only if two hashes are
//! equal: a chance of 2^-128 for each fingerprint in the filter.

use super::{Kind, KindParameters, Parameters, Registered, SEED, Values};
use crate::filter::choice::FilterPlace;
use crate::filter::local::ExactShards;
use crate::filter::spec::SpecError;
use crate::filter::{BuildError, FilterKind, Outlook, SHARD_RULE, Seed};

pub(super) const KIND: Kind = Kind(&Registered {
    name: "exact",
    short: "exact",
    summary: "exact: 18 to 37 bytes a fingerprint, as many as there is memory for",
    keys: &[SEED],
    usual: &[],
    places: &[FilterPlace::Local],
    read,
});

/// Name of the rule by which a fingerprint becomes a key.
const KEY_RULE: &str = "murmur3-x64-128";

#[derive(Debug, Clone, Copy)]
struct ExactParameters {
    /// Seed of the hash; `None` if any seed will do.
    seed: Option<Seed>,
}

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    let seed = values.open(SEED)?.map(Seed::new);
    Ok(Parameters::new(ExactParameters { seed }))
}

impl KindParameters for ExactParameters {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        self.seed.iter().map(|seed| (SEED, seed.get().to_string())).collect()
    }

    fn grows(&self) -> bool {
        true
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(Outlook::of_set([ExactShards::bytes_at(keys); 2]))
    }

    fn shape(&self) -> String {
        "it grows by itself".to_owned()
    }

    fn seed(&self) -> Option<Seed> {
        self.seed
    }

    fn with_seed(&self, seed: Seed) -> Option<Parameters> {
        Some(Parameters::new(Self { seed: Some(seed) }))
    }

    fn rules(&self) -> [&'static str; 2] {
        [KEY_RULE, SHARD_RULE]
    }

    fn build(&self, owner: usize, owners: usize) -> Result<Box<dyn FilterKind>, BuildError> {
        Ok(Box::new(ExactShards::new(owner, owners)))
    }
}
