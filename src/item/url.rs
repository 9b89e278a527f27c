//! A bare URL: a GET of it, without a body.

use std::borrow::Cow;

use super::{Identity, Item, Unreadable, utf8};
use crate::fingerprint::Fingerprinter;
use crate::request::Request;

pub(super) fn read<'a>(
    bytes: &'a [u8],
    fingerprinter: &mut Fingerprinter,
) -> Result<Item<'a>, Unreadable> {
    let url = utf8(bytes)?;
    let fingerprint = fingerprinter.fingerprint(&Request::get(url))?;
    Ok(Item { identity: Identity::Fingerprint(fingerprint), url: Some(Cow::Borrowed(url)) })
}
