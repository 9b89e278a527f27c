//! Exact kind: a set of key hashes in the memory of this process.
//!
//! A key hash has 128 bits. An unseen fingerprint counts as seen only if it has the same hash as a
//! fingerprint in the filter. The chance is 2^-128 for each fingerprint in the filter.

use super::{
    IN_REDIS, Kind, KindParameters, Parameters, Registered, SEED, Values, partitions_field,
    seed_field,
};
use crate::filter::choice::FilterPlace;
use crate::filter::local::ExactShards;
use crate::filter::spec::SpecError;
use crate::filter::{BuildError, FilterKind, Outlook, SHARD_RULE, Seed};
use crate::fingerprint::PartitionCount;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "exact",
    keys: &[SEED],
    places: &[FilterPlace::Local],
    grows: true,
    is_exact: true,
    rules: ["murmur3-x64-128", SHARD_RULE],
    read,
    ..IN_REDIS
});

#[derive(Debug, Clone, Copy)]
struct ExactParameters {
    /// Seed of the hash. `None` until a seed is chosen.
    seed: Option<Seed>,
    partitions: PartitionCount,
}

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    let (seed, partitions) = (values.seed()?, values.partitions()?);
    Ok(Parameters::new(ExactParameters { seed, partitions }))
}

impl KindParameters for ExactParameters {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        seed_field(self.seed).into_iter().chain(partitions_field(self.partitions)).collect()
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
        Some(Parameters::new(Self { seed: Some(seed), ..*self }))
    }

    fn partitions(&self) -> PartitionCount {
        self.partitions
    }

    fn build(&self) -> Result<Box<dyn FilterKind>, BuildError> {
        Ok(Box::new(ExactShards::new()?))
    }
}
