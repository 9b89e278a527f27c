//! The keys that a crawl asks for: seven of ten were set before, three are new.

use urlseen_core::fingerprint::Fingerprint;

/// Of ten keys, how many were set before.
const SEEN_OF_TEN: u64 = 7;

/// A place in an endless sequence of keys, each the number of a fingerprint. Two crawls that begin
/// alike go on alike, so each case is asked for the same.
#[derive(Debug, Clone)]
pub struct Crawl {
    asked: u64,
    set: u64,
}

impl Crawl {
    /// A crawl that has set the keys below `set`.
    pub fn new(set: u64) -> Self {
        Self { asked: 0, set }
    }

    /// The next `count` keys: seen ones drawn evenly from all that are set, unseen ones new.
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

/// The number's well mixed bits: the output of SplitMix64 at this place.
pub fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The key's fingerprint: 20 bytes as good as random, of which [`mixed`] is the first 8.
pub fn fingerprint(key: u64) -> Fingerprint {
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mixed(key).to_le_bytes());
    raw[8..16].copy_from_slice(&mixed(!key).to_le_bytes());
    Fingerprint::Raw20(raw)
}
