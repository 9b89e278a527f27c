//! How full a filter in Redis is, from a part of each of its keys.

use redis::{Cmd, Pipeline, Value};

use super::strings::SAMPLE;
use crate::filter::redis_kind::{Content, KeyLook};
use crate::filter::{Estimate, RedisFilterKeys, id};
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
    /// What the number is.
    Count,
}

/// What was seen so far.
#[derive(Debug)]
pub struct Samples {
    used: Vec<u32>,
    /// What was seen of each key; nothing before it was looked at.
    looks: Vec<KeyLook>,
    next: usize,
}

impl Samples {
    /// Nothing was seen of the filter.
    pub fn new(filter: &RedisFilterKeys) -> Self {
        let used = filter.kind().looked_at();
        Self { looks: vec![KeyLook::default(); used.len()], used, next: 0 }
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
        // Somewhere else each time.
        let from = id::random() % (bytes - length + 1);
        let mut count = redis::cmd("BITCOUNT");
        count.arg(key).arg(from).arg(from + length - 1);
        let in_string = bits.saturating_sub(8 * from);
        (Sample { place, what: What::Ones { bits: (8 * length).min(in_string) } }, count)
    }

    /// Takes note of the answer, unless it is no number. Answers whether somebody took something
    /// away since the key was last looked at: a string never becomes shorter, a set never smaller.
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

    /// What that says of the filter.
    pub fn estimate(&self, filter: &RedisFilterKeys) -> Estimate {
        filter.estimate(&self.looks)
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
