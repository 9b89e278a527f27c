//! Estimate of the fill of a filter in Redis, from the sizes of its keys and from samples of its
//! strings.

use redis::{Cmd, Pipeline, Value};
use urlseen_filter::redis_kind::{Content, KeyLook};
use urlseen_filter::{Estimate, RedisFilterKeys, id};

use super::strings::{SAMPLE, size_command};
use crate::error::LinkError;
use crate::link::Link;

/// One question about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Index in `Samples::used`.
    place: usize,
    /// Length in bits of a part of the string. The question counts the bits that are 1 in this
    /// part. `None` if the question asks for the size of the key. The size is the number of bytes
    /// of a string, the number of members of a set, or the value of a counter.
    bits: Option<u64>,
}

/// Answers that Redis has given so far about the keys of a filter.
#[derive(Debug)]
pub struct Samples {
    used: Vec<(u32, Content)>,
    /// Answers about each key. Before the first answer about a key, its values are the defaults.
    looks: Vec<KeyLook>,
    next: usize,
}

impl Samples {
    /// Creates the collection, without any answer yet.
    pub fn new(filter: &RedisFilterKeys) -> Self {
        let is_count = |(_, content): &(u32, Content)| *content == Content::Count;
        let has_counts = filter.keys.iter().any(is_count);
        let used: Vec<_> =
            filter.keys.iter().copied().filter(|it| is_count(it) == has_counts).collect();
        Self { looks: vec![KeyLook::default(); used.len()], used, next: 0 }
    }

    /// Asks Redis about all keys of the filter, and records the answers.
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
        let (number, content) = self.used[place];
        let key = filter.key(number);
        match content {
            Content::Bits { bits, .. } if is_fill => {
                let bytes = bits.div_ceil(8);
                let length = bytes.min(SAMPLE);
                // Each question counts in another random part of the string.
                let from = id::random() % (bytes - length + 1);
                let mut count = redis::cmd("BITCOUNT");
                count.arg(key).arg(from).arg(from + length - 1);
                let bits = (8 * length).min(bits.saturating_sub(8 * from));
                (Sample { place, bits: Some(bits) }, count)
            }
            _ => {
                let mut ask = redis::cmd(size_command(content));
                ask.arg(key);
                (Sample { place, bits: None }, ask)
            }
        }
    }

    /// Records an answer that is a number, and ignores any other answer. Returns true if the size
    /// of the key has decreased since the last answer. In that case, Redis has lost content of the
    /// key.
    pub fn note(&mut self, sample: Sample, answer: Value) -> bool {
        let Ok(count) = redis::from_redis_value::<Option<u64>>(answer) else { return false };
        let (count, look) = (count.unwrap_or(0), &mut self.looks[sample.place]);
        match sample.bits {
            Some(bits) => {
                look.fill = (count as f64 / bits as f64).min(1.0);
                false
            }
            None => count < std::mem::replace(&mut look.size, count),
        }
    }

    /// Estimates the filter's fill from the answers.
    pub fn estimate(&self, filter: &RedisFilterKeys) -> Estimate {
        filter.kind.estimate(&self.looks)
    }
}

/// Asks Redis about all keys of a filter, and estimates its fill.
///
/// # Errors
/// Redis fails.
pub async fn estimate(link: &mut Link, filter: &RedisFilterKeys) -> Result<Estimate, LinkError> {
    let mut samples = Samples::new(filter);
    samples.look(link, filter).await?;
    Ok(samples.estimate(filter))
}
