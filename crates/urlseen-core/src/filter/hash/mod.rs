//! Hash functions of the layouts. Only this file names a hash crate.
//!
//! MurmurHash3 is by Austin Appleby, from SMHasher. Both variants take a 32-bit seed. Their results
//! do not depend on the byte order of the machine. `murmur64a` is an older hash by the same author.

mod murmur64a;

pub(crate) use murmur64a::murmur64a;

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
}
