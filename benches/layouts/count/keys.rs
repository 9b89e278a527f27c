//! Keys: fingerprints that look random.

/// Number of hex digits of a fingerprint.
const DIGITS: usize = 40;

/// Fingerprint in the form that other projects use: 40 hex digits.
pub type Digits = [u8; DIGITS];

/// Mixes the bits of a number. The result is the output of SplitMix64 at this position.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the fingerprint of the key with this number.
pub fn fingerprint(key: u64) -> Digits {
    let words = [0, 1, 2].map(|word| mixed(3 * key + word));
    std::array::from_fn(|place| {
        b"0123456789abcdef"[(words[place / 16] >> (4 * (place % 16)) & 0xf) as usize]
    })
}
