//! Partitions of a crawl, by the first bits of the fingerprints.

use std::fmt;
use std::str::FromStr;

use sha1::{Digest, Sha1};

use super::Fingerprint;

/// Number of equal partitions of a crawl: a power of two, 1 to 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PartitionCount {
    /// Number of first bits of a fingerprint that name its partition.
    bits: u8,
}

impl PartitionCount {
    /// A crawl with one partition.
    pub const ONE: Self = Self { bits: 0 };

    /// Returns the count. `None` if it is not a power of two from 1 to 256.
    pub fn new(count: u64) -> Option<Self> {
        // At most 8 bits.
        #[allow(clippy::cast_possible_truncation)]
        let bits = count.trailing_zeros() as u8;
        (count.is_power_of_two() && bits <= 8).then_some(Self { bits })
    }

    /// Returns the number of partitions.
    pub fn get(self) -> u16 {
        1 << self.bits
    }

    /// Returns the part of a maximum that each partition has.
    pub fn share(self, max: u64) -> u64 {
        max.div_ceil(self.get().into())
    }

    /// Iterates over all partitions, in order.
    pub fn partitions(self) -> impl ExactSizeIterator<Item = Partition> {
        (0..self.get()).map(move |number| Partition { number, count: self })
    }

    /// Returns the partition of a fingerprint. Its number is the first bits of the leading byte. A
    /// plain-text key has no evenly spread byte, so the leading byte of its SHA-1 is used.
    /// Producers can compute it, because it has no seed.
    #[inline]
    pub fn of(self, fingerprint: &Fingerprint) -> Partition {
        let leading = match fingerprint {
            Fingerprint::Raw16(raw) => raw[0],
            Fingerprint::Raw20(raw) => raw[0],
            Fingerprint::Raw32(raw) => raw[0],
            Fingerprint::Text(_) if self == Self::ONE => 0,
            Fingerprint::Text(text) => Sha1::digest(text)[0],
        };
        Partition { number: u16::from(leading) >> (8 - self.bits), count: self }
    }
}

impl fmt::Display for PartitionCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Text that is not a number of partitions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a power of two from 1 to 256")]
pub struct PartitionCountError;

impl FromStr for PartitionCount {
    type Err = PartitionCountError;

    fn from_str(text: &str) -> Result<Self, PartitionCountError> {
        text.parse().ok().and_then(Self::new).ok_or(PartitionCountError)
    }
}

/// Partition of a crawl. It has all fingerprints that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Partition {
    number: u16,
    count: PartitionCount,
}

impl Partition {
    /// The only partition of a crawl that has one.
    pub const WHOLE: Self = Self { number: 0, count: PartitionCount::ONE };

    /// Returns the number of the partition, from 0.
    pub fn number(self) -> u16 {
        self.number
    }

    /// Returns the number of all partitions of the crawl.
    pub fn count(self) -> PartitionCount {
        self.count
    }

    /// Returns true if the crawl has other partitions.
    pub fn has_others(self) -> bool {
        self.count != PartitionCount::ONE
    }

    /// Returns true if this partition has the fingerprint.
    #[inline]
    pub fn has(self, fingerprint: &Fingerprint) -> bool {
        self.count.of(fingerprint) == self
    }
}

/// Writes the number of the partition and the number of all partitions: `3 of 16`.
impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_a_share_of_the_limit() {
        let share = |number| PartitionCount::new(number).unwrap().share(10);
        assert_eq!([1, 4, 8, 16].map(share), [10, 3, 2, 1]);
    }

    #[test]
    fn a_count_is_a_power_of_two_up_to_256() {
        let counts: Vec<u64> = (0..=1024).filter(|&it| PartitionCount::new(it).is_some()).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        for count in counts {
            let read: PartitionCount = count.to_string().parse().unwrap();
            assert_eq!(u64::from(read.get()), count);
            assert_eq!(read.partitions().len(), usize::from(read.get()));
        }
        for text in ["", "3", "-1", "512", "one"] {
            assert_eq!(text.parse::<PartitionCount>(), Err(PartitionCountError), "{text}");
        }
    }

    #[test]
    fn the_first_bits_name_the_partition() {
        let digest = Fingerprint::from("a5c0000000000000000000000000000000000000");
        for (count, number) in [(1, 0), (2, 1), (16, 0xa), (64, 0b10_1001), (256, 0xa5)] {
            let count = PartitionCount::new(count).unwrap();
            assert_eq!(count.of(&digest).number(), number, "{count}");
            let owners: Vec<_> = count.partitions().filter(|it| it.has(&digest)).collect();
            assert_eq!(owners, [count.of(&digest)]);
        }
    }

    /// Compares with `hashlib.sha1(text).digest()[0] >> 4` in Python.
    #[test]
    fn plain_text_has_the_partition_of_its_sha_1() {
        let count = PartitionCount::new(16).unwrap();
        for (text, number) in [("page 7", 4), ("https://example.com/", 11), ("", 13)] {
            assert_eq!(count.of(&Fingerprint::Text(text.as_bytes().into())).number(), number);
        }
    }
}
