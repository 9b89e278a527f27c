//! Content of a request, common to all forms of an item.

use std::borrow::Cow;

use super::Unreadable;
use super::ttl::Ttl;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::Request;

/// Request that an item describes, with a URL, a fingerprint, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemRequest<'a> {
    pub(super) url: Option<Cow<'a, str>>,
    pub(super) method: Cow<'a, str>,
    pub(super) body: Cow<'a, [u8]>,
    pub(super) verbatim_url: bool,
    /// Fingerprint that the producer gave. It replaces a computed fingerprint.
    pub fingerprint: Option<Fingerprint>,
    pub(super) dont_filter: bool,
    pub(super) priority: Priority,
    /// Time after which the item is to pass again.
    pub(super) ttl: Ttl<'a>,
}

/// Priority of a request; consumers get the highest priority first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Priority {
    Number(f64),
    /// Description of a value that is not a number.
    Wrong(&'static str),
}

impl Default for Priority {
    fn default() -> Self {
        Self::Number(0.0)
    }
}

/// Reads a fingerprint that a producer gave as text. White space around hex digits, `0x` before
/// them and upper case make no difference. Other text stays as it is.
#[inline]
pub(super) fn given(text: &[u8]) -> Fingerprint {
    Fingerprint::from_hex(text).unwrap_or_else(|| {
        let trimmed = text.trim_ascii();
        let digits = trimmed.strip_prefix(b"0x").or(trimmed.strip_prefix(b"0X"));
        let digits = digits.unwrap_or(trimmed).to_ascii_lowercase();
        Fingerprint::from_text(if is_hex(&digits) { &digits } else { text })
    })
}

/// Returns true if text consists of the hex digits of whole bytes.
fn is_hex(text: &[u8]) -> bool {
    text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit)
}

impl ItemRequest<'_> {
    /// Returns true if the producer gave a fingerprint that is no digest.
    #[inline]
    pub(super) fn has_odd_fingerprint(&self) -> bool {
        matches!(&self.fingerprint, Some(Fingerprint::Text(text)) if !is_hex(text))
    }

    /// Returns the request for the computation of a fingerprint; `None` if the item has no URL. An
    /// item without a URL has a [`fingerprint`](Self::fingerprint).
    pub fn request(&self) -> Option<Request<'_>> {
        self.url.as_deref().map(|url| Request {
            method: &self.method,
            url,
            body: &self.body,
            verbatim_url: self.verbatim_url,
        })
    }
}

impl Priority {
    /// Returns the score for a sorted set. Consumers pop the lowest score first, as scrapy-redis
    /// does.
    pub(super) fn score(self) -> Result<f64, Unreadable> {
        match self {
            // Avoids a score of -0.
            Self::Number(0.0) => Ok(0.0),
            Self::Number(number) if number.is_finite() => Ok(-number),
            Self::Number(_) => Err(Unreadable::Priority { found: "not finite" }),
            Self::Wrong(found) => Err(Unreadable::Priority { found }),
        }
    }
}
