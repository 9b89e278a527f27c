//! Forecast of a filter with some number of items, without the filter itself.

use super::error::ReserveError;
use super::header::{Options, Shape};
use super::rate::Rate;

/// Computed size and error rate of a filter with some number of items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Number of layers with this number of items.
    pub(crate) layers: usize,
    /// Number of bits that an item sets in the newest layer.
    pub hashes: u32,
    /// Number of bits of all layers together.
    pub bits: u64,
    /// Share of unseen items that the filter reports as seen.
    pub rate: Rate,
}

impl Forecast {
    /// Computes the forecast of a filter with this reservation and `items` items. Returns `None` if
    /// the filter cannot grow to this number of items.
    ///
    /// # Errors
    /// No filter can have this reservation.
    pub fn of(
        error_rate: f64,
        capacity: u64,
        expansion: u32,
        items: u64,
    ) -> Result<Option<Self>, ReserveError> {
        let options = Options::of(expansion);
        let mut shape = Shape::first(error_rate, capacity, options, u64::MAX)?;
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
            let next = u64::from(expansion).checked_mul(shape.capacity).filter(|&next| next > 0);
            let tighter = shape.error_rate * super::TIGHTENING;
            let next = next.and_then(|next| Shape::for_capacity(next, tighter, options));
            let Some(next) = next else { return Ok(None) };
            shape = next;
            bits = bits.saturating_add(shape.bits());
        }
    }
}

/// Returns the error rate of a layer with this number of items, if all bits are equally likely.
pub(super) fn rate_of(shape: &Shape, items: u64) -> Rate {
    let (hashes, bits) = (f64::from(shape.hashes), shape.modulus() as f64);
    let fill = -(items as f64 * hashes * (-1.0 / bits).ln_1p()).exp_m1();
    shape.rate(fill, items)
}
