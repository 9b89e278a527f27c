//! Servers with the module: `BF.SCANDUMP` and `BF.LOADCHUNK`, chunk by chunk.

use redis::{FromRedisValue, Value, cmd};

use super::{PartialLoadError, Progress, TransferError};
use urlseen_core::filter::redisbloom::{Chunk, ChunkError, Filter, Loader};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

const SCANDUMP: &str = "BF.SCANDUMP";
const LOADCHUNK: &str = "BF.LOADCHUNK";

/// Reply of `TYPE` for a filter.
const TYPE: &str = "MBbloom--";

/// Reads the filter of a key. Refuses one whose layers take more than `limit` bytes.
pub(crate) async fn dump(
    address: &RedisAddress,
    key: &str,
    limit: u64,
    progress: Progress<'_>,
) -> Result<Filter, TransferError> {
    let mut link = connect(address, Timeouts::default()).await?;
    let found = type_of(&mut link, key).await?;
    match found.as_str() {
        TYPE => {}
        "none" => {
            let (key, address) = (key.to_owned(), address.to_string());
            return Err(TransferError::NoKey { key, address });
        }
        _ => {
            let (key, needed) = (key.to_owned(), "a filter of RedisBloom (MBbloom--)");
            return Err(TransferError::OtherType { key, needed, found });
        }
    }
    let bad = |problem: ChunkError| TransferError::Chunk { key: key.to_owned(), problem };
    let (mut iterator, header) = chunk(&mut link, address, key, 0).await?;
    let mut loader = Loader::new(iterator, &header, limit).map_err(bad)?;
    let (mut done, all) = (0, loader.bytes());
    loop {
        let (next, data) = chunk(&mut link, address, key, iterator).await?;
        if next == 0 {
            break;
        }
        loader.load(next, &data).map_err(bad)?;
        iterator = next;
        done += data.len() as u64;
        progress(done, all);
    }
    let (_, last) = chunk(&mut link, address, key, 0).await?;
    if last != header {
        return Err(TransferError::Changed { key: key.to_owned() });
    }
    loader.finish().map_err(bad)
}

/// Loads the filter into `key`, which must not exist.
pub(crate) async fn load(
    address: &RedisAddress,
    key: &str,
    filter: &Filter,
    progress: Progress<'_>,
) -> Result<(), TransferError> {
    let mut link = connect(address, Timeouts::default()).await?;
    let found = type_of(&mut link, key).await?;
    if found != "none" {
        return Err(TransferError::KeyExists { key: key.to_owned(), found });
    }
    // A server without the module quotes an unknown command in its error. So this one is short.
    match link.call(cmd(SCANDUMP).arg(key).arg(0)).await {
        Ok(_) | Err(LinkError::Refused { .. }) => {}
        Err(trouble) => return Err(named(trouble, address, SCANDUMP)),
    }
    let (mut done, all) = (0, filter.bytes());
    let mut header = Vec::new();
    for Chunk { iterator, data } in filter.chunks() {
        let is_first = header.is_empty();
        let mut command = cmd(LOADCHUNK);
        command.arg(key).arg(iterator).arg(&*data);
        match link.call(&command).await {
            Ok(_) if is_first => header = data.into_owned(),
            Ok(_) => {
                done += data.len() as u64;
                progress(done, all);
            }
            // The key was not there before, and a refused first chunk does not make it.
            Err(why) if is_first && !is_unknown(&why) => {
                return Err(named(why, address, LOADCHUNK));
            }
            Err(why) => {
                let key = key.to_owned();
                let link = (!is_unknown(&why)).then_some(link);
                let left = if is_first {
                    PartialLoadError::Unknown(key)
                } else {
                    remove(link, address, key).await
                };
                return Err(TransferError::Half { why, done, all, left });
            }
        }
    }
    let (_, found) = chunk(&mut link, address, key, 0).await?;
    if found == header { Ok(()) } else { Err(TransferError::Differs { key: key.to_owned() }) }
}

/// Removes a key that this load made, on the link if that still works.
async fn remove(link: Option<Link>, address: &RedisAddress, key: String) -> PartialLoadError {
    let mut unlink = cmd("UNLINK");
    unlink.arg(&key);
    if let Some(mut link) = link
        && link.call(&unlink).await.is_ok()
    {
        return PartialLoadError::Nothing(key);
    }
    let again = async {
        let mut link = connect(address, Timeouts::default()).await?;
        link.call(&unlink).await
    };
    if again.await.is_ok() { PartialLoadError::Nothing(key) } else { PartialLoadError::Key(key) }
}

/// Returns true if the server may have executed the command in spite of the error.
fn is_unknown(trouble: &LinkError) -> bool {
    matches!(trouble, LinkError::LostConnection { .. } | LinkError::Garbled { .. })
}

async fn type_of(link: &mut Link, key: &str) -> Result<String, LinkError> {
    let value = link.call(cmd("TYPE").arg(key)).await?;
    String::from_redis_value(value).map_err(|_| strange("TYPE"))
}

/// Returns the reply to `BF.SCANDUMP`.
async fn chunk(
    link: &mut Link,
    address: &RedisAddress,
    key: &str,
    iterator: i64,
) -> Result<(i64, Vec<u8>), TransferError> {
    let reply = link.call(cmd(SCANDUMP).arg(key).arg(iterator)).await;
    let reply = reply.map_err(|trouble| named(trouble, address, SCANDUMP))?;
    let Value::Array(parts) = reply else { return Err(strange(SCANDUMP).into()) };
    let Ok([Value::Int(next), data]) = <[Value; 2]>::try_from(parts) else {
        return Err(strange(SCANDUMP).into());
    };
    match data {
        Value::BulkString(data) => Ok((next, data)),
        Value::Nil => Ok((next, Vec::new())),
        _ => Err(strange(SCANDUMP).into()),
    }
}

/// Turns an unknown command into the error that the module is missing.
fn named(trouble: LinkError, address: &RedisAddress, command: &'static str) -> TransferError {
    match trouble {
        LinkError::UnknownCommand { .. } => {
            TransferError::NoModule { address: address.to_string(), command }
        }
        other => other.into(),
    }
}

fn strange(command: &str) -> LinkError {
    LinkError::Garbled { cause: format!("the answer to {command} is none") }
}
