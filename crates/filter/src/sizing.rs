//! Choice of a geometry for a capacity and an error rate.

use super::geometry::BLOCK_BITS;
use super::rate::BlockRate;
use super::{Blocks, Capacity, ErrorRate, Geometry, SHARDS};

/// Maximum ratio between a filter's number of bits and the optimal number. If the ratio would be
/// higher, a key gets more blocks instead.
pub(super) const WORTH: f64 = 1.16;

/// Number of blocks in each part of the filters that [`Sizing::new`] compares. The filters have
/// one, two, four and eight blocks for each key. At this size, neither the rounding to whole blocks
/// nor uneven shards matter.
const LARGE_PART: u32 = 1 << 20;

/// Maximum mean number of keys in a block that the search considers. At the largest error rate and
/// with eight blocks, a block holds 710 keys.
const MOST_KEYS_PER_BLOCK: u64 = 1024;

/// Capacity and error rate, with the smallest geometry that keeps the error rate up to the
/// capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    /// Number of keys up to which the filter keeps the error rate.
    pub capacity: Capacity,
    /// Error rate that the filter keeps up to the capacity.
    pub error_rate: ErrorRate,
    /// Chosen geometry, or the geometry that was recorded with the filter.
    pub geometry: Geometry,
}

impl Sizing {
    /// Chooses a geometry. A key gets the smallest number of blocks at which a large filter has at
    /// most 1.16 times the bits of [`ErrorRate::optimal_bits_per_key`]. The parts get as few blocks
    /// as the true error rate allows. Takes some milliseconds.
    ///
    /// A filter for less than about a million keys needs more bits for each key. Its parts have
    /// only few blocks, and the numbers of keys in its shards differ more.
    pub fn new(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let allowed = WORTH * error_rate.optimal_bits_per_key();
        let [fewer @ .., most] = Blocks::ALL;
        let packing = fewer
            .into_iter()
            .map(|blocks| Packing::best(blocks, error_rate))
            .find(|packing| packing.bits_per_key() <= allowed)
            .unwrap_or_else(|| Packing::best(most, error_rate));
        Self::packed(capacity, error_rate, packing)
    }

    /// Chooses a geometry with this number of blocks for each key.
    pub(crate) fn with_blocks(capacity: Capacity, error_rate: ErrorRate, blocks: Blocks) -> Self {
        let packing = Packing::best(blocks, error_rate);
        Self::packed(capacity, error_rate, packing)
    }

