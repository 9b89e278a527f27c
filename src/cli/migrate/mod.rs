//! Transfers of fingerprints from and to other projects. A filter of RedisBloom can be in a dump
//! file or on a server with the module RedisBloom. Its transfer needs memory for the filter and one
//! chunk. A set of scrapy-redis is on a Redis server. Its transfer needs memory for one page.

mod server;
pub(in crate::cli) mod set;

use std::any::Any;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use redis::cmd;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::{self, DumpError, DumpFormatError};
use urlseen_core::filter::{RedisBloomFilter, ShardId};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::storage::ShardReader;

use super::bar::Bar;

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

/// Reads the filter of RedisBloom in a storage folder.
pub(in crate::cli) fn of_folder(reader: &mut ShardReader) -> anyhow::Result<Filter> {
    let filter: Box<dyn Any> = reader.read(ShardId::WHOLE)?;
    let filter = filter.downcast::<RedisBloomFilter>().map_err(|_| {
        let kind = reader.header().spec().filter.kind().name();
        anyhow::anyhow!("the filter has the kind {kind}, not redisbloom")
    })?;
    Ok(filter.into_filter()?)
}

/// Reads a filter from the file at `path`. Refuses a filter whose layers take more than `limit`
/// bytes.
pub(in crate::cli) fn read(path: &Path, limit: u64, bar: &Bar) -> anyhow::Result<Filter> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    // A pipe reports the length 0, so the bar shows no total.
    let all = file.metadata().with_context(name)?.len();
    dump::read(&mut bar.reading(file, all), limit).map_err(|problem| match problem {
        DumpError { problem: DumpFormatError::Io(error), .. } => anyhow!(error).context(name()),
        problem => anyhow!("{}, {problem}", path.display()),
    })
}

/// Writes a filter to a new file at `path`, and syncs the file. Removes the file after a failure.
pub(in crate::cli) fn write(path: &Path, filter: &Filter, bar: &Bar) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(path).with_context(name)?;
    let mut writer = BufWriter::new(bar.writing(&file, dump::len(filter)));
    let written = dump::write(filter, &mut writer).and_then(|()| writer.flush());
    let written = written.and_then(|()| file.sync_all()).inspect_err(|_| {
        // This function has created the file. The caller gets the first error, so an error of the
        // removal is ignored.
        let _ = std::fs::remove_file(path);
    });
    written.with_context(name)
}
