//! Bits of a filter's Redis strings, kept in this program's memory.

use std::ops::Range;
use std::thread;

use urlseen_core::filter::StringBits;
use urlseen_core::filter::layout::{BitPosition, BitStrings};

use super::Fill;
use super::keys::{Digits, fingerprint};

/// Number of bit positions to compute before the first of them is set. The positions are then set
/// region by region. A region is a part of a string that fits into the processor's caches. With
/// this number, each region of the largest string gets enough positions for one pass.
const DRAWN: usize = 1 << 26;

/// Strings of a filter, kept in memory.
pub struct Bits<'a> {
    layout: &'a Layout,
    keys: u64,
    /// Selects the keys with which the filter is filled and tested.
    has: Box<dyn Fn(&Digits) -> bool + Sync + 'a>,
    held: StringBits,
}

/// Layout of a filter's bits.
type Layout = dyn BitStrings + Sync;

impl<'a> Bits<'a> {
    /// Returns empty strings for all keys.
    pub fn new(layout: &'a Layout) -> Self {
        Self::of_keys(layout, |_| true)
    }

    /// Returns empty strings for a part of a filter: only the keys that `has` selects are set and
    /// tested.
    pub fn of_keys(layout: &'a Layout, has: impl Fn(&Digits) -> bool + Sync + 'a) -> Self {
        Self { layout, keys: 0, has: Box::new(has), held: StringBits::new(layout) }
    }

    /// Returns the number of keys that the filter holds.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the number of these keys that belong to this part of the filter.
    pub fn own(&self, keys: Range<u64>) -> u64 {
        let of_part = |keys: Part| keys.map(fingerprint).filter(&self.has).count() as u64;
        in_parallel(keys, of_part).into_iter().sum()
    }

    /// Returns the number of these keys that count as seen if another layout computes the positions
    /// of their bits.
    pub fn seen_by(&self, layout: &Layout, keys: Range<u64>) -> u64 {
        let of_part = |keys: Part| {
            let mut positions = Vec::new();
            let is_seen = |digits: &Digits| {
                place(layout, digits, &mut positions);
                positions.iter().all(|&position| self.held.has(position))
            };
            keys.map(fingerprint).filter(&self.has).filter(is_seen).count() as u64
        };
        in_parallel(keys, of_part).into_iter().sum()
    }

    /// Returns, for each region, the positions of the bits of these keys.
    fn draw(&self, keys: Part) -> Vec<Vec<u32>> {
        let regions = self.held.regions();
        let expected = keys.size_hint().0 * self.layout.hashes() as usize / regions;
        let empty = || Vec::with_capacity(expected + expected / 4);
        let mut drawn: Vec<_> = (0..regions).map(|_| empty()).collect();
        let mut positions = Vec::new();
        for digits in keys.map(fingerprint).filter(&self.has) {
            place(self.layout, &digits, &mut positions);
            for &position in &positions {
                let (region, bit) = self.held.find(position);
                drawn[region].push(bit);
            }
        }
        drawn
    }
}

impl Fill for Bits<'_> {
    /// Sets the bits of these keys, region by region. In the order of the keys, each bit would be a
    /// cache miss.
    fn fill(&mut self, keys: Range<u64>) {
        let chunk = DRAWN / self.layout.hashes() as usize;
        for first in keys.clone().step_by(chunk) {
            let chunk = first..keys.end.min(first + chunk as u64);
            let drawn = in_parallel(chunk, |keys| self.draw(keys));
            let bits: usize = drawn.iter().flatten().map(Vec::len).sum();
            self.keys += bits as u64 / u64::from(self.layout.hashes());
            let words = self.held.words();
            let regions = self.held.regions_mut();
            let share = regions.len().div_ceil(drawn.len());
            thread::scope(|scope| {
                for (nth, regions) in regions.chunks_mut(share).enumerate() {
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

/// Sets these bits of a region.
fn set<'b>(region: &mut Vec<u64>, words: usize, bits: impl Iterator<Item = &'b u32>) {
    bits.for_each(|&bit| StringBits::set_in(region, words, bit));
}

/// Part of the keys for one thread.
type Part = std::iter::StepBy<Range<u64>>;

/// Runs `work` on as many threads as there are processors, each with its part of the keys. Returns
/// all results.
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

/// Computes the positions of a key.
pub fn place(layout: &Layout, digits: &Digits, positions: &mut Vec<BitPosition>) {
    positions.clear();
    layout.push_positions(digits, positions).expect("hex digits have a place");
}
