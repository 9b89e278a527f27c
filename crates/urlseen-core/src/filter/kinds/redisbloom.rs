//! RedisBloom's kind: layers that grow, in the memory of this process.

use super::{
    CAPACITY, ERROR_RATE, Kind, KindParameters, Parameters, Registered, Values, capacity_field,
    error_rate_field,
};
use crate::filter::choice::FilterPlace;
use crate::filter::redisbloom::{Forecast, POSITION_RULE, Rate, ReserveError};
use crate::filter::spec::SpecError;
use crate::filter::{
    BuildError, FilterKind, KeyHasher, Outlook, RedisBloomFilter, Reservation, memory,
};

/// Entry of RedisBloom's kind.
pub const REDISBLOOM: Kind = Kind(&Registered {
    name: "redisbloom",
    short: "redisbloom",
    summary: "RedisBloom's: layers that grow",
    keys: &[CAPACITY, ERROR_RATE, EXPANSION],
    usual: &[],
    places: &[FilterPlace::Local],
    read,
});

const EXPANSION: &str = "filter.expansion";

/// A filter reserved by urlseen.
#[derive(Debug, Clone, Copy)]
struct Reserved(Reservation);

/// A filter that was imported. Its first layer has its reservation.
#[derive(Debug, Clone, Copy)]
struct Imported;

/// Name that a storage folder has for a filter that was imported.
const IMPORTED: &str = "filter.imported";

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    if values.open(IMPORTED)? == Some(true) {
        return Ok(Parameters::imported());
    }
    let (capacity, error_rate) = values.size()?;
    let growth = Reservation::growth_of(values.part(EXPANSION)?);
    Ok(Parameters::reserved(Reservation { capacity, error_rate, growth }))
}

impl Parameters {
    /// Makes parameters of a filter of RedisBloom that urlseen reserves.
    pub fn reserved(reservation: Reservation) -> Self {
        Self::new(Reserved(reservation))
    }

    /// Makes parameters of an imported filter of RedisBloom.
    pub fn imported() -> Self {
        Self::new(Imported)
    }
}

/// Builds the filter, at the owner that has it.
fn build(reservation: Reservation, owner: usize) -> Result<Box<dyn FilterKind>, BuildError> {
    let limit = memory::available().map_or(u64::MAX, |available| available.bytes);
    // The limit is half, because the newest layer is copied while a snapshot is taken.
    Ok(Box::new(RedisBloomFilter::reserve(reservation, limit / 2, owner)?))
}

impl KindParameters for Reserved {
    fn kind(&self) -> Kind {
        REDISBLOOM
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            capacity_field(self.0.capacity.get()),
            error_rate_field(self.0.error_rate.get()),
            (EXPANSION, self.0.expansion().to_string()),
        ]
    }

    fn grows(&self) -> bool {
        true
    }

    fn shape(&self) -> String {
        match self.0.expansion() {
            0 => "it does not grow".to_owned(),
            times => format!("it grows by layers of {times} times the last"),
        }
    }

    /// Forecasts the filter. It grows, so its error rate stays past its capacity. A filter that
    /// cannot grow takes no more keys.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let Reservation { capacity, error_rate, growth } = self.0;
        let at = |keys| Forecast::of(error_rate.get(), capacity.get(), growth, keys);
        let held = match at(keys)? {
            Some(held) => held,
            None => at(capacity.get())?.ok_or(ReserveError::Capacity)?,
        };
        Ok(Outlook {
            strings: held.layers,
            bits: held.bits,
            hashes: held.hashes,
            bytes: [held.bits / 8; 2],
            error_rate: held.rate.total,
            warning: Rate::warning(held.rate),
        })
    }

    fn rules(&self) -> [&'static str; 2] {
        // The filter has one shard, so there is no rule of shards.
        [POSITION_RULE, ""]
    }

    fn shards(&self) -> usize {
        1
    }

    fn hasher(&self) -> KeyHasher {
        KeyHasher::of_redisbloom()
    }

    fn build(&self, owner: usize, _: usize) -> Result<Box<dyn FilterKind>, BuildError> {
        build(self.0, owner)
    }
}

impl KindParameters for Imported {
    fn kind(&self) -> Kind {
        REDISBLOOM
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        vec![(IMPORTED, true.to_string())]
    }

    fn is_imported(&self) -> bool {
        true
    }

    fn grows(&self) -> bool {
        true
    }

    fn shape(&self) -> String {
        "imported".to_owned()
    }

    fn rules(&self) -> [&'static str; 2] {
        [POSITION_RULE, ""]
    }

    fn shards(&self) -> usize {
        1
    }

    fn hasher(&self) -> KeyHasher {
        KeyHasher::of_redisbloom()
    }

    fn build(&self, owner: usize, _: usize) -> Result<Box<dyn FilterKind>, BuildError> {
        // The filter that is loaded replaces this one, which is the smallest possible.
        build(Reservation::least(), owner)
    }
}
