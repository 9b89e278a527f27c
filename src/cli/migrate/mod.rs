//! Transfers of fingerprints from and to other projects. A filter of RedisBloom can be in a dump
//! file or on a server with the module RedisBloom. Its transfer needs memory for the filter and one
//! chunk. A set of scrapy-redis is on a Redis server. Its transfer needs memory for one page.

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

/// Connects to a server, and checks that the key exists there and has the type `wanted`.
async fn open(address: &RedisAddress, key: &str, wanted: &str, what: &str) -> anyhow::Result<Link> {
    let mut link = connect(&address.for_key(key), Timeouts::default()).await?;
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
