//! A set of scrapy-redis: its fingerprints, as files that others read.

use std::io::{self, Write};

use redis::{Cmd, cmd};

use super::{Progress, TransferError};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

/// About how many members Redis looks at before it serves somebody else.
const COUNT: u64 = 10_000;

/// How fingerprints stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetForm {
    /// A line of hex digits each.
    Hex,
    /// As Scrapy 2.19 writes its `requests.seen`: two bytes of length, big endian, and the digest.
    RequestsSeen,
}

/// What was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Fingerprints. One that the server moved meanwhile can be among them twice.
    pub(crate) fingerprints: u64,
    /// Members that are none.
    pub(crate) bad: u64,
}

/// Writes all members of a set. The set is only read, and may be worked with meanwhile.
///
/// # Errors
/// Redis fails, or the output; the key is no set.
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

/// A set that fingerprints are added to, a page at a time.
pub(crate) struct Filling {
    link: Link,
    key: String,
    page: Cmd,
    waiting: u64,
    /// What was added that the set did not have.
    added: u64,
}

impl Filling {
    /// Connects, and checks that the key is a set or none at all.
    ///
    /// # Errors
    /// Redis fails; the key is no set.
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

    /// Takes one more; `true` if a page is full, which [`Filling::flush`] then sends.
    pub(crate) fn push(&mut self, fingerprint: &Fingerprint) -> bool {
        self.page.arg(fingerprint.text(&mut [0; 64]));
        self.waiting += 1;
        self.waiting == COUNT
    }

    /// Adds what waits, and returns the number of fingerprints that the set did not have, so far.
    ///
    /// # Errors
    /// Redis fails. What was added before stays.
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

/// Writes a fingerprint as it stands in a file.
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
