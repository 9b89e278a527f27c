//! Questions to a filter in Redis about fingerprints: Redis commands that only read.

use redis::{FromRedisValue, Pipeline, RedisResult, Value};

use crate::filter::{PlacementError, RedisFilterKeys, Verdict};
use crate::fingerprint::Fingerprint;

/// Maximum number of fingerprints in one pipeline of questions.
pub const AT_ONCE: usize = 200;

/// Fingerprint for which the kind of a filter has no bit positions.
#[derive(Debug, thiserror::Error)]
#[error("{fingerprint}: {why}")]
pub struct UnplacedError {
    fingerprint: String,
    why: PlacementError,
}

/// Appends the questions about fingerprints to the pipeline. Returns the number of questions about
/// each fingerprint.
///
/// # Errors
/// The kind has no bit positions for a fingerprint.
pub fn ask(
    pipeline: &mut Pipeline,
    filter: &RedisFilterKeys,
    fingerprints: &[Fingerprint],
) -> Result<Vec<usize>, UnplacedError> {
    let ask = |fingerprint: &Fingerprint| {
        let unplaced = |why| UnplacedError { fingerprint: fingerprint.to_string(), why };
        let questions = filter.ask(fingerprint).map_err(unplaced)?;
        for words in &questions {
            pipeline.add_command(redis::Cmd::new().arg(words).clone());
        }
        Ok(questions.len())
    };
    fingerprints.iter().map(ask).collect()
}

/// Reads the verdicts from the replies to all questions. `counts` is the result of [`ask`].
///
/// # Errors
/// One of the replies is an error.
pub fn verdicts(
    filter: &RedisFilterKeys,
    counts: &[usize],
    replies: &[RedisResult<Value>],
) -> RedisResult<Vec<Verdict>> {
    let mut replies = replies.iter();
    let verdict = |&count: &usize| {
        let answers = replies.by_ref().take(count).map(|reply| {
            let bits = Vec::<u8>::from_redis_value(reply.clone()?)?;
            Ok(bits.into_iter().all(|bit| bit == 1))
        });
        let answers: Vec<bool> = answers.collect::<RedisResult<_>>()?;
        Ok(Verdict::of(filter.kind().is_seen(&answers)))
    };
    counts.iter().map(verdict).collect()
}
