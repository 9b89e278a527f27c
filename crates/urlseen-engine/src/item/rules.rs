//! Rules for some pages, which a reader applies to the items with their URLs.

use std::time::Duration;

use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::fingerprint::pages::Pages;

/// Rule that passes or drops the items of some pages. They are counted under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Pages that the rule is for.
    pub pages: Pages,
}

/// Rule with the time after which the URLs of some pages pass again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRule {
    /// Pages whose URLs have this time.
    pub pages: Pages,
    /// Time after which their URLs pass again; `None` for never.
    pub after: Option<Duration>,
}

impl ExpireRule {
    /// Returns the lifetime of the fingerprints of these pages in a filter with this
    /// `expire_after`.
    pub(crate) fn lifetime(&self, expire_after: ExpireAfter) -> Lifetime {
        self.after.map_or(Lifetime::FOREVER, |after| Lifetime::at_least(after, expire_after))
    }
}
