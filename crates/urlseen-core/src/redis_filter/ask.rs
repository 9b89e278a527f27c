//! Questions to a filter in Redis about a fingerprint: Redis commands that only read.

use redis::{FromRedisValue, Pipeline, RedisError, Value};

use crate::filter::layout::PlacementError;
use crate::filter::{RedisFilterKeys, Verdict};
use crate::fingerprint::Fingerprint;

/// Appends the questions about a fingerprint to the pipeline. Returns the number of questions.
///
/// # Errors
/// The kind has no bit positions for the fingerprint. Then no question is added.
pub fn ask(
    pipeline: &mut Pipeline,
    filter: &RedisFilterKeys,
    fingerprint: &Fingerprint,
) -> Result<usize, PlacementError> {
    let questions = filter.ask(fingerprint)?;
    for words in &questions {
        let mut command = redis::Cmd::new();
        command.arg(words);
        pipeline.add_command(command);
    }
    Ok(questions.len())
}

/// Reads the verdict from the replies to all questions about a fingerprint.
///
/// # Errors
/// One of the replies is an error.
pub fn verdict<'a>(
    filter: &RedisFilterKeys,
    replies: impl Iterator<Item = &'a Result<Value, RedisError>>,
) -> Result<Verdict, RedisError> {
    let answers = replies.map(|reply| {
        let bits = Vec::<u8>::from_redis_value(reply.clone()?)?;
        Ok(bits.into_iter().all(|bit| bit == 1))
    });
    let answers: Vec<bool> = answers.collect::<Result<_, RedisError>>()?;
    Ok(Verdict::of(filter.kind().is_seen(&answers)))
}
