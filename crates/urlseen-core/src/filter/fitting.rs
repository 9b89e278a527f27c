//! Choice of the geometry with the lowest error rate for a given memory and number of keys.

use super::geometry::BLOCK_BITS;
use super::sizing::WORTH;
use super::{Blocks, Geometry, SHARDS};

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
    use super::super::{Capacity, ErrorRate, Sizing};
    use super::*;

    #[test]
    fn the_memory_of_a_sizing_gives_the_geometry_of_that_sizing() {
        for capacity in [2_000_000, 1_000_000_000] {
            for rate in [0.1, 1e-4, 1e-6, 1e-8, 1e-12] {
                let asked = ErrorRate::new(rate).unwrap();
                let sized = Sizing::new(Capacity::new(capacity).unwrap(), asked).geometry;
                let (geometry, found) = Geometry::fitting(sized.bytes(), capacity).unwrap();
                let shape = |of: Geometry| (of.blocks(), of.k());
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
            let blocks =
                Blocks::ALL.into_iter().filter(|&blocks| of_any || blocks == best.blocks());
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
        assert_eq!((geometry.bytes(), geometry.blocks()), (least, Blocks::One));
        assert!(rate < 1e-12);
    }
}
