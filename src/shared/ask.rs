//! What a filter in Redis says of fingerprints, without setting anything.

use std::collections::BTreeMap;

use redis::{Pipeline, RedisResult, Value};

use super::strings::value;
use crate::filter::layout::Unplaced;
use crate::filter::shared::text;
use crate::filter::{Placing, Shared, Verdict};
use crate::fingerprint::Fingerprint;
use crate::redis::link::Link;
use crate::redis::trouble::Trouble;

/// How many fingerprints are asked for at once.
const AT_ONCE: usize = 200;

/// Why nothing can be said of a fingerprint.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Redis, or the way to it.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// The layout has no place for it.
    #[error("{fingerprint}: {why}")]
    Unplaced {
        /// The fingerprint.
        fingerprint: String,
        /// Why not.
        why: Unplaced,
    },
}

/// What the filter says of fingerprints, in their order.
///
/// # Errors
/// Redis fails, or the layout has no place for one of them.
pub async fn verdicts(
    link: &mut Link,
    filter: &Shared,
    fingerprints: &[Fingerprint],
) -> Result<Vec<Verdict>, AskError> {
    let mut verdicts = Vec::with_capacity(fingerprints.len());
    for some in fingerprints.chunks(AT_ONCE) {
        let mut pipeline = Pipeline::new();
        pipeline.ignore_errors();
        let mut questions = Vec::with_capacity(some.len());
        for fingerprint in some {
            questions.push(ask(&mut pipeline, filter, fingerprint)?);
        }
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(Trouble::from)?;
        let mut replies = replies.iter();
        for questions in questions {
            let mut is_seen = true;
            for reply in replies.by_ref().take(questions) {
                is_seen &= value::<Vec<u8>>(reply)?.into_iter().all(|bit| bit == 1);
            }
            verdicts.push(Verdict::of(is_seen));
        }
    }
    Ok(verdicts)
}

/// Adds the questions of one fingerprint; answers how many.
fn ask(
    pipeline: &mut Pipeline,
    filter: &Shared,
    fingerprint: &Fingerprint,
) -> Result<usize, AskError> {
    if matches!(filter.placing(), Placing::Set) {
        pipeline.cmd("SMISMEMBER").arg(filter.key(0)).arg(&*text(fingerprint));
        return Ok(1);
    }
    let mut by_string: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let unplaced = |why| AskError::Unplaced { fingerprint: fingerprint.to_string(), why };
    for position in filter.positions(fingerprint).map_err(unplaced)? {
        by_string.entry(position.string).or_default().push(position.bit);
    }
    let count = by_string.len();
    for (string, bits) in by_string {
        let command = pipeline.cmd("BITFIELD_RO").arg(filter.key(string));
        for bit in bits {
            command.arg("GET").arg("u1").arg(bit);
        }
    }
    Ok(count)
}
