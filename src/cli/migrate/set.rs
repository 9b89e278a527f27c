//! Sets of scrapy-redis, read into files and filled from an archive.

use std::io::{self, Write};

use redis::{Cmd, cmd};

use super::{Progress, TransferError};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

/// Members that one command reads or adds. Redis serves no other client meanwhile.
const COUNT: u64 = 10_000;

/// Form of the fingerprints in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetForm {
    /// A line of hex digits each.
    Hex,
    /// The `requests.seen` of Scrapy 2.19: two bytes of length, big endian, and the digest.
    RequestsSeen,
}

/// Counts of a set's members.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Fingerprints written. One that the server moved meanwhile can be among them twice.
    pub(crate) fingerprints: u64,
    /// Members that are not fingerprints.
    pub(crate) bad: u64,
}

/// Writes all members of a set. The set is only read, and other clients may use it meanwhile.
///
/// # Errors
/// Redis or the output fails; the key is not a set.
pub(crate) async fn members(
    address: &RedisAddress,
    key: &str,
    form: SetForm,
    output: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Written, TransferError> {
    let mut link = connect(address, Timeouts::default()).await?;
    let found: String =
        cmd("TYPE").arg(key).query_async(&mut link).await.map_err(LinkError::from)?;
    match found.as_str() {
        "set" => {}
        "none" => {
            let (key, address) = (key.to_owned(), address.to_string());
            return Err(TransferError::NoKey { key, address });
        }
        _ => {
            let key = key.to_owned();
            return Err(TransferError::OtherType { key, needed: "a set", found });
        }
    }
    let size: u64 = cmd("SCARD").arg(key).query_async(&mut link).await.map_err(LinkError::from)?;
    let (mut written, mut cursor) = (Written::default(), 0);
    loop {
        link.send(cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(COUNT));
        let strange = || LinkError::Garbled { cause: "the answer to SSCAN is no page".to_owned() };
        let page = link.receive().await?.into_page().ok_or_else(strange)?;
        for member in page.members {
            match Fingerprint::from_hex(&page.bytes[member]) {
                Some(fingerprint) => {
                    write(output, form, &fingerprint).map_err(TransferError::Output)?;
                    written.fingerprints += 1;
                }
                None => written.bad += 1,
            }
        }
        progress(written.fingerprints + written.bad, size);
        cursor = page.cursor;
        if cursor == 0 {
            output.flush().map_err(TransferError::Output)?;
            return Ok(written);
        }
    }
}

/// Set to which fingerprints are added, a page at a time.
pub(crate) struct Filling {
    link: Link,
    key: String,
    page: Cmd,
    waiting: u64,
    /// Fingerprints added that the set did not have.
    added: u64,
}

impl Filling {
    /// Connects, and checks that the key is a set or does not exist.
    ///
    /// # Errors
    /// Redis fails; the key has another type.
    pub(crate) async fn begin(address: &RedisAddress, key: &str) -> Result<Self, TransferError> {
        let mut link = connect(address, Timeouts::default()).await?;
        let found: String =
            cmd("TYPE").arg(key).query_async(&mut link).await.map_err(LinkError::from)?;
        if !["set", "none"].contains(&found.as_str()) {
            let key = key.to_owned();
            return Err(TransferError::OtherType { key, needed: "a set", found });
        }
        let key = key.to_owned();
        Ok(Self { link, page: page_of(&key), key, waiting: 0, added: 0 })
    }

    /// Takes one more fingerprint. Returns true if the page is full, and [`Filling::flush`] is due.
    pub(crate) fn push(&mut self, fingerprint: &Fingerprint) -> bool {
        self.page.arg(fingerprint.text(&mut [0; 64]));
        self.waiting += 1;
        self.waiting == COUNT
    }

    /// Adds the waiting fingerprints. Returns the number of all those added so far that the set did
    /// not have.
    ///
    /// # Errors
    /// Redis fails. Earlier fingerprints stay in the set.
    pub(crate) async fn flush(&mut self) -> Result<u64, TransferError> {
        if self.waiting > 0 {
            let page = std::mem::replace(&mut self.page, page_of(&self.key));
            let new: u64 = page.query_async(&mut self.link).await.map_err(LinkError::from)?;
            self.added += new;
            self.waiting = 0;
        }
        Ok(self.added)
    }
}

fn page_of(key: &str) -> Cmd {
    let mut page = cmd("SADD");
    page.arg(key);
    page
}

/// Writes a fingerprint in a form of files.
///
/// # Errors
/// The output fails.
pub(crate) fn write(
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
