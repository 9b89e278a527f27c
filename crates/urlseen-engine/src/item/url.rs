//! Bare URL, which stands for a GET request without a body.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::Unreadable;
use super::request::{ItemRequest, Priority};
use super::ttl::Ttl;
use urlseen_core::filter::item_form::MARK;

/// Bytes that no scheme of a URL contains. They show that an item is text of another kind. Each
/// entry has the bytes, their name and the advice.
const OTHERS: [(&[u8], &str, &str); 6] = [
    (b"[", "`[`", ", as in a list in JSON; give each request of the list as an item of its own"),
    (
        b"{",
        "`{`",
        ", as in a request in JSON; the item forms auto and json read JSON only if the item \
         begins with `{`",
    ),
    (b"\"", "`\"`", ", as in JSON or CSV; give the URL without quotes"),
    (b"(dp", "a pickle of protocol 0", "; write pickles of protocol 2 or later"),
    (b"}q", "a pickle of protocol 1", "; write pickles of protocol 2 or later"),
    (MARK, "a byte order mark (U+FEFF)", "; write the text as UTF-8 without one"),
];

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<ItemRequest<'_>, Unreadable> {
    Ok(ItemRequest {
        url: Some(Cow::Borrowed(text(bytes)?)),
        method: Cow::Borrowed("GET"),
        body: Cow::Borrowed(&[]),
        verbatim_url: false,
        fingerprint: None,
        dont_filter: false,
        priority: Priority::default(),
        ttl: Ttl::Nothing,
    })
}

/// Reads an item as a bare URL, and returns the URL unchanged.
///
/// # Errors
/// Returns an error if the item is not UTF-8, or if it is text of another kind with a URL in it.
/// Scrapy would accept such text as a URL.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, Unreadable> {
    if !bytes.starts_with(b"http") {
        check_scheme(bytes)?;
    }
    std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8 { offset: error.valid_up_to() })
}

/// Refuses an item that has text of another kind before its first colon.
#[cold]
fn check_scheme(bytes: &[u8]) -> Result<(), Unreadable> {
    let scheme = &bytes[..memchr(b':', bytes).unwrap_or(bytes.len())];
    match OTHERS.iter().find(|(other, ..)| memmem::find(scheme, other).is_some()) {
        Some((_, found, advice)) => Err(Unreadable::BeforeScheme { found, advice }),
        None => Ok(()),
    }
}
