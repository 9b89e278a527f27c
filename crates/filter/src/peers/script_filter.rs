//! The bits of Redis strings, in this process's memory.

use std::fmt;

use crate::Verdict;
use crate::block::prefetch;
use crate::peers::bit_strings::{BitPosition, BitStrings, PlacementError};

/// Bits of a machine word.
const WORD: u32 = u64::BITS;

/// Number of keys that are fetched ahead of the tested one.
const AHEAD: usize = 8;

/// Strings of bits. A string takes no memory before its first bit is set.
#[derive(Debug)]
pub(crate) struct StringBits {
    /// Words of each string; none before its first bit is set.
    strings: Vec<Vec<u64>>,
    /// Number of words of each string.
    lengths: Vec<usize>,
}

impl StringBits {
    /// Builds empty strings with these numbers of bits.
    pub(crate) fn new(bits: impl Iterator<Item = u64>) -> Self {
        let words = |bits: u64| usize::try_from(bits.div_ceil(WORD.into())).expect("2^26 at most");
        let lengths: Vec<_> = bits.map(words).collect();
        Self { strings: vec![Vec::new(); lengths.len()], lengths }
    }

    /// Returns the word that a bit is in, if it takes memory.
    #[inline]
    fn word(&self, BitPosition { string, bit }: BitPosition) -> Option<&u64> {
        self.strings[string as usize].get((bit / WORD) as usize)
    }

    /// Returns true if a bit is set.
    #[inline]
    pub(crate) fn has(&self, position: BitPosition) -> bool {
        self.word(position).is_some_and(|word| word >> (position.bit % WORD) & 1 == 1)
    }

    /// Sets a bit. The first bit of a string takes the memory of the whole string.
    #[inline]
    pub(crate) fn set(&mut self, BitPosition { string, bit }: BitPosition) {
        let words = &mut self.strings[string as usize];
        if words.is_empty() {
            // The system gives zeroed pages, which take no memory before they are touched.
            *words = vec![0; self.lengths[string as usize]];
        }
        words[(bit / WORD) as usize] |= 1 << (bit % WORD);
    }

    /// Begins to fetch the word that a bit is in.
    #[inline]
    fn fetch(&self, position: BitPosition) {
        self.word(position).into_iter().for_each(prefetch);
    }
}

/// In-memory filter that gives the same verdicts as the scripts of a filter in Redis.
pub trait ScriptFilter: fmt::Debug + Send {
    /// Tests keys one after the other and adds the unseen ones, so that each test sees the keys
    /// added before. Calls `each` with the verdict on each key, or with the reason why the layout
    /// cannot place the key.
    fn add_all(&mut self, texts: &[&[u8]], each: &mut dyn FnMut(Placed));
}

/// In-memory filter with the layout of another project. It gives the same verdicts as that project.
#[derive(Debug)]
pub(crate) struct StringFilter {
    layout: BitStrings,
    bits: StringBits,
    positions: Vec<BitPosition>,
}

/// Verdict on a key before the key was added. An error if the layout cannot place the key.
pub type Placed = Result<Verdict, PlacementError>;

impl StringFilter {
    /// Builds an empty filter of a layout.
    pub(crate) fn new(layout: BitStrings) -> Self {
        let bits = StringBits::new((0..layout.strings).map(|string| layout.bits(string)));
        Self { layout, bits, positions: Vec::new() }
    }
}

impl ScriptFilter for StringFilter {
    fn add_all(&mut self, texts: &[&[u8]], each: &mut dyn FnMut(Placed)) {
        let hashes = self.layout.hashes as usize;
        self.positions.clear();
        let placed: Vec<_> = texts
            .iter()
            .map(|text| self.layout.push_positions(text, &mut self.positions))
            .collect();
        let Self { bits, positions, .. } = self;
        let mut coming = positions.chunks(hashes);
        let mut fetch = |bits: &StringBits| {
            coming.next().into_iter().flatten().for_each(|&position| bits.fetch(position));
        };
        (0..AHEAD).for_each(|_| fetch(bits));
        let mut keys = positions.chunks(hashes);
        for placed in placed {
            if let Err(unplaced) = placed {
                each(Err(unplaced));
                continue;
            }
            let key = keys.next().expect("each placed key has a position for each hash");
            fetch(bits);
            let verdict = Verdict::of(key.iter().all(|&position| bits.has(position)));
            if verdict == Verdict::Unseen {
                for &position in key {
                    bits.set(position);
                }
            }
            each(Ok(verdict));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::peers::block_cluster::layout as block_cluster;
    use crate::peers::imooc::layout as imooc;
    use crate::peers::pyrebloom::rounded as pyrebloom;
    use crate::peers::scrapy_redis_bloomfilter::layout as scrapy_redis_bloomfilter;

    fn texts(count: u64) -> Vec<String> {
        // Each text occurs twice.
        (0..count).map(|number| format!("{:040x}", u128::from(number / 2) * 0x9e37_79b9)).collect()
    }

    fn check(layout: &BitStrings) {
        let mut filter = StringFilter::new(layout.clone());
        let texts = texts(5000);
        let (mut set, mut expected) = (HashSet::new(), Vec::new());
        for text in &texts {
            let mut positions = Vec::new();
            layout.push_positions(text.as_bytes(), &mut positions).unwrap();
            let seen = positions.iter().all(|position| set.contains(position));
            expected.push(Ok(Verdict::of(seen)));
            set.extend(positions);
        }
        let mut found = Vec::new();
        for part in texts.chunks(333) {
            let part: Vec<_> = part.iter().map(String::as_bytes).collect();
            filter.add_all(&part, &mut |placed| found.push(placed));
        }
        assert_eq!(found, expected, "{layout:?}");
        let added = expected.iter().filter(|&&placed| placed == Ok(Verdict::Unseen)).count();
        assert!(added <= 2500 && added > 0, "{added}");
        assert!(set.iter().all(|&position| filter.bits.has(position)));
        let most: u64 = (0..layout.strings).map(|it| layout.bits(it).div_ceil(8).max(8)).sum();
        let bytes: u64 = filter.bits.strings.iter().map(|words| 8 * words.len() as u64).sum();
        assert!(bytes > 0 && bytes <= most.next_power_of_two());
    }

    #[test]
    fn verdicts_are_those_of_a_set_of_positions() {
        check(&pyrebloom(500, 0.01).unwrap());
        check(&imooc(5000, 0.01).unwrap());
        check(&scrapy_redis_bloomfilter(14, 6).unwrap());
        check(&block_cluster(12, 4, 3).unwrap());
    }

    #[test]
    fn a_text_without_a_place_does_not_affect_other_texts() {
        let mut filter = StringFilter::new(block_cluster(20, 4, 3).unwrap());
        let mut found = Vec::new();
        let good = "ab".repeat(20);
        let keys = [good.as_bytes(), b"zz", good.as_bytes()];
        filter.add_all(&keys, &mut |placed| found.push(placed));
        assert!(matches!(found[..], [Ok(Verdict::Unseen), Err(_), Ok(Verdict::Seen)]), "{found:?}");
    }
}
