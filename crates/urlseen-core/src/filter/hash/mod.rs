//! Hash functions of the layouts. Only this file names a hash crate.
//!
//! MurmurHash3 is by Austin Appleby, from SMHasher. Both variants take a 32-bit seed. Their results
//! do not depend on the byte order of the machine. `murmur64a` is an older hash by the same author.

/// Returns the two 64-bit words of MurmurHash3 x64-128 of `key`, in the order of Python's
/// `mmh3.hash64(key, seed)`.
pub(crate) fn murmur3_x64_128(key: &[u8], seed: u32) -> (u64, u64) {
    mur3::murmurhash3_x64_128(key, seed)
}

/// Returns MurmurHash3 x86-32 of `key`. Python's `mmh3.hash(key, seed)` returns the same bits as a
/// signed number.
pub fn murmur3_x86_32(key: &[u8], seed: u32) -> u32 {
    mur3::murmurhash3_x86_32(key, seed)
}

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
    use super::*;

    #[test]
    fn both_variants_agree_with_mmh3() {
        let table = include_str!("../../../../../tests/vectors/murmur3.tsv");
        let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 112);
        for row in rows {
            let cells: Vec<&str> = row.split('\t').collect();
            let [key, seed, small, first, second] = cells[..] else { panic!("five cells: {row}") };
            let key: Vec<u8> = (0..key.len() / 2)
                .map(|byte| u8::from_str_radix(&key[2 * byte..2 * byte + 2], 16).unwrap())
                .collect();
            let seed = seed.parse().unwrap();
            let word = |cell| u64::from_str_radix(cell, 16).unwrap();
            assert_eq!(u64::from(murmur3_x86_32(&key, seed)), word(small), "x86-32 of {row}");
            assert_eq!(murmur3_x64_128(&key, seed), (word(first), word(second)), "{row}");
        }
    }

    use proptest::prelude::*;

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