    /// Finds the smallest number of blocks for each part with which the filter keeps the error
    /// rate. The search starts near the number that the packing gives. The search relies on the
    /// fact that each further block lowers the error rate.
    fn packed(
        capacity: Capacity,
        error_rate: ErrorRate,
        Packing { blocks, bits_per_block, keys_per_block }: Packing,
    ) -> Self {
        let geometry = |blocks_per_part| {
            Geometry::new(blocks, bits_per_block, blocks_per_part).expect("at least one block")
        };
        let block = BlockRate::of(bits_per_block);
        let keeps = |blocks_per_part| {
            block.of_filter(geometry(blocks_per_part), capacity.get()) <= error_rate.get()
        };
        // The result is at most 1.2e9: see `Capacity::MAX`.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let near = (capacity.get() as f64 / SHARDS as f64 / keys_per_block) as u32;
        // Invariant: `too_few` blocks (unless 0) do not keep the error rate, `enough` blocks do.
        let (mut too_few, mut enough, mut step) = (near - near / 1024, near + 1, 1);
        while too_few > 0 && keeps(too_few) {
            enough = too_few;
            too_few = too_few.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while !keeps(enough) {
            too_few = enough;
            enough += step;
            step *= 2;
        }
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if keeps(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Self { capacity, error_rate, geometry: geometry(enough) }
    }
}

/// Densest packing of keys into the blocks of a large filter, at an error rate.
#[derive(Debug, Clone, Copy)]
struct Packing {
    blocks: Blocks,
    bits_per_block: u8,
    keys_per_block: f64,
}

impl Packing {
    /// Finds the densest packing for a number of blocks, by trying all numbers of bits.
    fn best(blocks: Blocks, error_rate: ErrorRate) -> Self {
        let mut best = Self { blocks, bits_per_block: 1, keys_per_block: 0.0 };
        for bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK {
            let block = BlockRate::of(bits_per_block);
            let keys_per_block = densest(block, blocks, error_rate);
            if keys_per_block > best.keys_per_block {
                best = Self { blocks, bits_per_block, keys_per_block };
            } else if keys_per_block < 0.9 * best.keys_per_block {
                break; // There is only one maximum, and the search has passed it.
            }
        }
        best
    }

    /// Returns the mean number of bits for each key.
    fn bits_per_key(&self) -> f64 {
        f64::from(BLOCK_BITS * self.blocks.get()) / self.keys_per_block
    }
}

/// Returns the maximum mean number of keys in a block at which the filter keeps the error rate.
fn densest(block: &BlockRate, blocks: Blocks, error_rate: ErrorRate) -> f64 {
    let allowed = error_rate.get().powf(1.0 / f64::from(blocks.get()));
    let (mut kept, mut exceeded) = (0, MOST_KEYS_PER_BLOCK * u64::from(LARGE_PART));
    while exceeded - kept > u64::from(LARGE_PART) >> 16 {
        let middle = u64::midpoint(kept, exceeded);
        if block.of_part(middle, LARGE_PART) <= allowed {
            kept = middle;
        } else {
            exceeded = middle;
        }
    }
    kept as f64 / f64::from(LARGE_PART)
}

impl Geometry {
    /// Returns the best geometry of at most `bytes` bytes for `keys` keys, and its error rate with
    /// this number of keys. Returns `None` if the memory is too small for one block in each part.
    ///
    /// As in [`Sizing::new`](super::Sizing::new), the number of blocks is the smallest one at which
    /// the filter has at most 1.16 times the bits of a plain Bloom filter. Error rates below about
    /// 1e-12 are only rough.
    pub fn fitting(bytes: u64, keys: u64) -> Option<(Self, f64)> {
        let mut best: Option<(Self, f64)> = None;
        for blocks in Blocks::ALL {
            let Some((geometry, rate)) = Self::best_k(bytes, keys, blocks) else { break };
            let optimum = -rate.log2() / std::f64::consts::LN_2 * keys as f64;
            if geometry.bits() as f64 <= WORTH * optimum {
                return Some((geometry, rate));
            }
            if best.is_none_or(|(_, least)| rate < least) {
                best = Some((geometry, rate));
            }
        }
        best
    }

    /// Finds the number of bits per block that gives the lowest error rate. The error rate has only
    /// one minimum. The minimum is at or a little below the k of a plain Bloom filter, because
    /// blocks with many keys fill up sooner.
    fn best_k(bytes: u64, keys: u64, blocks: Blocks) -> Option<(Self, f64)> {
        let part = u64::from(blocks.get() * BLOCK_BITS) * SHARDS as u64 / 8;
        let blocks_per_part = u32::try_from(bytes / part).unwrap_or(u32::MAX);
        let with = |bits_per_block| {
            let geometry = Self::new(blocks, bits_per_block, blocks_per_part)?;
            Some((geometry, geometry.error_rate_at(keys)))
        };
        let bits_per_key = bytes as f64 * 8.0 / keys as f64;
        let plain = std::f64::consts::LN_2 * bits_per_key / f64::from(blocks.get());
        // A whole number from 1 to 32.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let first = plain.ceil().clamp(1.0, f64::from(Self::MAX_BITS_PER_BLOCK)) as u8;
        let mut best = with(first)?;
        for bits_per_block in (1..first).rev() {
            let found = with(bits_per_block)?;
            if found.1 >= best.1 {
                break;
            }
            best = found;
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bits of the filter for each key of its capacity.
    fn bits_per_key_of(sizing: &Sizing) -> f64 {
        sizing.geometry.bits() as f64 / sizing.capacity.get() as f64
    }

    fn sizing(capacity: u64, rate: f64) -> Sizing {
        Sizing::new(Capacity::new(capacity).unwrap(), ErrorRate::new(rate).unwrap())
    }

    /// Compares the bits of each key with a table that was computed for bits drawn without
    /// replacement. The code draws bits with replacement, so it needs up to 0.8 % more bits. One
    /// block for each key is meant for error rates down to 1e-4. At far lower rates, it needs up to
    /// 2.3 % more bits, and the best k is higher by one.
    #[test]
    fn bits_per_key_match_the_table_of_the_design() {
        use Blocks::{Eight, Four, One, Two};
        for (rate, blocks, bits_per_key, k, within) in [
            (1e-4, One, 21.9, 12, 0.01),
            (1e-4, Two, 19.8, 12, 0.01),
            (1e-4, Four, 19.3, 12, 0.01),
            (1e-6, One, 38.5, 16, 0.01),
            (1e-6, Two, 31.0, 18, 0.01),
            (1e-6, Four, 29.2, 20, 0.01),
            (1e-8, One, 62.7, 20, 0.013),
            (1e-8, Two, 43.8, 24, 0.01),
            (1e-8, Four, 39.6, 24, 0.01),
            (1e-8, Eight, 38.7, 24, 0.01),
            (1e-12, One, 156.0, 27, 0.023),
            (1e-12, Two, 77.0, 32, 0.01),
            (1e-12, Four, 62.0, 36, 0.01),
            (1e-12, Eight, 58.4, 40, 0.01),
        ] {
            let capacity = Capacity::new(1_000_000_000).unwrap();
            let sizing = Sizing::with_blocks(capacity, ErrorRate::new(rate).unwrap(), blocks);
            let got = bits_per_key_of(&sizing);
            assert!((got / bits_per_key - 1.0).abs() < within, "{rate:e} {blocks:?}: {got}");
            assert_eq!(sizing.geometry.k(), k, "{rate:e} {blocks:?}");
        }
    }

    #[test]
    fn large_filters_take_the_fewest_blocks_within_1_16_of_the_optimum() {
        for (rate, blocks) in [
            (1e-1, Blocks::One),
            (1e-4, Blocks::One),
            (1e-5, Blocks::Two),
            (1e-8, Blocks::Two),
            (1e-9, Blocks::Four),
            (1e-12, Blocks::Four),
        ] {
            for capacity in [2_000_000, 1_000_000_000, Capacity::MAX] {
                let sizing = sizing(capacity, rate);
                assert_eq!(sizing.geometry.blocks, blocks, "{rate:e}");
                let optimum = sizing.error_rate.optimal_bits_per_key();
                assert!(bits_per_key_of(&sizing) < WORTH * optimum, "{rate:e} {capacity}");
            }
        }
    }

    #[test]
    fn the_error_rate_is_kept_with_the_smallest_number_of_blocks() {
        for rate in [0.1, 3e-3, 1e-4, 1e-6, 1e-8, 1e-12] {
            for capacity in [1, 2, 255, 1000, 54_321, 1_000_000, 123_456_789, Capacity::MAX] {
                let sizing = sizing(capacity, rate);
                let geometry = sizing.geometry;
                assert!(geometry.error_rate_at(capacity) <= rate, "{rate:e} {capacity}");
                let Some(blocks) = geometry.blocks_per_part.checked_sub(1).filter(|&n| n > 0)
                else {
                    continue;
                };
                let fewer = Geometry::new(geometry.blocks, geometry.bits_per_block, blocks);
                let fewer = fewer.unwrap();
                assert!(fewer.error_rate_at(capacity) > rate, "{rate:e} {capacity}");
            }
        }
    }

    #[test]
    fn a_filter_for_one_key_has_one_block_in_each_part() {
        assert_eq!(sizing(1, 1e-6).geometry.bytes(), 256 * 2 * 64);
    }

    #[test]
    fn the_error_rate_rises_past_the_capacity() {
        let sizing = sizing(10_000_000, 1e-6);
        let rates = [50, 80, 100, 150, 200, 300, 1000]
            .map(|percent| sizing.geometry.error_rate_at(100_000 * percent));
        assert!(rates.is_sorted() && rates[2] <= 1e-6 && rates[6] < 1.0, "{rates:?}");
    }

    use super::super::{Capacity, ErrorRate, Sizing};

    #[test]
    fn the_memory_of_a_sizing_gives_the_geometry_of_that_sizing() {
        for capacity in [2_000_000, 1_000_000_000] {
            for rate in [0.1, 1e-4, 1e-6, 1e-8, 1e-12] {
                let asked = ErrorRate::new(rate).unwrap();
                let sized = Sizing::new(Capacity::new(capacity).unwrap(), asked).geometry;
                let (geometry, found) = Geometry::fitting(sized.bytes(), capacity).unwrap();
                let shape = |of: Geometry| (of.blocks, of.k());
                assert_eq!(shape(geometry), shape(sized), "{rate:e} {capacity}");
                assert!(geometry.bytes() <= sized.bytes(), "{rate:e} {capacity}");
                // The rounding to whole blocks matters if the number of blocks is small.
                assert!((0.94 * rate..=rate).contains(&found), "{rate:e} {capacity}: {found:e}");
            }
        }
    }

    /// Compares the chosen geometry with other geometries of the same number of blocks. If a key
    /// has very few or very many bits of memory, every number of blocks needs more than 1.16 times
    /// the bits of a plain Bloom filter. Then the test compares with all numbers of blocks.
    #[test]
    fn no_other_geometry_has_a_lower_error_rate() {
        for (bytes, keys, of_any) in [
            (1 << 20, 10_000_000, true),
            (1 << 20, 3_800_000, false),
            (1 << 22, 20_000_000, false),
            (1 << 24, 10_000_000, false),
            (1 << 27, 10_000_000, false),
            (1 << 27, 40_000_000, false),
            (1 << 29, 10_000_000, true),
        ] {
            let (best, rate) = Geometry::fitting(bytes, keys).unwrap();
            let blocks = Blocks::ALL.into_iter().filter(|&blocks| of_any || blocks == best.blocks);
            for blocks in blocks {
                let part = best.shard_blocks() / u64::from(blocks.get());
                for bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK {
                    let other = Geometry::new(blocks, bits_per_block, u32::try_from(part).unwrap());
                    let other = other.unwrap().error_rate_at(keys);
                    assert!(other >= rate, "{bytes} {keys} {blocks:?} {bits_per_block}: {other:e}");
                }
            }
        }
    }

    #[test]
    fn too_little_memory_for_a_block_in_each_shard_gives_no_filter() {
        let least = SHARDS as u64 * 64;
        assert_eq!(Geometry::fitting(least - 1, 1), None);
        let (geometry, rate) = Geometry::fitting(least, 1).unwrap();
        assert_eq!((geometry.bytes(), geometry.blocks), (least, Blocks::One));
        assert!(rate < 1e-12);
    }
}
