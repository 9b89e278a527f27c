//! A filter of RedisBloom, as the thread has it that owns it.

use super::gauges::Whole;
use urlseen_core::filter::redisbloom::{AddError, Filter, Hashes, ReserveError};
use urlseen_core::filter::{Reservation, Verdict};

/// A filter of RedisBloom that is there once it is needed.
#[derive(Debug)]
pub(super) struct Growing {
    reservation: Reservation,
    limit: u64,
    /// `None` where it is empty: the memory of an empty filter is not taken beside that of one
    /// that is about to take its place.
    filter: Option<Filter>,
}

impl Growing {
    /// An empty filter, whose memory is taken now.
    pub(super) fn start(reservation: Reservation, limit: u64) -> Result<Self, ReserveError> {
        let filter = Some(reservation.reserve(limit)?);
        Ok(Self { reservation, limit, filter })
    }

    /// Puts another filter in the place of this one, or an empty one.
    pub(super) fn replace(&mut self, filter: Option<Filter>) {
        self.filter = filter;
        if let Some(filter) = &mut self.filter {
            filter.set_limit(self.limit);
        }
    }

    pub(super) fn test(&self, hashes: Hashes) -> Verdict {
        Verdict::of(self.filter.as_ref().is_some_and(|filter| filter.has(hashes)))
    }

    pub(super) fn set(&mut self, hashes: Hashes) -> Result<(), AddError> {
        self.filter()?.put(hashes).map(drop)
    }

    pub(super) fn make_room(&mut self, keys: u64) -> Result<(), AddError> {
        if keys == 0 { Ok(()) } else { self.filter()?.make_room(keys) }
    }

    /// The filter as it is now.
    pub(super) fn frozen(&mut self) -> Result<Filter, AddError> {
        self.filter().map(|filter| filter.frozen())
    }

    /// What it says of itself.
    pub(super) fn whole(&self) -> Whole {
        let Some(filter) = &self.filter else {
            let capacity = self.reservation.capacity.get();
            return Whole { keys: 0, capacity, layers: 0, bytes: 0, error_rate: 0.0 };
        };
        Whole {
            keys: filter.size(),
            capacity: filter.capacity(),
            layers: filter.layers().len(),
            bytes: filter.bytes(),
            error_rate: filter.error_rate_now(),
        }
    }

    fn filter(&mut self) -> Result<&mut Filter, AddError> {
        let Self { reservation, limit, filter } = self;
        match filter {
            Some(filter) => Ok(filter),
            None => Ok(filter.insert(reservation.reserve(*limit).map_err(AddError::NoLayer)?)),
        }
    }
}
