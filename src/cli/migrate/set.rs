//! Export of a set of scrapy-redis to a file, and additions from an archive to such a set.

use std::io::{self, Write};

use anyhow::bail;
use redis::cmd;

use super::super::bar::Bar;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

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
    let mut link = super::open(address, key, "set", "a set").await?;
    let size = cmd("SCARD").arg(key).query_async(&mut link).await.map_err(LinkError::from)?;
    let (mut written, mut cursor) = (Written::default(), 0);
    loop {
        link.send(cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(COUNT));
        let strange = || LinkError::Garbled { cause: "the answer to SSCAN is invalid".to_owned() };
        let page = link.receive().await?.into_page().ok_or_else(strange)?;
        for member in page.members {
            match Fingerprint::from_hex(&page.bytes[member]) {
                Some(fingerprint) => {
                    write(output, form, &fingerprint)?;
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
        let found = super::type_of(&mut link, key).await?;
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
pub(in crate::cli) fn write(
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
