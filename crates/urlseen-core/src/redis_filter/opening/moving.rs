//! Functions that move a native filter into Redis or out of Redis.

use redis::{Pipeline, Value};

use super::strings::Strings;
use super::uniting::page;
use super::{RedisOpenError, Wanted};
use crate::filter::id::RandomId;
use crate::filter::{RedisFilterKeys, Seed, ShardId};
use crate::redis::error::LinkError;
use crate::redis::link::Link;
use crate::redis_filter::definition::{Definition, Found};

/// Maximum number of bytes in one command.
const PART: usize = 4 << 20;

impl Wanted {
    /// Prepares the move of a filter into Redis. The filter keeps its id and seed. The keys must be
    /// free, or hold the incomplete filter of an interrupted move of the same filter. No program
    /// can open the filter until the move is finished.
    ///
    /// # Errors
    /// The key is taken, or the server has no room.
    pub async fn begin_move(
        &self,
        link: &mut Link,
        id: RandomId,
        seed: Seed,
    ) -> Result<RedisFilterKeys, RedisOpenError> {
        let filter = self.filter(seed)?;
        let strings = Strings::look(link, &filter).await?;
        let found = self.definition(link, None).await?;
        let is_ours = found == Some(Found::Unfinished(id));
        if !is_ours && (found.is_some() || strings.are_there) {
            return Err(RedisOpenError::Taken(filter.base().to_owned()));
        }
        strings.check_room(link).await?;
        let mut mark = redis::cmd("HSET");
        mark.arg(self.definition_key()).arg(&Definition::mark(id)[..]);
        link.call(&mark).await?;
        Ok(filter)
    }

    /// Replaces the mark of an incomplete filter by the definition, so that all programs can open
    /// the filter.
    ///
    /// # Errors
    /// Redis fails.
    pub async fn finish_move(
        &self,
        link: &mut Link,
        id: RandomId,
        seed: Seed,
    ) -> Result<(), RedisOpenError> {
        let definition = Definition::of(id, self.seeded(seed));
        let mut finish = Pipeline::new();
        finish.atomic();
        finish.cmd("DEL").arg(self.definition_key());
        finish.cmd("HSET").arg(self.definition_key()).arg(definition.words());
        let _: Value = finish.query_async(link).await.map_err(LinkError::from)?;
        Ok(())
    }
}

/// Writes a shard's bits, as [`Shards::bytes`](crate::filter::Shards::bytes) returned them.
///
/// # Errors
/// Redis fails.
pub async fn put(
    link: &mut Link,
    filter: &RedisFilterKeys,
    shard: ShardId,
    bytes: &[u8],
) -> Result<(), LinkError> {
    let key = filter.key(shard.number());
    for (number, part) in bytes.chunks(PART).enumerate() {
        let mut write = redis::cmd("SETRANGE");
        write.arg(&key).arg(number * PART).arg(part);
        link.call(&write).await?;
    }
    Ok(())
}

/// Reads the first `length` bytes of a shard; missing bytes are 0.
///
/// # Errors
/// Redis fails.
pub async fn get(
    link: &mut Link,
    filter: &RedisFilterKeys,
    shard: ShardId,
    length: usize,
) -> Result<Vec<u8>, LinkError> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let part = PART.min(length - bytes.len());
        bytes.extend(page(link, filter, shard.number(), bytes.len() as u64, part).await?);
    }
    Ok(bytes)
}
