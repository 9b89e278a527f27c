//! Reservation of a filter of RedisBloom.

use super::{Capacity, ErrorRate};
use crate::filter::redisbloom::{self, Filter, Growth, ReserveError};

/// Arguments of `BF.RESERVE`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// Number of fingerprints that the first layer is made for.
    pub capacity: Capacity,
    /// The error rate of all layers together.
    pub error_rate: ErrorRate,
    /// Growth past that capacity.
    pub growth: Growth,
}

impl Reservation {
    /// The least that there is, for what another filter takes the place of.
    pub(super) fn least() -> Self {
        Self {
            capacity: Capacity::new(1).expect("one key"),
            error_rate: ErrorRate::new(ErrorRate::MAX).expect("a rate"),
            growth: Growth::default(),
        }
    }

    /// As a number: how many times the capacity of the last layer the next one has, 0 for none.
    pub fn expansion(&self) -> u32 {
        match self.growth {
            Growth::Expansion(times) => times,
            Growth::None => 0,
        }
    }

    /// The growth of that number.
    pub fn growth_of(expansion: u32) -> Growth {
        if expansion == 0 { Growth::None } else { Growth::Expansion(expansion) }
    }

    /// An empty filter whose layers are never to take more than `limit` bytes.
    pub fn reserve(&self, limit: u64) -> Result<Filter, ReserveError> {
        let (rate, capacity) = (self.error_rate.get(), self.capacity.get());
        redisbloom::Filter::reserve(rate, capacity, self.growth, limit)
    }
}
