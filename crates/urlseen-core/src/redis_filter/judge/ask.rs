//! What is asked of a filter in Redis about a fingerprint, without setting anything.

use std::collections::BTreeMap;

use redis::{FromRedisValue, Pipeline, RedisError, Value};

use crate::filter::layout::PlacementError;
use crate::filter::shared::text;
use crate::filter::{Placing, RedisFilterKeys, Verdict};
use crate::fingerprint::Fingerprint;

/// Adds the questions about a fingerprint; answers how many.
///
/// # Errors
/// The kind has no place for it. Nothing is added then.
pub fn ask(
    pipeline: &mut Pipeline,
    filter: &RedisFilterKeys,
    fingerprint: &Fingerprint,
) -> Result<usize, PlacementError> {
    if matches!(filter.placing(), Placing::Set) {
        pipeline.cmd("SMISMEMBER").arg(filter.key(0)).arg(&*text(fingerprint));
        return Ok(1);
    }
    let mut by_string: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for position in filter.positions(fingerprint)? {
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

/// What the replies to all questions about a fingerprint say.
///
/// # Errors
/// One of them is an error.
pub fn verdict<'a>(
    replies: impl Iterator<Item = &'a Result<Value, RedisError>>,
) -> Result<Verdict, RedisError> {
    let mut is_seen = true;
    for reply in replies {
        let bits = Vec::<u8>::from_redis_value(reply.clone()?)?;
        is_seen &= bits.into_iter().all(|bit| bit == 1);
    }
    Ok(Verdict::of(is_seen))
}
