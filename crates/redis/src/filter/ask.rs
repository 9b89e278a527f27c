//! Questions to a filter in Redis about fingerprints: Redis commands that only read.

use redis::{Cmd, FromRedisValue, RedisResult, Value};
use urlseen_filter::{PlacementError, RedisFilterKeys, Verdict};
use urlseen_fingerprint::Fingerprint;

use crate::error::LinkError;

/// Maximum number of fingerprints in one group of questions.
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

/// Questions, and the number of questions about each fingerprint.
type Group = (Vec<Cmd>, Vec<usize>);

/// Returns groups of questions about fingerprints.
///
/// # Errors
/// The kind has no bit positions for a fingerprint.
pub fn ask(filter: &RedisFilterKeys, fingerprints: &[Fingerprint]) -> Result<Vec<Group>, AskError> {
    let part = |some: &[Fingerprint]| {
        let (mut group, mut counts) = (Vec::new(), Vec::with_capacity(some.len()));
        for fingerprint in some {
            let unplaced = |why| AskError::Placement { fingerprint: fingerprint.to_string(), why };
            let questions = filter.ask(fingerprint).map_err(unplaced)?;
            group.extend(questions.iter().map(|words| Cmd::new().arg(words).clone()));
            counts.push(questions.len());
        }
        Ok((group, counts))
    };
    fingerprints.chunks(AT_ONCE).map(part).collect()
}

/// Reads the verdicts from the replies to a group of questions. `counts` comes from [`ask`].
///
/// # Errors
/// One of the replies has another type.
pub fn verdicts(
    filter: &RedisFilterKeys,
    counts: &[usize],
    replies: impl IntoIterator<Item = Value>,
) -> RedisResult<Vec<Verdict>> {
    let mut replies = replies.into_iter();
    let verdict = |&count: &usize| {
        let answers = replies.by_ref().take(count).map(|reply| {
            let bits = Vec::<u8>::from_redis_value(reply)?;
            Ok(bits.into_iter().all(|bit| bit == 1))
        });
        let answers: Vec<bool> = answers.collect::<RedisResult<_>>()?;
        Ok(Verdict::of(filter.kind.is_seen(&answers)))
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
    for (group, counts) in ask(filter, fingerprints)? {
        let mut pipeline = redis::pipe();
        for question in group {
            pipeline.add_command(question);
        }
        let replies: Vec<Value> = pipeline.query_async(link).await.map_err(LinkError::from)?;
        all.extend(verdicts(filter, &counts, replies).map_err(LinkError::from)?);
    }
    Ok(all)
}
