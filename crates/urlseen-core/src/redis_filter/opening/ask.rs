//! Verdicts of a filter in Redis on fingerprints. To ask for verdicts changes nothing in Redis.

use redis::{Pipeline, RedisResult, Value};

use crate::filter::layout::PlacementError;
use crate::filter::{RedisFilterKeys, Verdict};
use crate::fingerprint::Fingerprint;
use crate::redis::error::LinkError;
use crate::redis::link::Link;
use crate::redis_filter::ask::{ask, verdict};

/// Maximum number of fingerprints in one pipeline of questions.
const AT_ONCE: usize = 200;

/// Reason why a fingerprint has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The kind has no bit positions for the fingerprint.
    #[error("{fingerprint}: {why}")]
    Placement {
        /// Fingerprint without bit positions.
        fingerprint: String,
        /// Reason why the kind has no bit positions for the fingerprint.
        why: PlacementError,
    },
}

/// Returns the filter's verdicts on fingerprints, in their order.
///
/// # Errors
/// Redis fails, or the kind has no bit positions for a fingerprint.
pub async fn verdicts(
    link: &mut Link,
    filter: &RedisFilterKeys,
    fingerprints: &[Fingerprint],
) -> Result<Vec<Verdict>, AskError> {
    let mut verdicts = Vec::with_capacity(fingerprints.len());
    for some in fingerprints.chunks(AT_ONCE) {
        let mut pipeline = Pipeline::new();
        pipeline.ignore_errors();
        let mut questions = Vec::with_capacity(some.len());
        for fingerprint in some {
            let unplaced = |why| AskError::Placement { fingerprint: fingerprint.to_string(), why };
            questions.push(ask(&mut pipeline, filter, fingerprint).map_err(unplaced)?);
        }
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(LinkError::from)?;
        let mut replies = replies.iter();
        for questions in questions {
            let verdict = verdict(filter, replies.by_ref().take(questions));
            verdicts.push(verdict.map_err(LinkError::from)?);
        }
    }
    Ok(verdicts)
}
