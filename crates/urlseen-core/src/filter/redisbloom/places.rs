//! Positions of an item's bits, without a filter.

use super::filter::Growth;
use super::header::{Options, Shape};
use super::{Hashes, TIGHTENING};

/// Positions of an item's bits in the first layer of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerBits {
    /// Number of the layer's bits.
    pub bits: u64,
    /// Positions of the item, in the order of the hashes. Some may coincide.
    pub positions: Vec<u64>,
}

impl LayerBits {
    /// Computes the positions for a filter with this reservation; `None` if the reservation is
    /// impossible.
    pub fn of(item: &[u8], error_rate: f64, capacity: u64, growth: Growth) -> Option<Self> {
        let (options, rate) = match growth {
            Growth::None => (Options::NONSCALING, error_rate),
            Growth::Expansion(_) => (Options::SCALING, error_rate * TIGHTENING),
        };
        let shape = Shape::for_capacity(capacity, rate, options)?;
        let positions = shape.positions(Hashes::of(item)).collect();
        Some(Self { bits: shape.bits(), positions })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::*;

    #[test]
    fn they_are_the_bits_that_an_item_sets() {
        for growth in [Growth::None, Growth::Expansion(2)] {
            let mut filter = Filter::reserve(0.01, 1000, growth, u64::MAX).unwrap();
            filter.add(b"item").unwrap();
            let LayerBits { bits, mut positions } =
                LayerBits::of(b"item", 0.01, 1000, growth).unwrap();
            let layer = &filter.layers()[0];
            assert_eq!(bits, layer.bits());
            positions.sort_unstable();
            positions.dedup();
            let is_set = |bit: &u64| {
                let byte = usize::try_from(bit / 8).unwrap();
                layer.bits[byte] >> (bit % 8) & 1 == 1
            };
            assert!(positions.iter().all(is_set));
            assert_eq!(positions.len() as u64, layer.ones());
        }
    }
}
