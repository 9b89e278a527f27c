//! Questions to a filter in Redis about fingerprints: Redis commands that only read.

use redis::{FromRedisValue, Pipeline, RedisResult, Value};
use urlseen_filter::{PlacementError, RedisFilterKeys, Verdict};
use urlseen_fingerprint::Fingerprint;

use crate::error::LinkError;

/// Maximum number of fingerprints in one pipeline of questions.
const AT_ONCE: usize = 200;

/// Reason why a fingerprint has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The kind of the filter has no bit positions for the fingerprint.
    #[error("{fingerprint}: {why}")]
    #[allow(missing_docs)] // the message explains the fields
    Placement { fingerprint: String, why: PlacementError },
}

/// Returns pipelines of questions about fingerprints, each with the number of questions about each
/// of its fingerprints. `begin` may put commands before the questions of a pipeline.
///
/// # Errors
/// The kind has no bit positions for a fingerprint.
pub fn ask(
    filter: &RedisFilterKeys,
    fingerprints: &[Fingerprint],
    begin: impl Fn(&mut Pipeline),
) -> Result<Vec<(Pipeline, Vec<usize>)>, AskError> {
    let part = |some: &[Fingerprint]| {
        let (mut pipeline, mut counts) = (Pipeline::new(), Vec::with_capacity(some.len()));
        begin(pipeline.ignore_errors());
        for fingerprint in some {
            let unplaced = |why| AskError::Placement { fingerprint: fingerprint.to_string(), why };
            let questions = filter.ask(fingerprint).map_err(unplaced)?;
            for words in &questions {
                pipeline.add_command(redis::Cmd::new().arg(words).clone());
            }
            counts.push(questions.len());
        }
        Ok((pipeline, counts))
    };
    fingerprints.chunks(AT_ONCE).map(part).collect()
}

/// Reads the verdicts from the replies to all questions of a pipeline. `counts` comes from [`ask`].
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

/// Asks a filter for its verdicts on fingerprints. Returns them in the order of the fingerprints.
///
/// # Errors
/// Redis fails, or the kind has no bit positions for a fingerprint.
#[cfg(feature = "link")]
pub async fn find_verdicts(
    link: &mut crate::link::Link,
    filter: &RedisFilterKeys,
    fingerprints: &[Fingerprint],
) -> Result<Vec<Verdict>, AskError> {
    let mut all = Vec::with_capacity(fingerprints.len());
    for (pipeline, counts) in ask(filter, fingerprints, |_| {})? {
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(LinkError::from)?;
        all.extend(verdicts(filter, &counts, &replies).map_err(LinkError::from)?);
    }
    Ok(all)
}
