//! RedisBloom's kind: a filter that grows by adding layers, in the memory of this process.

use std::sync::Arc;

use crate::SpecError;
use crate::choice::FilterPlace;
use crate::kinds::kind::{
    CAPACITY, ERROR_RATE, IMPORTED, IN_REDIS, Kind, KindParameters, Registered, size_fields,
};
use crate::kinds::parameters::Parameters;
use crate::kinds::values::Values;
use crate::peers::redisbloom::layer::key_hash;
use crate::peers::redisbloom::rate::forecast;
use crate::peers::redisbloom::{Filter, POSITION_RULE, Reservation};
use crate::{BuildError, FilterKind, KeyHasher, Outlook, Seed};

/// Entry of RedisBloom's kind.
pub(crate) const KIND: Kind = Kind(&Registered {
    name: "redisbloom",
    keys: &[CAPACITY, ERROR_RATE, EXPANSION],
    usual: &[(EXPANSION, "2")],
    places: &[FilterPlace::Local],
    grows: true,
    // RedisBloom answers that an item is new exactly if it counts the item.
    inserts_at_once: true,
    // All keys are in the only shard, so no rule chooses a shard for a key.
    rules: [POSITION_RULE, ""],
    shards: 1,
    read,
    ..IN_REDIS
});

pub(crate) const EXPANSION: &str = "filter.expansion";

/// Parameters of a filter that urlseen reserves. `None` for an imported filter, because its
/// parameters come from its data.
#[derive(Debug, Clone, Copy)]
struct RedisBloomParameters(Option<Reservation>);

fn read(values: &Values<'_>) -> Result<Arc<dyn KindParameters>, SpecError> {
    if values.open(IMPORTED)? == Some(true) {
        return Ok(Arc::new(RedisBloomParameters(None)));
    }
    Ok(Arc::new(RedisBloomParameters(Some(reservation_of(values)?))))
}

/// Reads the reservation of a filter.
pub(crate) fn reservation_of(values: &Values<'_>) -> Result<Reservation, SpecError> {
    let (capacity, error_rate) = values.size()?;
    Ok(Reservation { capacity, error_rate, expansion: values.part(EXPANSION)? })
}

/// Returns a reservation under the names that it has in the configuration.
pub(crate) fn fields_of(reservation: Reservation) -> Vec<(&'static str, String)> {
    let Reservation { capacity, error_rate, expansion } = reservation;
    let size = size_fields(capacity.get(), error_rate.get());
    size.into_iter().chain([(EXPANSION, expansion.to_string())]).collect()
}

impl Parameters {
    /// Makes parameters of a filter of RedisBloom that urlseen reserves.
    pub fn reserved(reservation: Reservation) -> Self {
        Self::new(KIND, None, RedisBloomParameters(Some(reservation)))
    }

    /// Makes parameters of an imported filter of RedisBloom.
    pub fn imported() -> Self {
        Self::new(KIND, None, RedisBloomParameters(None))
    }

    /// Returns the reservation of a filter of RedisBloom. `None` for an imported filter, and for
    /// all other kinds.
    pub fn reservation(&self) -> Option<Reservation> {
        let (capacity, error_rate) = (self.field(CAPACITY)?, self.field(ERROR_RATE)?);
        Some(Reservation { capacity, error_rate, expansion: self.field(EXPANSION)? })
    }
}

/// Describes the growth of a filter with this expansion.
pub(crate) fn shape_of(expansion: u32) -> String {
    match expansion {
        0 => "it does not grow".to_owned(),
        times => format!("it grows: each new layer has {times} times the capacity of the last"),
    }
}

impl KindParameters for RedisBloomParameters {
    fn fields(&self) -> Vec<(&'static str, String)> {
        self.0.map(fields_of).unwrap_or_default()
    }

    fn derived(&self) -> Vec<(&'static str, String)> {
        if self.0.is_none() { vec![(IMPORTED, true.to_string())] } else { Vec::new() }
    }

    fn shape(&self) -> String {
        match self.0.map(|reservation| reservation.expansion) {
            None => "imported".to_owned(),
            Some(expansion) => shape_of(expansion),
        }
    }

    /// Computes memory and error rate with this number of keys. A growing filter keeps its error
    /// rate beyond its capacity. If the filter cannot grow to this number of keys, returns the
    /// result for the number that it can hold.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let reservation = self.0.ok_or_else(|| SpecError::unreadable(CAPACITY, None))?;
        forecast(reservation, keys)
    }

    fn hasher(&self, _: Seed) -> KeyHasher {
        KeyHasher::by(|_, key| key_hash(key.text(&mut [0; 64])))
    }

    fn build(&self, _: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        Some(Filter::build(self.0).map(|filter| Box::new(filter) as _).map_err(BuildError::from))
    }
}
