//! A set of scrapy-redis: its fingerprints, as files that others read.

use std::io::{self, Write};

use redis::cmd;

use super::{Progress, TransferError};
use crate::config::RedisAddress;
use crate::fingerprint::Fingerprint;
use crate::redis::connect::{Timeouts, connect};
use crate::redis::trouble::Trouble;

/// About how many members Redis looks at before it serves somebody else.
const COUNT: u64 = 10_000;

/// How fingerprints stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line of hex digits each.
    Hex,
    /// As Scrapy 2.19 writes its `requests.seen`: two bytes of length, big endian, and the digest.
    RequestsSeen,
}

/// What was written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Fingerprints. One that the server moved meanwhile can be among them twice.
    pub fingerprints: u64,
    /// Members that are none.
    pub bad: u64,
}

/// Writes all members of a set. The set is only read, and may be worked with meanwhile.
///
/// # Errors
/// Redis fails, or the output; the key is no set.
pub async fn members(
    address: &RedisAddress,
    key: &str,
    form: Form,
    output: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Written, TransferError> {
    let mut link = connect(address, Timeouts::default()).await?;
    let found: String = cmd("TYPE").arg(key).query_async(&mut link).await.map_err(Trouble::from)?;
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
    let size: u64 = cmd("SCARD").arg(key).query_async(&mut link).await.map_err(Trouble::from)?;
    let (mut written, mut cursor) = (Written::default(), 0);
    loop {
        link.send(cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(COUNT));
        let strange = || Trouble::Garbled { cause: "the answer to SSCAN is no page".to_owned() };
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

fn write(output: &mut dyn Write, form: Form, fingerprint: &Fingerprint) -> io::Result<()> {
    match form {
        Form::Hex => writeln!(output, "{fingerprint}"),
        Form::RequestsSeen => {
            let bytes = fingerprint.as_bytes();
            let length = u16::try_from(bytes.len()).expect("a digest is short");
            output.write_all(&length.to_be_bytes())?;
            output.write_all(bytes)
        }
    }
}
