//! Forecast of a filter with some number of items, without the filter itself.

use super::error::ReserveError;
use super::header::{Options, Shape};
use super::rate::Rate;
use crate::filter::Outlook;
use crate::filter::bit_strings::fill;

/// Computes memory and error rate of a filter with this reservation and `items` items. Returns
/// `None` if the filter cannot grow to this number of items.
///
/// # Errors
/// No filter can have this reservation.
pub(in crate::filter) fn forecast(
    error_rate: f64,
    capacity: u64,
    expansion: u32,
    items: u64,
) -> Result<Option<Outlook>, ReserveError> {
    let options = Options::of(expansion);
    let mut shape = Shape::first(error_rate, capacity, options, u64::MAX)?;
    let (mut layers, mut bits) = (Vec::new(), shape.bits());
    let mut left = items;
    loop {
        let held = left.min(shape.capacity);
        left -= held;
        layers.push(rate_of(&shape, held));
        if left == 0 {
            let rate = Rate::of_layers(layers.iter().copied());
            return Ok(Some(Outlook {
                strings: layers.len(),
                bits,
                hashes: shape.hashes,
                bytes: [bits / 8; 2],
                error_rate: rate.total,
                warning: rate.warning(),
            }));
        }
        let next = u64::from(expansion).checked_mul(shape.capacity).filter(|&next| next > 0);
        let tighter = shape.error_rate * super::TIGHTENING;
        let next = next.and_then(|next| Shape::for_capacity(next, tighter, options));
        let Some(next) = next else { return Ok(None) };
        shape = next;
        bits = bits.saturating_add(shape.bits());
    }
}

/// Returns the error rate of a layer with this number of items, if all bits are equally likely.
pub(super) fn rate_of(shape: &Shape, items: u64) -> Rate {
    let draws = items as f64 * f64::from(shape.hashes);
    shape.rate(fill(draws, shape.modulus() as f64), items)
}
