//! Checks of a filter's Redis keys: their content, and the memory for them.

use indicatif::BinaryBytes;
use redis::{Pipeline, RedisResult, Value};
use urlseen_filter::RedisFilterKeys;
use urlseen_filter::redis_kind::{Content, ForeignKey, Record};

use super::{KeyError, RedisOpenError};
use crate::error::LinkError;
use crate::filter::definition::DEFINE;
use crate::link::Link;
use crate::preflight::Info;

/// Maximum size in bytes of a string that grows step by step. Longer strings get their full length
/// at the start, so that no commit waits while Redis allocates memory.
const LARGE: u64 = 1 << 20;

/// Number of bytes of a string that urlseen examines to estimate the fill of the string.
pub(super) const SAMPLE: u64 = 1 << 17;

/// Values that Redis holds under the filter's keys.
#[derive(Debug)]
pub(super) struct Strings {
    /// The filter's strings of bits that can grow.
    growing: Vec<GrowingString>,
    /// True if Redis has any of the keys.
    pub(super) are_there: bool,
}

/// String of bits that does not have its full length yet.
#[derive(Debug, Clone, Copy)]
struct GrowingString {
    number: u32,
    length: u64,
    most: u64,
}

impl Strings {
    /// Examines all keys, and refuses those that do not fit the kind.
    pub(crate) async fn look(
        link: &mut Link,
        filter: &RedisFilterKeys,
    ) -> Result<Self, RedisOpenError> {
        let used = &filter.keys;
        let mut pipeline = Pipeline::new();
        pipeline.ignore_errors();
        for &(number, content) in used {
            let key = filter.key(number);
            pipeline.cmd("TYPE").arg(&key);
            pipeline.cmd(size_command(content)).arg(&key);
        }
        let foreign = filter.kind.foreign(&filter.base);
        for ForeignKey { key, .. } in &foreign {
            pipeline.cmd("EXISTS").arg(key);
        }
        let replies: Vec<RedisResult<Value>> =
            pipeline.query_async(link).await.map_err(LinkError::from)?;
        let (of_used, of_foreign) = replies.split_at(2 * used.len());
        let (mut problems, mut growing, mut are_there) = (Vec::new(), Vec::new(), false);
        for (&used, replies) in used.iter().zip(of_used.chunks(2)) {
            let found: String = value(&replies[0])?;
            are_there |= found != "none";
            match looked(filter, used, &found, &replies[1])? {
                Ok(string) => growing.extend(string),
                Err(problem) => problems.push(problem),
            }
        }
        for (ForeignKey { key, why }, reply) in foreign.into_iter().zip(of_foreign) {
            if value::<u64>(reply)? > 0 {
                problems.push(KeyError::new(key, format!("is there, {why}")));
            }
        }
        problems.extend(record(link, filter, are_there).await?);
        if !problems.is_empty() {
            return Err(RedisOpenError::Keys(problems));
        }
        Ok(Self { growing, are_there })
    }

    /// Checks that the server has memory for the full length of all strings. Returns the number of
    /// bytes by which the strings still grow.
    pub(super) async fn check_room(&self, link: &mut Link) -> Result<u64, RedisOpenError> {
        let needed: u64 = self.growing.iter().map(|it| it.most - it.length).sum();
        if needed == 0 {
            return Ok(0);
        }
        let info: String = link.query(redis::cmd("INFO").arg("memory")).await?;
        let number = |name: &str| Info(&info).number(name).filter(|&number| number > 0);
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

    /// Writes the hash in which the filter's project keeps the parameters, unless the hash exists.
    /// Gives the large strings their full length, and changes no bit of them.
    pub(super) async fn prepare(
        &self,
        link: &mut Link,
        filter: &RedisFilterKeys,
    ) -> Result<(), LinkError> {
        if let Some(record) = filter.record() {
            let mut write = redis::cmd("EVAL");
            write.arg(DEFINE).arg(1).arg(&record.key).arg(words(&record));
            link.call(&write).await?;
        }
        for it in self.growing.iter().filter(|it| it.most > LARGE) {
            let mut grow = redis::cmd("BITFIELD");
            // Adds 0 to the last bit. So the bit stays set if another program has set it.
            grow.arg(filter.key(it.number)).arg("INCRBY").arg("u1").arg(it.most * 8 - 1).arg(0);
            link.call(&grow).await?;
        }
        Ok(())
    }
}

/// Returns the command that reads the size of a key: the length of a string, the number of members
/// of a set, or the value of a counter.
pub(super) fn size_command(content: Content) -> &'static str {
    match content {
        Content::Bits { .. } => "STRLEN",
        Content::Members => "SCARD",
        Content::Count => "GET",
    }
}

