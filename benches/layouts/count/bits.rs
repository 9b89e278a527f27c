//! The bits of Redis strings, in memory.

use std::ops::Range;
use std::thread;

use urlseen::filter::layout::{BitStrings, Position};

use super::Fill;
use super::keys::{Digits, fingerprint};

/// The most bits of a region: 4 MiB, which stay in a processor's caches while they are written to.
/// The largest strings have so few regions that the bits of all can be sorted into them quickly.
const REGION: u64 = 1 << 25;

/// How many positions are drawn before they are set: so many for each region of the largest string
/// that fetching the region is worth it.
const DRAWN: usize = 1 << 26;

/// The strings of a filter.
pub struct Bits<'a> {
    layout: &'a Layout,
    keys: u64,
    /// Which keys it is filled with and asked for.
    has: Box<dyn Fn(&Digits) -> bool + Sync + 'a>,
    regions: Vec<Vec<u64>>,
    /// How many bits a region has.
    region: u32,
    /// How many regions each string has.
    of_string: usize,
}

/// Where the bits of a filter are.
type Layout = dyn BitStrings + Sync;

impl<'a> Bits<'a> {
    /// Strings without a bit.
    pub fn new(layout: &'a Layout) -> Self {
        Self::of_keys(layout, |_| true)
    }

    /// The same, for those keys alone that `has` says: what are others to a filter that is looked
    /// at in part.
    pub fn of_keys(layout: &'a Layout, has: impl Fn(&Digits) -> bool + Sync + 'a) -> Self {
        let longest = (0..layout.strings()).map(|string| layout.bits(string)).max();
        let longest = longest.expect("a string");
        let region = longest.next_power_of_two().min(REGION);
        let of_string = usize::try_from(longest.div_ceil(region)).expect("at most 128");
        let regions = vec![Vec::new(); of_string * layout.strings() as usize];
        let region = u32::try_from(region).expect("at most 2^25");
        Self { layout, keys: 0, has: Box::new(has), regions, region, of_string }
    }

    /// How many keys it holds.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many of these keys it would be filled with, or is asked for.
    pub fn own(&self, keys: Range<u64>) -> u64 {
        let of_part = |keys: Part| keys.map(fingerprint).filter(&self.has).count() as u64;
        in_parallel(keys, of_part).into_iter().sum()
    }

    /// How many of these keys have all bits set for who looks where another layout has them.
    pub fn seen_by(&self, layout: &Layout, keys: Range<u64>) -> u64 {
        let of_part = |keys: Part| {
            let mut positions = Vec::new();
            let is_seen = |digits: &Digits| {
                place(layout, digits, &mut positions);
                positions.iter().all(|&position| self.is_set(position))
            };
            keys.map(fingerprint).filter(&self.has).filter(is_seen).count() as u64
        };
        in_parallel(keys, of_part).into_iter().sum()
    }

    fn is_set(&self, position: Position) -> bool {
        let (region, bit) = self.find(position);
        let word = self.regions[region].get((bit / u64::BITS) as usize);
        word.is_some_and(|word| word >> (bit % u64::BITS) & 1 == 1)
    }

    /// The region of a bit, and its place in that.
    fn find(&self, Position { string, bit }: Position) -> (usize, u32) {
        let nth = (bit / self.region) as usize;
        (string as usize * self.of_string + nth, bit % self.region)
    }

    /// The bits of these keys, by region.
    fn draw(&self, keys: Part) -> Vec<Vec<u32>> {
        let expected = keys.size_hint().0 * self.layout.hashes() as usize / self.regions.len();
        let empty = || Vec::with_capacity(expected + expected / 4);
        let mut drawn: Vec<_> = self.regions.iter().map(|_| empty()).collect();
        let mut positions = Vec::new();
        for digits in keys.map(fingerprint).filter(&self.has) {
            place(self.layout, &digits, &mut positions);
            for &position in &positions {
                let (region, bit) = self.find(position);
                drawn[region].push(bit);
            }
        }
        drawn
    }
}

impl Fill for Bits<'_> {
    /// A region after the other: each bit by itself would have to come from memory and go there.
    fn fill(&mut self, keys: Range<u64>) {
        let chunk = DRAWN / self.layout.hashes() as usize;
        for first in keys.clone().step_by(chunk) {
            let chunk = first..keys.end.min(first + chunk as u64);
            let drawn = in_parallel(chunk, |keys| self.draw(keys));
            let bits: usize = drawn.iter().flatten().map(Vec::len).sum();
            self.keys += bits as u64 / u64::from(self.layout.hashes());
            let share = self.regions.len().div_ceil(drawn.len());
            let words = self.region.div_ceil(u64::BITS) as usize;
            thread::scope(|scope| {
                for (nth, regions) in self.regions.chunks_mut(share).enumerate() {
                    let drawn = &drawn;
                    scope.spawn(move || {
                        for (number, region) in (nth * share..).zip(regions) {
                            set(region, words, drawn.iter().flat_map(|drawn| &drawn[number]));
                        }
                    });
                }
            });
        }
    }

    fn seen(&self, keys: Range<u64>) -> u64 {
        self.seen_by(self.layout, keys)
    }
}

/// Sets bits of a region, which takes memory from the first one on.
fn set<'b>(region: &mut Vec<u64>, words: usize, bits: impl Iterator<Item = &'b u32>) {
    for bit in bits {
        if region.is_empty() {
            region.resize(words, 0);
        }
        region[(bit / u64::BITS) as usize] |= 1 << (bit % u64::BITS);
    }
}

/// The keys of a thread.
type Part = std::iter::StepBy<Range<u64>>;

/// The answers of as many threads as there are processors, each for its part of the keys.
fn in_parallel<R: Send>(keys: Range<u64>, work: impl Fn(Part) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = &work;
    thread::scope(|scope| {
        let begin = |nth: usize| {
            let part = (keys.start + nth as u64..keys.end).step_by(threads);
            scope.spawn(move || work(part))
        };
        let running: Vec<_> = (0..threads).map(begin).collect();
        running.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    })
}

/// The positions of a key.
pub fn place(layout: &Layout, digits: &Digits, positions: &mut Vec<Position>) {
    positions.clear();
    layout.push_positions(digits, positions).expect("hex digits have a place");
}
