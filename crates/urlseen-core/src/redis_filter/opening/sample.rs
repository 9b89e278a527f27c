//! Estimate of the fill of a filter in Redis, from a part of each of its keys.

use redis::{Cmd, Pipeline, Value};

use super::strings::SAMPLE;
use crate::filter::redis_kind::{Content, KeyLook};
use crate::filter::{Estimate, RedisFilterKeys, id};
use crate::redis::error::LinkError;
use crate::redis::link::Link;

/// One question about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Index in `Samples::used`.
    place: usize,
    what: What,
}

/// Property of a key that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Ones among this many bits.
    Ones { bits: u64 },
    /// Length of the string, in bytes.
    Length,
    /// Number of the set's members.
    Members,
    /// Value that the counter has.
    Count,
}

/// Answers so far about a filter.
#[derive(Debug)]
pub struct Samples {
    used: Vec<u32>,
    /// Answers about each key; default values before the first.
    looks: Vec<KeyLook>,
    next: usize,
}

impl Samples {
    /// Starts without any answer.
    pub fn new(filter: &RedisFilterKeys) -> Self {
        let used = filter.kind().looked_at();
        Self { looks: vec![KeyLook::default(); used.len()], used, next: 0 }
    }

    /// Asks about all keys.
    ///
    /// # Errors
    /// Redis fails.
    pub async fn look(
        &mut self,
        link: &mut Link,
        filter: &RedisFilterKeys,
    ) -> Result<(), LinkError> {
        let mut pipeline = Pipeline::new();
        let mut asked = Vec::new();
        for _ in 0..2 * self.used.len() {
            let (sample, ask) = self.ask(filter);
            asked.push(sample);
            pipeline.add_command(ask);
        }
        let answers: Vec<Value> = pipeline.query_async(link).await?;
        for (sample, answer) in asked.into_iter().zip(answers) {
            self.note(sample, answer);
        }
        Ok(())
    }

    /// Returns the next question. Asks each key in turn for its size, then for its fill.
    pub fn ask(&mut self, filter: &RedisFilterKeys) -> (Sample, Cmd) {
        let (place, is_fill) = (self.next / 2, self.next % 2 == 1);
        self.next = (self.next + 1) % (2 * self.used.len());
        let number = self.used[place];
        let key = filter.key(number);
        let of_all = |name: &str, what| {
            let mut ask = redis::cmd(name);
            ask.arg(&key);
            (Sample { place, what }, ask)
        };
        let (bits, bytes) = match filter.content(number) {
            Content::Bits { bits, max_bytes, .. } => (bits, max_bytes),
            Content::Members => return of_all("SCARD", What::Members),
            Content::Count => return of_all("GET", What::Count),
        };
        if !is_fill {
            return of_all("STRLEN", What::Length);
        }
        let length = bytes.min(SAMPLE);
        // At a random place each time.
        let from = id::random() % (bytes - length + 1);
        let mut count = redis::cmd("BITCOUNT");
        count.arg(key).arg(from).arg(from + length - 1);
        let in_string = bits.saturating_sub(8 * from);
        (Sample { place, what: What::Ones { bits: (8 * length).min(in_string) } }, count)
    }

    /// Notes the answer, unless it is no number. Returns true if the key has lost content since the
    /// last answer: no string becomes shorter, no set smaller.
    pub fn note(&mut self, sample: Sample, answer: Value) -> bool {
        let Ok(count) = redis::from_redis_value::<Option<u64>>(answer) else { return false };
        let (count, look) = (count.unwrap_or(0), &mut self.looks[sample.place]);
        match sample.what {
            What::Ones { bits } => {
                look.fill = (count as f64 / bits as f64).min(1.0);
                false
            }
            What::Length | What::Members | What::Count => {
                count < std::mem::replace(&mut look.size, count)
            }
        }
    }

    /// Estimates the filter's fill from the answers.
    pub fn estimate(&self, filter: &RedisFilterKeys) -> Estimate {
        filter.estimate(&self.looks)
    }
}

/// Asks about all keys of a filter, and estimates its fill.
///
/// # Errors
/// Redis fails.
pub async fn estimate(link: &mut Link, filter: &RedisFilterKeys) -> Result<Estimate, LinkError> {
    let mut samples = Samples::new(filter);
    samples.look(link, filter).await?;
    Ok(samples.estimate(filter))
}
