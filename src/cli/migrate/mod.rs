//! Transfers of fingerprints from and to other projects. A filter of RedisBloom can be in a dump
//! file or on a server with the module RedisBloom. Its transfer needs memory for the filter and one
//! chunk. A set of scrapy-redis is on a Redis server. Its transfer needs memory for one page.

mod server;
pub(in crate::cli) use server::{TYPE, dump, load};

use std::any::Any;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use redis::cmd;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::{self, DumpError, DumpFormatError};
use urlseen_core::filter::{RedisBloomFilter, ShardId};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::storage::ShardReader;

use super::bar::Bar;

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

/// Number of members that one command reads or adds. During the command, Redis serves no other
/// client.
const COUNT: u64 = 10_000;

/// Form of the fingerprints in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum SetForm {
    /// A line of hex digits for each fingerprint.
    Hex,
    /// The file `requests.seen` of Scrapy 2.19. For each fingerprint, it has the length of the
    /// digest in two bytes (big endian), and then the digest.
    RequestsSeen,
}

/// Counts of a set's members: exported, and skipped because they are not fingerprints.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Written {
    /// Number of written fingerprints. If the set changes during the export, some can be written
    /// twice.
    pub(in crate::cli) fingerprints: u64,
    /// Number of members that are not fingerprints.
    pub(in crate::cli) bad: u64,
}

/// Writes all members of a set. The set is only read, and other clients may use it meanwhile.
///
/// # Errors
/// Fails if Redis or the output fails, or if the key is not a set.
pub(in crate::cli) async fn members(
    address: &RedisAddress,
    key: &str,
    form: SetForm,
    output: &mut dyn Write,
    bar: &Bar,
) -> anyhow::Result<Written> {
    let mut link = open(address, key, "set", "a set").await?;
    let size = cmd("SCARD").arg(key).query_async(&mut link).await.map_err(LinkError::from)?;
    let (mut written, mut cursor) = (Written::default(), 0);
    loop {
        link.send(cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(COUNT));
        let strange = || LinkError::Garbled { cause: "the answer to SSCAN is invalid".to_owned() };
        let page = link.receive().await?.into_page().ok_or_else(strange)?;
        for member in page.members {
            match Fingerprint::from_hex(&page.bytes[member]) {
                Some(fingerprint) => {
                    write_fingerprint(output, form, &fingerprint)?;
                    written.fingerprints += 1;
                }
                None => written.bad += 1,
            }
        }
        bar.show(written.fingerprints + written.bad, size);
        cursor = page.cursor;
        if cursor == 0 {
            output.flush()?;
            return Ok(written);
        }
    }
}

/// Set to which a command adds fingerprints, one page at a time.
pub(in crate::cli) struct Filling {
    link: Link,
    key: String,
    page: Vec<String>,
    /// Number of fingerprints so far that were new to the set.
    added: u64,
}

impl Filling {
    /// Connects, and checks that the key is a set or does not exist.
    ///
    /// # Errors
    /// Fails if Redis fails, or if the key has another type.
    pub(in crate::cli) async fn begin(address: &RedisAddress, key: &str) -> anyhow::Result<Self> {
        let mut link = connect(&address.for_key(key), Timeouts::default()).await?;
        let found = type_of(&mut link, key).await?;
        if !["set", "none"].contains(&found.as_str()) {
            bail!("the key {key} holds a {found}, and a set was expected: use another key");
        }
        Ok(Self { link, key: key.to_owned(), page: Vec::new(), added: 0 })
    }

    /// Adds a fingerprint to the page. Returns true if the page is full. Then the caller must call
    /// [`Filling::flush`].
    pub(in crate::cli) fn push(&mut self, fingerprint: &Fingerprint) -> bool {
        self.page.push(fingerprint.to_string());
        self.page.len() as u64 == COUNT
    }

    /// Adds the page to the set. Returns the number of fingerprints so far that were new to the
    /// set.
    ///
    /// # Errors
    /// Redis fails. Earlier fingerprints stay in the set.
    pub(in crate::cli) async fn flush(&mut self) -> Result<u64, LinkError> {
        if !self.page.is_empty() {
            let mut add = cmd("SADD");
            add.arg(&self.key).arg(&self.page);
            self.added += add.query_async::<u64>(&mut self.link).await?;
            self.page.clear();
        }
        Ok(self.added)
    }
}

/// Writes a fingerprint to `output` in the given form.
///
/// # Errors
/// The output fails.
pub(in crate::cli) fn write_fingerprint(
    output: &mut dyn Write,
    form: SetForm,
    fingerprint: &Fingerprint,
) -> io::Result<()> {
    match form {
        SetForm::Hex => writeln!(output, "{fingerprint}"),
        SetForm::RequestsSeen => {
            let bytes = fingerprint.as_bytes();
            let length = u16::try_from(bytes.len()).expect("a digest is short");
            output.write_all(&length.to_be_bytes())?;
            output.write_all(bytes)
        }
    }
}
