//! Filter in Redis, simulated in this process's memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use urlseen_fingerprint::Fingerprint;

use crate::peers::bit_strings::{BitPosition, PlacementError};
use crate::redis_kind::Content;
use crate::{RedisKind, Verdict};

/// In-memory filter that gives the same verdicts as the scripts of a filter in Redis.
#[derive(Debug)]
pub struct ScriptFilter {
    kind: Arc<dyn RedisKind>,
    strings: HashMap<u32, BitString>,
    /// Number of added fingerprints.
    keys: u64,
}

/// String of bits. It takes no memory before its first bit is set.
#[derive(Debug)]
struct BitString {
    words: Vec<u64>,
    /// Number of words once a bit is set.
    length: usize,
}

impl BitString {
    /// Returns the index of the word of a bit, and the mask of the bit in it.
    fn place(bit: u32) -> (usize, u64) {
        ((bit / u64::BITS) as usize, 1 << (bit % u64::BITS))
    }

    fn has(&self, bit: u32) -> bool {
        let (word, mask) = Self::place(bit);
        self.words.get(word).is_some_and(|word| word & mask != 0)
    }

    fn set(&mut self, bit: u32) {
        if self.words.is_empty() {
            // The system gives zeroed pages, which take no memory before they are touched.
            self.words = vec![0; self.length];
        }
        let (word, mask) = Self::place(bit);
        self.words[word] |= mask;
    }
}

impl ScriptFilter {
    /// Makes an empty filter. Returns `None` if the filter is a set.
    pub fn new(kind: Arc<dyn RedisKind>) -> Option<Self> {
        let keys = kind.keys();
        let string = |&(number, content): &(u32, Content)| {
            let Content::Bits { bits, .. } = content else { return None };
            let length = usize::try_from(bits.div_ceil(u64::BITS.into())).expect("2^26 at most");
            Some((number, BitString { words: Vec::new(), length }))
        };
        let strings: HashMap<_, _> = keys.iter().filter_map(string).collect();
        (!strings.is_empty()).then_some(Self { kind, strings, keys: 0 })
    }

    /// Tests a fingerprint, and adds it if it is unseen.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn add(&mut self, fingerprint: &Fingerprint) -> Result<Verdict, PlacementError> {
        let positions = self.kind.positions(fingerprint)?;
        let mut have_all = BTreeMap::new();
        for &BitPosition { string, bit } in &positions {
            *have_all.entry(string).or_insert(true) &= self.strings[&string].has(bit);
        }
        let answers: Vec<_> = have_all.into_values().collect();
        let verdict = Verdict::of(self.kind.is_seen(&answers));
        if verdict == Verdict::Unseen {
            let newest = self.kind.newest(self.keys);
            for BitPosition { string, bit } in positions {
                if newest.is_none_or(|newest| newest == string) {
                    self.strings.get_mut(&string).expect("a string of the filter").set(bit);
                }
            }
            self.keys += 1;
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::peers::bit_strings::BitStrings;
    use crate::peers::block_cluster::layout as block_cluster;
    use crate::peers::imooc::layout as imooc;
    use crate::peers::pyrebloom::rounded as pyrebloom;
    use crate::peers::scrapy_redis_bloomfilter::layout as scrapy_redis_bloomfilter;

    fn texts(count: u64) -> Vec<String> {
        // Each text occurs twice.
        (0..count).map(|number| format!("{:040x}", u128::from(number / 2) * 0x9e37_79b9)).collect()
    }

    fn add(filter: &mut ScriptFilter, text: &str) -> Result<Verdict, PlacementError> {
        filter.add(&Fingerprint::Text(text.as_bytes().into()))
    }

    fn check(layout: &BitStrings) {
        let mut filter = ScriptFilter::new(Arc::new(layout.clone())).unwrap();
        let (mut set, mut added) = (HashSet::new(), 0);
        for text in texts(5000) {
            let mut positions = Vec::new();
            layout.push_positions(text.as_bytes(), &mut positions).unwrap();
            let verdict = Verdict::of(positions.iter().all(|position| set.contains(position)));
            set.extend(positions);
            assert_eq!(add(&mut filter, &text), Ok(verdict), "{layout:?}");
            added += u32::from(verdict == Verdict::Unseen);
        }
        assert!(added <= 2500 && added > 0, "{added}");
        assert!(set.iter().all(|it| filter.strings[&it.string].has(it.bit)));
        let most: u64 = (0..layout.strings).map(|it| layout.bits(it).div_ceil(8).max(8)).sum();
        let bytes: u64 = filter.strings.values().map(|it| 8 * it.words.len() as u64).sum();
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
        let mut filter = ScriptFilter::new(Arc::new(block_cluster(20, 4, 3).unwrap())).unwrap();
        let good = "ab".repeat(20);
        let found = [&*good, "zz", &*good].map(|text| add(&mut filter, text));
        assert!(matches!(found[..], [Ok(Verdict::Unseen), Err(_), Ok(Verdict::Seen)]), "{found:?}");
    }
}
