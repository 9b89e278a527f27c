//! Rules of `[[expire]]`, which let URLs of some pages pass again earlier than others, or never.

use std::time::Duration;

use super::problem::ValueOrigin;
use super::rules::Table;
use urlseen_core::filter::expire_after::{ExpireAfter, shown};
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::fingerprint::pages::Pages;

/// Rule with the time after which the URLs of some pages pass again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRule {
    /// Pages whose URLs have this time.
    pub(crate) pages: Pages,
    /// Time after which their URLs pass again; `None` for never.
    after: Option<Duration>,
    /// Place of the rule in the file.
    pub(super) origin: ValueOrigin,
}

impl ExpireRule {
    /// Reads a rule of `[[expire]]`.
    ///
    /// # Errors
    /// Returns the reason why the rule is refused.
    pub(super) fn read(table: &Table, pages: Pages) -> Result<Self, String> {
        let after = match table.text("expire_after") {
            Some("never") => Some(None),
            text => text.and_then(|text| humantime::parse_duration(text).ok()).map(Some),
        };
        let is_whole = |time: Duration| time.subsec_nanos() == 0 && !time.is_zero();
        let after = after.filter(|after| after.is_none_or(is_whole)).ok_or(
            "has no time in whole seconds, as in expire_after = \"1d\" or expire_after = \"never\"",
        )?;
        Ok(Self { pages, after, origin: table.origin.clone() })
    }

    /// Returns the lifetime of the fingerprints of these pages in a filter with this
    /// `expire_after`.
    pub(crate) fn lifetime(&self, expire_after: ExpireAfter) -> Lifetime {
        self.after.map_or(Lifetime::FOREVER, |after| Lifetime::at_least(after, expire_after))
    }

    /// Returns the reason if a filter with this `expire_after` cannot keep the rule's time.
    pub(super) fn problem(&self, expire_after: Option<ExpireAfter>) -> Option<String> {
        let Some(expire_after) = expire_after else {
            return Some("needs filter.expire_after, which is not set".to_owned());
        };
        let (after, shortest) = (self.after?, expire_after.step());
        let is_allowed = (shortest..=expire_after.time()).contains(&after);
        (!is_allowed).then(|| {
            format!(
                "has expire_after = {:?}, and filter.expire_after is {:?}; allowed: \"never\", or \
                 a fifth of filter.expire_after to all of it, {:?} to {:?}",
                shown(after),
                expire_after.to_string(),
                shown(shortest),
                expire_after.to_string(),
            )
        })
    }
}
