//! The keys of a filter in Redis: what they hold, and the memory that they take.

use indicatif::BinaryBytes;
use redis::{Pipeline, RedisResult, Value};

use super::{KeyError, RedisOpenError};
use crate::filter::{Placing, RedisFilterKeys};
use crate::redis::error::LinkError;
use crate::redis::link::Link;

/// Strings that grow to more than this are made that long at the start: no commit is to wait while
/// Redis finds the memory for a longer one.
const LARGE: u64 = 1 << 20;

/// How much of a string is looked at to tell how full it is, in bytes.
pub(super) const SAMPLE: u64 = 1 << 17;

/// What Redis holds under the filter's keys.
#[derive(Debug)]
pub(super) struct Strings {
    /// Those numbers of [`RedisFilterKeys::used`] that are strings which grow, with their length in
    /// bytes.
    lengths: Vec<(u32, u64)>,
}

impl Strings {
    /// Looks at all keys, and refuses those that are not what the kind has there.
    pub async fn look(link: &mut Link, filter: &RedisFilterKeys) -> Result<Self, RedisOpenError> {
        let used = filter.used();
        let is_set = matches!(filter.placing(), Placing::Set);
        let needed = if is_set { "set" } else { "string" };
        let mut pipeline = Pipeline::new();
        pipeline.ignore_errors();
        for &number in &used {
            let key = filter.key(number);
            pipeline.cmd("TYPE").arg(&key);
            pipeline.cmd("STRLEN").arg(&key);
        }
        // A filter of a larger capacity has more keys than this one.
        let next = beyond(filter);
        if let Some(next) = &next {
            pipeline.cmd("EXISTS").arg(next);
        }
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(LinkError::from)?;
        let mut problems = Vec::new();
        let mut lengths = Vec::new();
        for (&number, replies) in used.iter().zip(replies.chunks(2)) {
            let [found, length] = replies else { break };
            let found: String = value(found)?;
            let key = filter.key(number);
            if found != "none" && found != needed {
                problems.push(KeyError::Type { key, needed, found });
                continue;
            }
            let Some(most) = filter.max_bytes(number) else { continue };
            let length: u64 = value(length)?;
            if length > most {
                problems.push(KeyError::TooLong { key, length, most });
                continue;
            }
            lengths.push((number, length));
        }
        if let (Some(key), Some(reply)) = (next, replies.get(2 * used.len()))
            && value::<u64>(reply)? > 0
        {
            problems.push(KeyError::Beyond { key });
        }
        if problems.is_empty() { Ok(Self { lengths }) } else { Err(RedisOpenError::Keys(problems)) }
    }

    /// Whether any of them is there.
    pub(super) fn are_there(&self) -> bool {
        self.lengths.iter().any(|&(_, length)| length > 0)
    }

    /// Refuses where the server has no room for all that they grow to; answers how many bytes more
    /// that is.
    pub(super) async fn check_room(
        &self,
        link: &mut Link,
        filter: &RedisFilterKeys,
    ) -> Result<u64, RedisOpenError> {
        let needed: u64 = self.growing(filter).map(|(_, length, most)| most - length).sum();
        if needed == 0 {
            return Ok(0);
        }
        let mut ask = redis::cmd("INFO");
        ask.arg("memory");
        let info: String = value(&Ok(link.call(&ask).await?))?;
        let number = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.trim().parse::<u64>().ok()).filter(|&number| number > 0)
        };
        let used = number("used_memory").unwrap_or(0);
        for (what, room) in [
            ("maxmemory", number("maxmemory")),
            ("the memory of its machine", number("total_system_memory")),
        ] {
            if let Some(room) = room
                && used + needed > room
            {
                return Err(RedisOpenError::NoRoom { needed, what, room, used });
            }
        }
        Ok(needed)
    }

    /// Makes the large ones as long as they ever get, without changing a bit of them.
    pub(super) async fn grow(
        &self,
        link: &mut Link,
        filter: &RedisFilterKeys,
    ) -> Result<(), LinkError> {
        for (number, _, most) in self.growing(filter).filter(|&(_, _, most)| most > LARGE) {
            let mut grow = redis::cmd("BITFIELD");
            // Adds 0 to the last bit: were it set, another's, it would stay so.
            grow.arg(filter.key(number)).arg("INCRBY").arg("u1").arg(most * 8 - 1).arg(0);
            link.call(&grow).await?;
        }
        Ok(())
    }

    fn growing(&self, filter: &RedisFilterKeys) -> impl Iterator<Item = (u32, u64, u64)> {
        self.lengths.iter().filter_map(|&(number, length)| {
            let most = filter.max_bytes(number)?;
            (length < most).then_some((number, length, most))
        })
    }
}

/// The key that only a filter with more strings has.
fn beyond(filter: &RedisFilterKeys) -> Option<String> {
    match filter.placing() {
        Placing::Bits(strings) if filter.key(0) != filter.key(1) => {
            Some(filter.key(strings.strings()))
        }
        _ => None,
    }
}

/// What a reply says.
pub(super) fn value<T: redis::FromRedisValue>(reply: &RedisResult<Value>) -> Result<T, LinkError> {
    let reply = reply.clone().map_err(LinkError::from)?;
    let strange = |error| LinkError::Garbled { cause: format!("{error}") };
    redis::from_redis_value(reply).map_err(strange)
}

/// How much of Redis's memory is meant, for people.
pub(super) fn shown(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}
