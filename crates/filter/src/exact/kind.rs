//! Exact kind: a set of key hashes in the memory of this process.
//!
//! A key hash has 128 bits. An unseen fingerprint counts as seen only if it has the same hash as a
//! fingerprint in the filter. The chance is 2^-128 for each fingerprint in the filter.

use std::sync::Arc;

use crate::choice::FilterPlace;
use crate::kinds::{IN_REDIS, Kind, KindParameters, Registered, SEED};
use crate::local::ExactShards;
use crate::spec::SpecError;
use crate::{BuildError, FilterKind, Outlook, SHARD_RULE, Seed};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "exact",
    keys: &[SEED],
    places: &[FilterPlace::Local],
    grows: true,
    is_exact: true,
    rules: ["murmur3-x64-128", SHARD_RULE],
    read: |_| Ok(Arc::new(ExactParameters)),
    ..IN_REDIS
});

#[derive(Debug)]
struct ExactParameters;

impl KindParameters for ExactParameters {
    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn shape(&self) -> String {
        "it grows by itself".to_owned()
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(Outlook { bytes: [ExactShards::bytes_at(keys); 2], ..Outlook::default() })
    }

    fn build(&self, _: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        let filter = ExactShards::new();
        Some(filter.map(|filter| Box::new(filter) as _).map_err(BuildError::from))
    }
}
