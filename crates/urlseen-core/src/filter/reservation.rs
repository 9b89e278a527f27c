//! Arguments with which a filter of RedisBloom is reserved.

use super::{Capacity, ErrorRate};
use crate::filter::redisbloom::{DEFAULT_EXPANSION, Filter, ReserveError};

/// Arguments of `BF.RESERVE`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// Number of fingerprints that the first layer is made for.
    pub capacity: Capacity,
    /// Error rate of all layers together.
    pub error_rate: ErrorRate,
    /// Factor by which the capacity grows from one layer to the next. 0 for a filter that does not
    /// grow.
    pub expansion: u32,
}

impl Reservation {
    /// Returns the smallest possible reservation, for a filter that another filter will replace.
    pub(super) fn least() -> Self {
        Self {
            capacity: Capacity::new(1).expect("one key"),
            error_rate: ErrorRate::new(ErrorRate::MAX).expect("a rate"),
            expansion: DEFAULT_EXPANSION,
        }
    }

    /// Reserves an empty filter. Its layers never take more than `limit` bytes.
    ///
    /// # Errors
    /// The first layer does not fit, or no filter can have this reservation.
    pub fn reserve(&self, limit: u64) -> Result<Filter, ReserveError> {
        Filter::reserve(self.error_rate.get(), self.capacity.get(), self.expansion, limit)
    }
}
