//! Bit positions that an item would have in a filter, computed without the filter.

use super::header::{Options, Shape};
use super::key_hash;

/// Bit positions of an item in the first layer of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerBits {
    /// Number of bits of the layer.
    pub bits: u64,
    /// Bit positions of the item, in the order of the hashes. Some may coincide.
    pub positions: Vec<u64>,
}

impl LayerBits {
    /// Computes the bit positions in a filter with this reservation. Returns `None` if no filter
    /// can have this reservation.
    pub fn of(item: &[u8], error_rate: f64, capacity: u64, expansion: u32) -> Option<Self> {
        let options = Options::of(expansion);
        let shape = Shape::first(error_rate, capacity, options, u64::MAX).ok()?;
        let positions = shape.positions(key_hash(item)).collect();
        Some(Self { bits: shape.bits(), positions })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::*;

    #[test]
    fn they_are_the_bits_that_an_item_sets() {
        for growth in [0, 2] {
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
