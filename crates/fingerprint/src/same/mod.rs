//! Rules by which different URLs are the same: they change the URL that is hashed for a
//! fingerprint, and nothing else.
//!
//! Rules apply to canonical URLs with the schemes `http` and `https`. The result is canonical, too.
//! All rules for a URL act together: a parameter goes if one of them removes it, and a difference
//! is ignored if one of them folds it. If other rules are for the changed URL, these act as well,
//! together with the earlier ones. So rules are idempotent, and their order does not matter.

mod fold;
mod names;
mod sessions;
#[cfg(test)]
mod tests;
mod text;

pub use fold::Fold;
pub use names::{TrackingList, param_name};
pub use sessions::SessionList;
pub use text::SameRulesError;

use std::sync::Arc;

use super::ByPages;
use super::rule_pages::{Page, Pages, Pattern};
use fold::{Cut, Folds};
use names::Names;
use text::{MOST, RuleText};

/// Rule by which different URLs of some pages are the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SameRule {
    /// Text that the rule was read from.
    text: RuleText,
    pages: Pages,
    drop_params: Option<Names>,
    keep_params: Option<Names>,
    ignore_values: Option<Names>,
    /// Pattern of the session parameters that are removed.
    sessions: Option<Pattern>,
    folds: Folds,
}

impl SameRule {
    /// Returns true if the rule leaves all URLs as they are.
    fn does_nothing(&self) -> bool {
        let lists = [&self.drop_params, &self.keep_params, &self.ignore_values];
        let changes_params = self.sessions.is_some() || lists.into_iter().any(Option::is_some);
        !changes_params && !self.text.keep_fragments && self.folds.is_empty()
    }

    /// Returns true if the rule removes a field of a query.
    fn removes(&self, field: &str) -> bool {
        self.drop_params.as_ref().is_some_and(|names| names.have(field))
            || self.keep_params.as_ref().is_some_and(|names| !names.have(field))
            || self.is_session(field)
    }

    /// Returns true if the rule removes a field, or a parameter of a path, as a session id.
    fn is_session(&self, field: &str) -> bool {
        self.sessions.as_ref().is_some_and(|list| list.0.is_match(field))
    }

    /// Returns true if the rule removes the value of a field.
    fn ignores_value(&self, field: &str) -> bool {
        self.ignore_values.as_ref().is_some_and(|names| names.have(field))
    }

    /// Describes the effect on the parameters of a URL.
    fn words(&self) -> &'static str {
        let names = self.drop_params.is_some() || self.keep_params.is_some();
        match (names, self.ignore_values.is_some(), self.sessions.is_some()) {
            (true, false, false) => "parameters of the query are dropped",
            (false, true, false) => "values of parameters are dropped",
            (false, false, true) => "session parameters are dropped",
            _ => "parameters or their values are dropped",
        }
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

    /// Returns true if a rule keeps the fragments of its pages.
    pub(super) fn keep_fragments(&self) -> bool {
        self.0.iter().any(|rule| rule.text.keep_fragments)
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
    /// Effect of the change, in words.
    pub words: &'static str,
    /// URL before the change.
    pub before: String,
    /// URL after the change, which is canonical too.
    pub after: String,
}

impl Merger {
    /// Makes a merger. Returns `None` if there is nothing to change.
    pub(super) fn new(list: TrackingList, rules: &SameRules) -> Option<Box<Self>> {
        let (own, mut rules) = (rules.0.len(), rules.0.to_vec());
        let drop_params = Names::new(list.names()).expect("the lists are within the bounds");
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
            let rules = acting_rules(&self.rules, acting).map(|(_, rule)| rule);
            let folds = rules.clone().fold(Folds::default(), |all, rule| all.union(rule.folds));
            let has_params = !cut.query.is_empty() || cut.path.contains(';');
            if folds.is_empty() && !has_params {
                return;
            }
            cut.write(folds, &rules, &mut self.spare);
            if *url == self.spare {
                return;
            }
            std::mem::swap(url, &mut self.spare);
        }
    }

    /// Returns true if a rule keeps the fragment of a canonical URL, which is given without it. The
    /// rule must be for the changed URL, so that the fragment stays when this is changed again.
    pub(super) fn keeps_fragment(&mut self, url: &str) -> bool {
        let (mut url, mut acting) = (url.to_owned(), 0);
        self.apply(&mut url);
        self.find(&mut acting, &url);
        let mut rules = acting_rules(&self.rules, acting);
        Cut::of(&url).is_some() && rules.any(|(_, rule)| rule.text.keep_fragments)
    }

    /// Returns the changes to a canonical URL, in order.
    pub(super) fn trace(&mut self, url: &str) -> Vec<SameStep> {
        let (mut acting, mut url, mut steps) = (0, url.to_owned(), Vec::new());
        while self.find(&mut acting, &url) {
            let before = url.clone();
            let Some(cut) = Cut::of(&before) else { return steps };
            let rules: Vec<_> = acting_rules(&self.rules, acting).collect();
            let mut step = |rule, words, folds, removing: &[(usize, &SameRule)]| {
                let mut after = String::new();
                cut.write(folds, &removing.iter().map(|(_, rule)| *rule), &mut after);
                if after != url {
                    let rule = Some(rule).filter(|&rule| rule < self.own);
                    let before = std::mem::replace(&mut url, after.clone());
                    steps.push(SameStep { rule, words, before, after });
                }
            };
            let mut folds = Folds::default();
            for fold in Fold::all() {
                let Some((rule, _)) = rules.iter().find(|(_, rule)| rule.folds.have(fold)) else {
                    continue;
                };
                folds = folds.with(fold);
                step(*rule, fold.words(), folds, &[]);
            }
            for (count, (number, rule)) in (1..).zip(&rules) {
                step(*number, rule.words(), folds, &rules[..count]);
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
}

/// Iterates over the rules that act, with their numbers.
fn acting_rules(
    rules: &[SameRule],
    acting: RuleSet,
) -> impl Iterator<Item = (usize, &SameRule)> + Clone {
    rules.iter().enumerate().filter(move |(number, _)| acting >> number & 1 == 1)
}
