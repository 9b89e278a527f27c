//! How a fingerprint becomes what a filter knows it by.

use super::layout::native::{KeyHash, Native};
use crate::filter::redisbloom::Hashes;
use crate::fingerprint::Fingerprint;

/// How fingerprints are hashed: once, for all that is done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hashing {
    /// As urlseen's own layout does it, shard by shard.
    Native(Native),
    /// As RedisBloom does it with the text that its clients pass. Such a filter is one whole: all
    /// keys fall into the first shard, so one thread has them all.
    RedisBloom,
}

/// The name of the rule by which keys of RedisBloom's layout become bit positions. Bits kept under
/// one rule mean nothing under another.
pub const REDISBLOOM_RULE: &str = "redisbloom/hex-digits/murmur64a-chained";

impl Hashing {
    /// Hashes a fingerprint.
    #[inline]
    pub fn key_hash(&self, fingerprint: &Fingerprint) -> KeyHash {
        match self {
            Self::Native(native) => native.key_hash(fingerprint),
            Self::RedisBloom => {
                KeyHash::of_whole(Hashes::of(fingerprint.text(&mut [0; 64])).words())
            }
        }
    }
}

impl From<Native> for Hashing {
    fn from(native: Native) -> Self {
        Self::Native(native)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redisbloom_hashes_what_its_clients_pass() {
        for (text, item) in [
            (
                "ABCDEF0123456789abcdef0123456789abcdef01",
                "abcdef0123456789abcdef0123456789abcdef01",
            ),
            ("any text", "any text"),
        ] {
            let key_hash = Hashing::RedisBloom.key_hash(&Fingerprint::from_text(text.as_bytes()));
            assert_eq!(key_hash.words_of_key(), Hashes::of(item.as_bytes()).words());
            assert_eq!(key_hash.shard().index(), 0);
        }
        let text = Fingerprint::Text([0xff, 0xfe].into());
        let key_hash = Hashing::RedisBloom.key_hash(&text);
        assert_eq!(key_hash.words_of_key(), Hashes::of(&[0xff, 0xfe]).words());
    }
}
