//! Content of a request, common to all forms of an item.

use std::borrow::Cow;

use super::Unreadable;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::request::Request;

/// Request as an item states it. It has a URL or a fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub struct Said<'a> {
    pub(super) url: Option<Cow<'a, str>>,
    pub(super) method: Cow<'a, str>,
    pub(super) body: Cow<'a, [u8]>,
    pub(super) verbatim_url: bool,
    /// Fingerprint that the producer gave. It replaces a computed one.
    pub fingerprint: Option<Fingerprint>,
    pub(super) dont_filter: bool,
    pub(super) priority: Priority,
}

/// Urgency of a request; the highest comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Priority {
    Number(f64),
    /// Value that is not a number, with its description.
    Wrong(&'static str),
}

impl Default for Priority {
    fn default() -> Self {
        Self::Number(0.0)
    }
}

impl Said<'_> {
    /// Request from which a fingerprint is computed. Without a URL it is `None`, and there is a
    /// [`fingerprint`](Self::fingerprint).
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
    /// Score in a sorted set that is popped at its low end, as in scrapy-redis.
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
