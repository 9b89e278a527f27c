//! Keys that a crawl asks for: seven of ten were set before, three are new.

use urlseen_core::fingerprint::Fingerprint;

/// Keys of ten that were set before.
const SEEN_OF_TEN: u64 = 7;

/// Position in an endless sequence of keys, each the number of a fingerprint. Two crawls with the
/// same start continue equally, so each case gets the same keys.
#[derive(Debug, Clone)]
pub struct Crawl {
    asked: u64,
    set: u64,
}

impl Crawl {
    /// Returns a crawl that has set the keys below `set`.
    pub fn new(set: u64) -> Self {
        Self { asked: 0, set }
    }

    /// Returns the next `count` keys: seen ones, drawn evenly from all set keys, and new ones.
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

/// Mixes the bits of a number: the output of SplitMix64 at this position.
pub fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the key's fingerprint: 20 bytes as good as random. [`mixed`] is the first 8.
pub fn fingerprint(key: u64) -> Fingerprint {
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mixed(key).to_le_bytes());
    raw[8..16].copy_from_slice(&mixed(!key).to_le_bytes());
    Fingerprint::Raw20(raw)
}
