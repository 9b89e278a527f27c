//! Rules by which different URLs are the same: they change the URL that is hashed for a
//! fingerprint, and nothing else.
//!
//! Rules apply to canonical URLs with the schemes `http` and `https`. The result is canonical, too.
//! All rules for a URL act together: a parameter goes if one of them removes it, and a difference
//! is ignored if one of them folds it. If other rules are for the changed URL, these act as well,
//! together with the earlier ones. So rules are idempotent, and their order does not matter.

mod fold;
mod names;
#[cfg(test)]
mod tests;
mod text;

pub use fold::Fold;
pub use names::{TrackingList, param_name};
pub use text::SameRulesError;

use std::sync::Arc;

use super::ByPages;
use super::rule_pages::{Page, Pages};
use fold::{Cut, Folds};
use names::Names;
use text::MOST;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// Set of rules, by their numbers.
type RuleSet = u128;
const _: () = assert!(MOST < RuleSet::BITS as usize, "one more for the tracking list");

/// Changes canonical URLs so that the same URLs become equal. Each thread has its own, because two
/// threads cannot share the memory of a pattern.
#[derive(Debug, Clone)]
pub(super) struct Merger {
    /// Rules of the crawl; the last one can be that of the tracking list.
    rules: Vec<SameRule>,
    pages: ByPages,
    /// Rules without patterns, which are for all pages.
    everywhere: RuleSet,
    /// Number of rules of the crawl.
    own: usize,
    spare: String,
}

/// Change to a URL by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameStep {
    /// Number of the rule in the crawl, from 0; `None` for the list of tracking parameters.
    pub rule: Option<usize>,
    /// Difference that was folded; `None` if parameters were removed.
    pub fold: Option<Fold>,
    /// URL before the change.
    pub before: String,
    /// URL after the change, which is canonical too.
    pub after: String,
}

impl Merger {
    /// Makes a merger. Returns `None` if there is nothing to change.
    pub(super) fn new(list: TrackingList, rules: &SameRules) -> Option<Box<Self>> {
        let (own, mut rules) = (rules.0.len(), rules.0.to_vec());
        let names = list.names().iter().map(ToString::to_string).collect();
        let drop_params = Names::new(names).expect("the lists are within the bounds");
        if drop_params.is_some() {
            rules.push(SameRule { drop_params, ..SameRule::default() });
        }
        let pages = ByPages::new(rules.iter().map(|rule| &rule.pages));
        let is_everywhere = |rule: &SameRule| rule.pages == Pages::default();
        let everywhere = (0..rules.len()).filter(|&number| is_everywhere(&rules[number]));
        let everywhere = everywhere.fold(0, |set, number| set | 1 << number);
        let is_needed = !rules.is_empty();
        is_needed.then(|| Box::new(Self { rules, pages, everywhere, own, spare: String::new() }))
    }

    /// Changes a canonical URL.
    pub(super) fn apply(&mut self, url: &mut String) {
        let mut acting = 0;
        while self.find(&mut acting, url) {
            let Some(cut) = Cut::of(url) else { return };
            let (folds, keeps) = Self::effect(&self.rules, acting);
            if folds.is_empty() && cut.query.is_empty() {
                return;
            }
            cut.write(folds, keeps, &mut self.spare);
            if *url == self.spare {
                return;
            }
            std::mem::swap(url, &mut self.spare);
        }
    }

    /// Returns the changes to a canonical URL, in order.
    pub(super) fn trace(&mut self, url: &str) -> Vec<SameStep> {
        let (mut acting, mut url, mut steps) = (0, url.to_owned(), Vec::new());
        while self.find(&mut acting, &url) {
            let before = url.clone();
            let Some(cut) = Cut::of(&before) else { return steps };
            let rules: Vec<_> = acting_rules(&self.rules, acting).collect();
            let mut step = |rule, fold, folds, removing: &[(usize, &SameRule)]| {
                let mut after = String::new();
                let keeps = |field: &str| !removing.iter().any(|(_, rule)| rule.removes(field));
                cut.write(folds, keeps, &mut after);
                if after != url {
                    let rule = Some(rule).filter(|&rule| rule < self.own);
                    let before = std::mem::replace(&mut url, after.clone());
                    steps.push(SameStep { rule, fold, before, after });
                }
            };
            let mut folds = Folds::default();
            for fold in Fold::ALL {
                let Some((rule, _)) = rules.iter().find(|(_, rule)| rule.folds.have(fold)) else {
                    continue;
                };
                folds = folds.with(fold);
                step(*rule, Some(fold), folds, &[]);
            }
            for (count, (rule, _)) in (1..).zip(&rules) {
                step(*rule, None, folds, &rules[..count]);
            }
        }
        steps
    }

    /// Adds the rules for a URL to those that act. Returns true if there are more than before.
    fn find(&mut self, acting: &mut RuleSet, url: &str) -> bool {
        let before = *acting;
        *acting |= self.everywhere;
        if self.everywhere.count_ones() as usize != self.rules.len() && !self.pages.is_foreign(url)
        {
            for number in self.pages.matching(&Page::of(url)) {
                *acting |= 1 << number;
            }
        }
        *acting != before
    }

    /// Returns what the acting rules fold, and which fields of the query they keep.
    fn effect(rules: &[SameRule], acting: RuleSet) -> (Folds, impl Fn(&str) -> bool + '_) {
        let rules = acting_rules(rules, acting).map(|(_, rule)| rule);
        let folds = rules.clone().fold(Folds::default(), |folds, rule| folds.union(rule.folds));
        (folds, move |field: &str| !rules.clone().any(|rule| rule.removes(field)))
    }
}

/// Iterates over the rules that act, with their numbers.
fn acting_rules(
    rules: &[SameRule],
    acting: RuleSet,
) -> impl Iterator<Item = (usize, &SameRule)> + Clone {
    rules.iter().enumerate().filter(move |(number, _)| acting >> number & 1 == 1)
}