/// Checks one key. `found` is its type, and `reply` is the reply to its `size_command`. Returns the
/// key if it is a string of bits that gets its full length at the start and does not have it yet.
fn looked(
    filter: &RedisFilterKeys,
    (number, content): (u32, Content),
    found: &str,
    reply: &RedisResult<Value>,
) -> Result<Result<Option<GrowingString>, KeyError>, LinkError> {
    let (key, needed, is_there) = (filter.key(number), content.type_name(), found != "none");
    if is_there && found != needed {
        return Ok(Err(KeyError::of_type(key, needed, found)));
    }
    let problem = match content {
        Content::Bits { is_reserved, .. } => {
            let most = content.max_bytes().unwrap_or(0);
            let length = if is_there { value(reply)? } else { 0 };
            if length <= most {
                let grows = is_reserved && length < most;
                return Ok(Ok(grows.then_some(GrowingString { number, length, most })));
            }
            format!(
                "is {length} bytes long, and a filter of this kind and size never has more than \
                 {most} there: it was made with another capacity, error rate or bit"
            )
        }
        Content::Count if is_there => {
            let found: Vec<u8> = value(reply)?;
            let found = String::from_utf8_lossy(&found);
            if found.parse::<u64>().is_ok() {
                return Ok(Ok(None));
            }
            format!(
                "holds {found:?}, and this kind has a counter there: filter.key is that of another \
                 filter"
            )
        }
        Content::Members | Content::Count => return Ok(Ok(None)),
    };
    Ok(Err(KeyError::new(key, problem)))
}

/// Returns the problems of the hash in which the filter's project keeps the parameters.
async fn record(
    link: &mut Link,
    filter: &RedisFilterKeys,
    are_there: bool,
) -> Result<Vec<KeyError>, LinkError> {
    let Some(Record { key, fields, fixed }) = filter.record() else { return Ok(Vec::new()) };
    let found: String = link.query(redis::cmd("TYPE").arg(&key)).await?;
    match &*found {
        "none" if are_there => {
            let problem = "is missing, but the bits of the filter exist: without the parameters \
                           in this key, the meaning of the bits is not known. Delete the bits, or \
                           choose another filter.key";
            return Ok(vec![KeyError::new(key, problem.to_owned())]);
        }
        "none" => return Ok(Vec::new()),
        "hash" => {}
        _ => return Ok(vec![KeyError::of_type(key, "hash", &found)]),
    }
    let (mut ask, fixed) = (redis::cmd("HMGET"), &fields[..fixed]);
    let names: Vec<_> = fixed.iter().map(|&(name, _)| name).collect();
    let found: Vec<Option<String>> = link.query(ask.arg(&key).arg(names)).await?;
    let differences = fixed.iter().zip(found).filter_map(|((field, wanted), found)| {
        let found = found.unwrap_or_else(|| "nothing".to_owned());
        let problem = format!(
            "says that {field} is {found}, and the configuration needs {wanted}: the filter was \
             made with another capacity or error rate"
        );
        (found != *wanted).then(|| KeyError::new(key.clone(), problem))
    });
    Ok(differences.collect())
}

/// Returns fields and values of a record, alternately.
pub(super) fn words(record: &Record) -> Vec<&str> {
    record.fields.iter().flat_map(|(name, value)| [*name, value]).collect()
}

/// Converts a reply to the expected type.
pub(super) fn value<T: redis::FromRedisValue>(reply: &RedisResult<Value>) -> Result<T, LinkError> {
    let reply = reply.clone().map_err(LinkError::from)?;
    let strange = |error| LinkError::Garbled { cause: format!("{error}") };
    redis::from_redis_value(reply).map_err(strange)
}

/// Formats an amount of memory for people.
pub(super) fn shown(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}
