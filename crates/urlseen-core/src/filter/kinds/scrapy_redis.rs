//! The kind of scrapy-redis: a Redis set of fingerprints, which is exact.

use super::{Kind, KindParameters, Parameters, Registered};
use crate::filter::Placing;
use crate::filter::choice::FilterPlace;
use crate::filter::spec::SpecError;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis",
    short: "scrapy-redis",
    summary: "the set of scrapy-redis: exact",
    keys: &[],
    places: &[FilterPlace::Redis],
    read: |_| Ok(Parameters::new(Set)),
});

#[derive(Debug, Clone, Copy)]
struct Set;

impl KindParameters for Set {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn placing(&self) -> Result<Placing, SpecError> {
        Ok(Placing::Set)
    }
}
