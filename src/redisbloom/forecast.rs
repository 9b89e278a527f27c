//! What a filter comes to once it holds so many items, without making one.

use super::error::ReserveError;
use super::filter::Growth;
use super::header::{Options, Shape};

/// A filter that holds so many items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// How many layers it has grown to.
    pub layers: u32,
    /// Bits that an item sets in the newest.
    pub hashes: u32,
    /// Bits of all layers.
    pub bits: u64,
    /// The share of other items that it takes for its own.
    pub error_rate: f64,
}

impl Forecast {
    /// Of a filter reserved for that, which holds `items`; `None` where it may not or cannot grow
    /// so far.
    ///
    /// # Errors
    /// No filter can be reserved for that.
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
        let mut forecast =
            Self { layers: 1, hashes: shape.hashes, bits: shape.bits(), error_rate: 0.0 };
        let (mut left, mut right) = (items, 0.0_f64);
        loop {
            let held = left.min(shape.capacity);
            left -= held;
            right += (-wrong(&shape, held)).ln_1p();
            if left == 0 {
                forecast.error_rate = -right.exp_m1();
                return Ok(Some(forecast));
            }
            let next = u64::from(times).checked_mul(shape.capacity).filter(|&next| next > 0);
            let rate = shape.error_rate * super::TIGHTENING;
            let next = next.and_then(|next| Shape::for_capacity(next, rate, options));
            let Some(next) = next else { return Ok(None) };
            shape = next;
            forecast.layers += 1;
            forecast.hashes = shape.hashes;
            forecast.bits = forecast.bits.saturating_add(shape.bits());
        }
    }
}

/// The error rate of a layer that holds so many items: each of their bits is set anywhere.
fn wrong(shape: &Shape, items: u64) -> f64 {
    let (hashes, bits) = (f64::from(shape.hashes), shape.bits() as f64);
    let zeros = (items as f64 * hashes * (-1.0 / bits).ln_1p()).exp();
    (1.0 - zeros).powf(hashes)
}
