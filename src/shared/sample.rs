//! How full a filter in Redis is, from a part of each of its keys.

use redis::{Cmd, Value};

use super::strings::SAMPLE;
use crate::filter::{Estimate, Placing, Shared};
use crate::head;

/// Where so many bits of a part were set, no other part of the string has none by chance: that is
/// e^-100.
const SURE: f64 = 100.0;

/// One look at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Which of [`Shared::used`].
    place: usize,
    /// Bits looked at.
    bits: u64,
    /// Whether these are all that the key has.
    is_whole: bool,
}

/// What was seen so far.
#[derive(Debug)]
pub struct Samples {
    used: Vec<u32>,
    /// The share of bits that are 1, by key; none before it was looked at.
    fill: Vec<f64>,
    /// Members of a set.
    members: u64,
    next: usize,
}

impl Samples {
    /// Nothing was seen of the filter.
    pub fn new(filter: &Shared) -> Self {
        let used = filter.used();
        Self { fill: vec![0.0; used.len()], used, members: 0, next: 0 }
    }

    /// How many keys there are to look at.
    pub fn keys(&self) -> usize {
        self.used.len()
    }

    /// The question how full the next key is.
    pub fn ask(&mut self, filter: &Shared) -> (Sample, Cmd) {
        let place = self.next;
        self.next = (place + 1) % self.used.len();
        let number = self.used[place];
        let key = filter.key(number);
        let Some(bytes) = filter.max_bytes(number) else {
            let mut count = redis::cmd("SCARD");
            count.arg(key);
            return (Sample { place, bits: 0, is_whole: true }, count);
        };
        let length = bytes.min(SAMPLE);
        // Somewhere else each time.
        let from = head::random() % (bytes - length + 1);
        let mut count = redis::cmd("BITCOUNT");
        count.arg(key).arg(from).arg(from + length - 1);
        let in_string = match filter.placing() {
            Placing::Bits(strings) => strings.bits(number).saturating_sub(8 * from),
            Placing::Lines(_) | Placing::Set => u64::MAX,
        };
        (Sample { place, bits: (8 * length).min(in_string), is_whole: length == bytes }, count)
    }

    /// Takes note of the answer, unless it is no number. Answers whether the key was emptied since
    /// it was last looked at.
    pub fn note(&mut self, sample: Sample, answer: Value) -> bool {
        let Ok(count) = redis::from_redis_value::<u64>(answer) else { return false };
        if sample.bits == 0 {
            return count < std::mem::replace(&mut self.members, count);
        }
        let fill = (count as f64 / sample.bits as f64).min(1.0);
        let before = std::mem::replace(&mut self.fill[sample.place], fill);
        // Elsewhere in the string there can be a few more or less.
        fill == 0.0 && before > 0.0 && (sample.is_whole || before * sample.bits as f64 > SURE)
    }

    /// What that says of the filter.
    pub fn estimate(&self, filter: &Shared) -> Estimate {
        match filter.placing() {
            Placing::Set => Estimate { keys: self.members, error_rate: 0.0 },
            Placing::Lines(_) | Placing::Bits(_) => filter.estimate(&self.fill),
        }
    }
}
