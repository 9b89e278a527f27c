//! Transfers of fingerprints from and to other projects: filters of RedisBloom, in dump files and
//! on servers with the module, and sets of scrapy-redis. A transfer needs memory for the filter and
//! one chunk, or for one page of a set.

mod file;
mod server;
pub(in crate::cli) mod set;

use anyhow::bail;
use redis::cmd;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

pub(in crate::cli) use file::{read, write};
pub(in crate::cli) use server::{TYPE, dump, load};

/// Returns the type of a key, as the command `TYPE` names it.
pub(in crate::cli) async fn type_of(link: &mut Link, key: &str) -> Result<String, LinkError> {
    Ok(cmd("TYPE").arg(key).query_async(link).await?)
}

/// Connects to the server of a key, which must be of the type `wanted`.
async fn open(address: &RedisAddress, key: &str, wanted: &str, what: &str) -> anyhow::Result<Link> {
    let mut link = connect(address, Timeouts::default()).await?;
    match type_of(&mut link, key).await?.as_str() {
        found if found == wanted => Ok(link),
        "none" => {
            bail!("there is no key {key} at {address}; check redis.url and the database in it")
        }
        found => {
            bail!("the key {key} holds a {found}, and {what} was expected: use another key")
        }
    }
}
