//! Rules by which different URLs are the same: they change the URL that is hashed for a
//! fingerprint, and nothing else.
//!
//! Rules apply to canonical URLs with the schemes `http` and `https`. The result is canonical, too.
//! All rules for a URL act together: a parameter goes if one of them removes it, and a difference
//! is ignored if one of them folds it. If other rules are for the changed URL, these act as well,
//! together with the earlier ones. So rules are idempotent, and their order does not matter.

mod fold;
mod merger;
mod names;
#[cfg(test)]
mod tests;
mod text;
mod tracking;

pub use fold::Fold;
pub(super) use merger::Merger;
pub use merger::SameStep;
pub use names::param_name;
pub use text::SameRulesError;
pub use tracking::TrackingList;

use std::fmt;
use std::sync::Arc;

use super::pages::Pages;
use fold::Folds;
use names::Names;

/// Rule by which different URLs of some pages are the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SameRule {
    pages: Pages,
    drop_params: Option<Names>,
    keep_params: Option<Names>,
    folds: Folds,
}

impl SameRule {
    /// Makes a rule. `drop_params` names the parameters that it removes. If `keep_params` names
    /// any, the rule removes all others. `fold` has the names of folds.
    ///
    /// # Errors
    /// Returns the reason why the rule is refused.
    pub fn new(
        pages: Pages,
        drop_params: Vec<String>,
        keep_params: Vec<String>,
        fold: &[String],
    ) -> Result<Self, String> {
        let list = |key: &str, names| Names::new(names).map_err(|why| format!("{key} {why}"));
        let rule = Self {
            pages,
            drop_params: list("drop_params", drop_params)?,
            keep_params: list("keep_params", keep_params)?,
            folds: fold.iter().try_fold(Folds::default(), |folds, name| {
                let fold = name.parse::<Fold>();
                fold.map(|fold| folds.with(fold)).map_err(|error| format!("fold: {error}"))
            })?,
        };
        let does_nothing =
            rule.drop_params.is_none() && rule.keep_params.is_none() && rule.folds.is_empty();
        if does_nothing {
            return Err("changes nothing; give drop_params, keep_params or fold".to_owned());
        }
        Ok(rule)
    }

    /// Returns true if the rule removes a field of a query.
    fn removes(&self, field: &str) -> bool {
        self.drop_params.as_ref().is_some_and(|names| names.have(field))
            || self.keep_params.as_ref().is_some_and(|names| !names.have(field))
    }
}

/// All rules of a crawl by which different URLs are the same. Clones share them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SameRules(Arc<[SameRule]>);

impl SameRules {
    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the name of a rule in messages: its number from 1, and its patterns.
    pub fn name(&self, number: usize) -> String {
        let pages = self.0.get(number).map(|rule| rule.pages.to_string()).unwrap_or_default();
        let pages = if pages.is_empty() { pages } else { format!(": {pages}") };
        format!("[[same]] {}{pages}", number + 1)
    }
}

impl fmt::Debug for SameRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
