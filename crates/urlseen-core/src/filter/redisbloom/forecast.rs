//! Forecast of a filter with a number of items, without making the filter.

use super::error::ReserveError;
use super::filter::Growth;
use super::header::{Options, Shape};
use super::rate::Rate;

/// Size and error rate of a filter with a number of items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Number of layers that it has grown to.
    pub(crate) layers: usize,
    /// Bits that an item sets in the newest layer.
    pub hashes: u32,
    /// Bits of all layers together.
    pub bits: u64,
    /// Share of unseen items that the filter reports as seen.
    pub rate: Rate,
}

impl Forecast {
    /// Forecasts a filter with this reservation and `items` items. Returns `None` if it cannot grow
    /// so far.
    ///
    /// # Errors
    /// If no filter can have this reservation.
    pub fn of(
        error_rate: f64,
        capacity: u64,
        growth: Growth,
        items: u64,
    ) -> Result<Option<Self>, ReserveError> {
        let (options, times, first) = match growth {
            Growth::Expansion(times) => (Options::SCALING, times, error_rate * super::TIGHTENING),
            Growth::None => (Options::NONSCALING, 0, error_rate),
        };
        if !(first > 0.0 && error_rate < 1.0) {
            return Err(ReserveError::ErrorRate(error_rate));
        }
        if capacity == 0 {
            return Err(ReserveError::Capacity);
        }
        let too_large = ReserveError::TooLarge { capacity, limit: u64::MAX };
        let mut shape = Shape::for_capacity(capacity, first, options).ok_or(too_large)?;
        let (mut layers, mut bits) = (Vec::new(), shape.bits());
        let mut left = items;
        loop {
            let held = left.min(shape.capacity);
            left -= held;
            layers.push(rate_of(&shape, held));
            if left == 0 {
                let (count, hashes) = (layers.len(), shape.hashes);
                let rate = Rate::of_layers(layers.into_iter());
                return Ok(Some(Self { layers: count, hashes, bits, rate }));
            }
            let next = u64::from(times).checked_mul(shape.capacity).filter(|&next| next > 0);
            let tighter = shape.error_rate * super::TIGHTENING;
            let next = next.and_then(|next| Shape::for_capacity(next, tighter, options));
            let Some(next) = next else { return Ok(None) };
            shape = next;
            bits = bits.saturating_add(shape.bits());
        }
    }
}

/// Returns the rate of a layer with this number of items, if each of their bits is equally likely.
pub(super) fn rate_of(shape: &Shape, items: u64) -> Rate {
    let (hashes, bits) = (f64::from(shape.hashes), shape.modulus() as f64);
    let fill = -(items as f64 * hashes * (-1.0 / bits).ln_1p()).exp_m1();
    shape.rate(fill, items)
}
