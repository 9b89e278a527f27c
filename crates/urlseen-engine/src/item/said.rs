//! Content of a request, common to all forms of an item.

use std::borrow::Cow;

use super::Unreadable;
use super::ttl::Ttl;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::request::Request;

/// Request that an item describes, with a URL, a fingerprint, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Said<'a> {
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

impl Said<'_> {
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
