//! How full a filter in Redis is, from a part of each of its keys.

use redis::{Cmd, Pipeline, Value};

use super::strings::SAMPLE;
use crate::filter::{Estimate, Placing, RedisFilterKeys, id};
use crate::redis::error::LinkError;
use crate::redis::link::Link;

/// One look at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Which of [`RedisFilterKeys::used`].
    place: usize,
    what: What,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// How many of so many bits are 1.
    Ones { bits: u64 },
    /// How long the string is.
    Length,
    /// How many members the set has.
    Members,
}

/// What was seen so far.
#[derive(Debug)]
pub struct Samples {
    used: Vec<u32>,
    /// The share of bits that are 1, by key; none before it was looked at.
    fill: Vec<f64>,
    /// How long each string is, or how many members the set has.
    size: Vec<u64>,
    next: usize,
}

impl Samples {
    /// Nothing was seen of the filter.
    pub fn new(filter: &RedisFilterKeys) -> Self {
        let used = filter.used();
        Self { fill: vec![0.0; used.len()], size: vec![0; used.len()], used, next: 0 }
    }

    /// Looks at all keys.
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

    /// The next question: for one key after the other its size, and how full it is.
    pub fn ask(&mut self, filter: &RedisFilterKeys) -> (Sample, Cmd) {
        let (place, is_fill) = (self.next / 2, self.next % 2 == 1);
        self.next = (self.next + 1) % (2 * self.used.len());
        let number = self.used[place];
        let key = filter.key(number);
        let Some(bytes) = filter.max_bytes(number) else {
            let mut count = redis::cmd("SCARD");
            count.arg(key);
            return (Sample { place, what: What::Members }, count);
        };
        if !is_fill {
            let mut length = redis::cmd("STRLEN");
            length.arg(key);
            return (Sample { place, what: What::Length }, length);
        }
        let length = bytes.min(SAMPLE);
        // Somewhere else each time.
        let from = id::random() % (bytes - length + 1);
        let mut count = redis::cmd("BITCOUNT");
        count.arg(key).arg(from).arg(from + length - 1);
        let in_string = match filter.placing() {
            Placing::Bits(strings) => strings.bits(number).saturating_sub(8 * from),
            Placing::Blocks(_) | Placing::Set => u64::MAX,
        };
        (Sample { place, what: What::Ones { bits: (8 * length).min(in_string) } }, count)
    }

    /// Takes note of the answer, unless it is no number. Answers whether somebody took something
    /// away since the key was last looked at: a string never becomes shorter, a set never smaller.
    pub fn note(&mut self, sample: Sample, answer: Value) -> bool {
        let Ok(count) = redis::from_redis_value::<u64>(answer) else { return false };
        match sample.what {
            What::Ones { bits } => {
                self.fill[sample.place] = (count as f64 / bits as f64).min(1.0);
                false
            }
            What::Length | What::Members => {
                count < std::mem::replace(&mut self.size[sample.place], count)
            }
        }
    }

    /// What that says of the filter.
    pub fn estimate(&self, filter: &RedisFilterKeys) -> Estimate {
        match filter.placing() {
            Placing::Set => Estimate { keys: self.size[0], error_rate: 0.0 },
            Placing::Blocks(_) | Placing::Bits(_) => filter.estimate(&self.fill),
        }
    }
}

/// Looks at all keys of a filter, and answers what that says of it.
///
/// # Errors
/// Redis fails.
pub async fn estimate(link: &mut Link, filter: &RedisFilterKeys) -> Result<Estimate, LinkError> {
    let mut samples = Samples::new(filter);
    samples.look(link, filter).await?;
    Ok(samples.estimate(filter))
}
