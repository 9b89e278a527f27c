//! MurmurHash64A, the variant of MurmurHash2 for 64-bit machines.
//!
//! This code follows the description and the public-domain code of its author, Austin Appleby
//! (SMHasher, `MurmurHash2.cpp`). Existing crates are old, or not made for speed. The tests compare
//! this code with one of these crates.

/// Multiplier of all steps.
const M: u64 = 0xc6a4_a793_5bd1_e995;
/// Shift of all steps, in bits.
const R: u32 = 47;

/// Returns MurmurHash64A of `key`, read as little-endian words on every machine.
#[inline]
pub(crate) fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let (words, tail) = key.as_chunks();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        let word = shift_mixed(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    shift_mixed(shift_mixed(hash).wrapping_mul(M))
}

fn shift_mixed(word: u64) -> u64 {
    word ^ word >> R
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn another_implementation_agrees(
            key in prop::collection::vec(any::<u8>(), 0..100),
            seed in any::<u64>(),
        ) {
            prop_assert_eq!(murmur64a(&key, seed), murmur2::murmur64a(&key, seed));
        }
    }
}
