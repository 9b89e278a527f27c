//! What else keeps a set in memory: fastbloom, and the standard library's exact one.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use fastbloom::BloomFilter;
use urlseen_core::filter::Sizing;
use urlseen_core::fingerprint::Fingerprint;

use super::crawl::mixed;

/// The first 8 bytes of a key. They are as good as random already, so neither peer hashes them
/// again: less than this no hash can cost.
fn word(key: &Fingerprint) -> u64 {
    let first = key.as_bytes().first_chunk().expect("8 bytes of 20");
    u64::from_le_bytes(*first)
}

/// fastbloom for the same capacity and error rate, given 64-bit hashes.
pub struct Fastbloom(BloomFilter);

impl Fastbloom {
    pub fn new(sizing: Sizing) -> Self {
        let keys = usize::try_from(sizing.capacity().get()).expect("64 bits");
        let filter = BloomFilter::with_false_pos(sizing.error_rate().get());
        Self(filter.seed(&1).expected_items(keys))
    }

    /// The same with its memory where the filter has its own, which the crate does not offer.
    pub fn in_huge_pages(sizing: Sizing) -> Self {
        let new = Self::new(sizing);
        #[cfg(target_os = "linux")]
        advise_huge_pages(new.0.as_slice());
        new
    }

    pub fn bits(&self) -> usize {
        self.0.num_bits()
    }

    pub fn fill(&mut self, keys: Range<u64>) {
        for key in keys {
            self.0.insert_hash(mixed(key));
        }
    }

    /// Tests keys and sets the unseen; how many were unseen.
    pub fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let mut unseen = 0;
        for hash in keys.iter().map(word) {
            if !self.0.contains_hash(hash) {
                self.0.insert_hash(hash);
                unseen += 1;
            }
        }
        unseen
    }
}

/// Asks for huge pages for all whole pages of `memory`, which has not been touched yet.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn advise_huge_pages(memory: &[u64]) {
    use rustix::mm::{Advice, madvise};
    let page = rustix::param::page_size();
    let bytes: &[u8] = bytemuck::cast_slice(memory);
    let skipped = bytes.as_ptr().align_offset(page);
    let whole = &bytes[skipped..];
    let whole = &whole[..whole.len() / page * page];
    let (begin, length) = (whole.as_ptr().cast_mut().cast(), whole.len());
    // SAFETY: the advice changes in what pages the memory is kept, and none of what is in it.
    unsafe { madvise(begin, length, Advice::LinuxHugepage) }.expect("a system with huge pages");
}

/// An exact set of 64 bits a key, with room for all keys from the start.
pub struct Exact(HashSet<u64, BuildHasherDefault<Hashed>>);

impl Exact {
    pub fn new(sizing: Sizing) -> Self {
        let keys = usize::try_from(sizing.capacity().get()).expect("64 bits");
        Self(HashSet::with_capacity_and_hasher(keys, BuildHasherDefault::default()))
    }

    /// Bits of its table: a power of two of places, 7 of 8 in use at most, 8 bytes each and one to
    /// tell which are in use.
    pub fn bits(&self) -> usize {
        (self.0.capacity() * 8 / 7).next_power_of_two() * 9 * 8
    }

    pub fn fill(&mut self, keys: Range<u64>) {
        self.0.extend(keys.map(mixed));
    }

    /// Tests keys and sets the unseen; how many were unseen.
    pub fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        keys.iter().filter(|key| self.0.insert(word(key))).count()
    }
}

/// A hasher for what is a hash already.
#[derive(Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 64-bit hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
