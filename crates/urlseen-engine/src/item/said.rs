//! What an item says of the request that it stands for, in whatever form.

use std::borrow::Cow;

use super::Unreadable;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::request::Request;

/// A request as an item has it. There is a URL or a fingerprint.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) url: Option<Cow<'a, str>>,
    pub(super) method: Cow<'a, str>,
    pub(super) body: Cow<'a, [u8]>,
    pub(super) verbatim_url: bool,
    /// The one that the producer gave; it goes before a computed one.
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) dont_filter: bool,
    pub(super) priority: Priority,
}

/// How urgent a request is; the higher, the sooner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Priority {
    Number(f64),
    /// It is something else: this.
    Wrong(&'static str),
}

impl Default for Priority {
    fn default() -> Self {
        Self::Number(0.0)
    }
}

impl Said<'_> {
    /// What to compute a fingerprint from.
    pub(super) fn request(&self) -> Option<Request<'_>> {
        self.url.as_deref().map(|url| Request {
            method: &self.method,
            url,
            body: &self.body,
            verbatim_url: self.verbatim_url,
        })
    }
}

impl Priority {
    /// The score in a sorted set that is taken from at its low end, as scrapy-redis has it.
    pub(super) fn score(self) -> Result<f64, Unreadable> {
        match self {
            // Not -0.
            Self::Number(0.0) => Ok(0.0),
            Self::Number(number) if number.is_finite() => Ok(-number),
            Self::Number(_) => Err(Unreadable::Priority { found: "not finite" }),
            Self::Wrong(found) => Err(Unreadable::Priority { found }),
        }
    }
}
