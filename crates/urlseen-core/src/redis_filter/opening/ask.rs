//! Verdicts of a filter in Redis on fingerprints. To ask for verdicts changes nothing in Redis.

use redis::{Pipeline, RedisResult, Value};

use crate::filter::{RedisFilterKeys, Verdict};
use crate::fingerprint::Fingerprint;
use crate::redis::error::LinkError;
use crate::redis::link::Link;
use crate::redis_filter::ask::{self, AT_ONCE, UnplacedError, ask};

/// Reason why a fingerprint has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The kind has no bit positions for the fingerprint.
    #[error(transparent)]
    Placement(#[from] UnplacedError),
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
        let counts = ask(pipeline.ignore_errors(), filter, some)?;
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(LinkError::from)?;
        verdicts.extend(ask::verdicts(filter, &counts, &replies).map_err(LinkError::from)?);
    }
    Ok(verdicts)
}
