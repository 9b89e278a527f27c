//! Keys of an imitated crawl: of ten keys, the filter has seven already, and three are new.

use urlseen_core::fingerprint::Fingerprint;

/// Number of keys among ten that the filter has already.
const SEEN_OF_TEN: u64 = 7;

/// Position in an endless sequence of keys. A key is a number from which a fingerprint is computed.
/// Two crawls with the same start have the same sequence, so each measured case gets the same keys.
#[derive(Debug, Clone)]
pub struct Crawl {
    asked: u64,
    set: u64,
}

impl Crawl {
    /// Returns a crawl whose filter already has the keys below `set`.
    pub fn new(set: u64) -> Self {
        Self { asked: 0, set }
    }

    /// Returns the number of keys that the filter has.
    pub fn set(&self) -> u64 {
        self.set
    }

    /// Returns the next `count` keys: seen keys, which are drawn evenly from all set keys, and new
    /// keys.
    pub fn keys(&mut self, count: usize) -> Vec<u64> {
        let mut key = || {
            self.asked += 1;
            let drawn = mixed(self.asked);
            if drawn % 10 < SEEN_OF_TEN {
                drawn / 10 % self.set
            } else {
                self.set += 1;
                self.set - 1
            }
        };
        (0..count).map(|_| key()).collect()
    }
}

/// Mixes the bits of a number. The result is the output of SplitMix64 at this position.
pub fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the fingerprint of a key: 20 bytes that look random. The first 8 bytes are the output of
/// [`mixed`].
pub fn fingerprint(key: u64) -> Fingerprint {
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mixed(key).to_le_bytes());
    raw[8..16].copy_from_slice(&mixed(!key).to_le_bytes());
    Fingerprint::Raw20(raw)
}
