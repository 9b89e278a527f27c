//! Other sets in memory: fastbloom, qfilter, and the exact set of the standard library.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use fastbloom::BloomFilter;
use urlseen_core::filter::Sizing;
use urlseen_core::fingerprint::Fingerprint;

use super::crawl::mixed;

/// All other sets, with the same keys.
pub struct Peers {
    pub fastbloom: Fastbloom,
    pub in_huge_pages: Fastbloom,
    pub exact: Exact,
    pub qfilter: Qfilter,
}

impl Peers {
    /// Makes sets that have the keys below `set`.
    pub fn new(sizing: Sizing, set: u64) -> Self {
        let mut peers = Self {
            fastbloom: Fastbloom::new(sizing),
            in_huge_pages: Fastbloom::in_huge_pages(sizing),
            exact: Exact::new(sizing),
            qfilter: Qfilter::new(sizing),
        };
        peers.fastbloom.fill(0..set);
        peers.in_huge_pages.fill(0..set);
        peers.exact.fill(0..set);
        peers.qfilter.fill(0..set);
        peers
    }
}

/// Returns the first 8 bytes of a key. They look random, so no peer hashes them again. This is the
/// cheapest possible hash.
fn word(key: &Fingerprint) -> u64 {
    let first = key.as_bytes().first_chunk().expect("8 bytes of 20");
    u64::from_le_bytes(*first)
}

/// Filter of fastbloom with the same capacity and error rate. Its keys are 64-bit hashes.
pub struct Fastbloom(BloomFilter);

impl Fastbloom {
    pub fn new(sizing: Sizing) -> Self {
        let keys = usize::try_from(sizing.capacity.get()).expect("64 bits");
        let filter = BloomFilter::with_false_pos(sizing.error_rate.get());
        Self(filter.seed(&1).expected_items(keys))
    }

    /// Returns the same filter in huge pages, like urlseen's filter. The crate itself does not
    /// support this.
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

    /// Tests keys and sets the unseen ones. Returns the number of unseen keys.
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

/// Asks the system for huge pages for `memory`, which was not accessed yet.
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
    // SAFETY: the advice changes the size of the pages, not the contents of the memory.
    unsafe { madvise(begin, length, Advice::LinuxHugepage) }.expect("a system with huge pages");
}

/// Quotient filter of the crate qfilter with the same capacity and error rate. Its keys are 64-bit
/// hashes.
pub struct Qfilter(qfilter::Filter);

impl Qfilter {
    pub fn new(sizing: Sizing) -> Self {
        let filter = qfilter::Filter::new(sizing.capacity.get(), sizing.error_rate.get());
        Self(filter.expect("a size that qfilter has"))
    }

    pub fn bits(&self) -> usize {
        self.0.memory_usage() * 8
    }

    pub fn fill(&mut self, keys: Range<u64>) {
        for key in keys {
            self.0.insert_fingerprint(false, mixed(key)).expect("room");
        }
    }

    /// Tests keys and sets the unseen ones. Returns the number of unseen keys.
    pub fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let mut insert = |key| self.0.insert_fingerprint(false, word(key)).expect("room");
        keys.iter().filter(|key| insert(key)).count()
    }
}

/// Exact set of 64-bit hashes of the keys. From the start it has room for all keys.
pub struct Exact(HashSet<u64, BuildHasherDefault<Hashed>>);

impl Exact {
    pub fn new(sizing: Sizing) -> Self {
        let keys = usize::try_from(sizing.capacity.get()).expect("64 bits");
        Self(HashSet::with_capacity_and_hasher(keys, BuildHasherDefault::default()))
    }

    /// Returns the number of bits of the hash table. The table's number of places is a power of
    /// two, and at most 7 of 8 places are in use. A place has 8 bytes, and one more byte that marks
    /// it as used.
    pub fn bits(&self) -> usize {
        (self.0.capacity() * 8 / 7).next_power_of_two() * 9 * 8
    }

    pub fn fill(&mut self, keys: Range<u64>) {
        self.0.extend(keys.map(mixed));
    }

    /// Tests keys and sets the unseen ones. Returns the number of unseen keys.
    pub fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        keys.iter().filter(|key| self.0.insert(word(key))).count()
    }
}

/// Hasher that returns its input, which is a hash already.
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
