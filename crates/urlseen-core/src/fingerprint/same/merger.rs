//! Application of rules to canonical URLs.

use super::fold::{Cut, Fold, Folds};
use super::names::Names;
use super::text::MOST;
use super::tracking::TrackingList;
use super::{SameRule, SameRules};
use crate::fingerprint::pages::{ByPages, Page};

/// Set of rules, by their numbers.
type RuleSet = u128;
const _: () = assert!(MOST < RuleSet::BITS as usize, "one more for the tracking list");

/// Changes canonical URLs so that the same URLs become equal. Each thread has its own, because two
/// threads cannot share the memory of a pattern.
#[derive(Debug)]
pub(in crate::fingerprint) struct Merger {
    /// Rules of the crawl; the last one can be that of the tracking list.
    rules: Vec<SameRule>,
    pages: ByPages,
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
    pub(in crate::fingerprint) fn new(list: TrackingList, rules: SameRules) -> Option<Box<Self>> {
        let (own, mut rules) = (rules.0.len(), rules.0.to_vec());
        let names = list.names().iter().map(ToString::to_string).collect();
        let drop_params = Names::new(names).expect("the lists are within the bounds");
        if drop_params.is_some() {
            rules.push(SameRule { drop_params, ..SameRule::default() });
        }
        let pages = ByPages::new(rules.iter().map(|rule| &rule.pages));
        let is_needed = !rules.is_empty();
        is_needed.then(|| Box::new(Self { rules, pages, own, spare: String::new() }))
    }

    /// Changes a canonical URL.
    pub(in crate::fingerprint) fn apply(&mut self, url: &mut String) {
        let mut acting = 0;
        while self.find(&mut acting, url) {
            let Some(cut) = Cut::of(url) else { return };
            let (folds, keeps) = Self::effect(&self.rules, acting);
            cut.write(folds, keeps, &mut self.spare);
            std::mem::swap(url, &mut self.spare);
        }
    }

    /// Returns the changes to a canonical URL, in order.
    pub(in crate::fingerprint) fn trace(&self, url: &str) -> Vec<SameStep> {
        let (mut acting, mut url, mut steps) = (0, url.to_owned(), Vec::new());
        while self.find(&mut acting, &url) {
            let before = url.clone();
            let Some(cut) = Cut::of(&before) else { return steps };
            let (folds, keeps) = Self::effect(&self.rules, acting);
            let mut step = |folds, fold, keeps: &dyn Fn(&str) -> bool| {
                let mut after = String::new();
                cut.write(folds, keeps, &mut after);
                if after != url {
                    let rule = self.cause(acting, fold, cut.query);
                    let before = std::mem::replace(&mut url, after.clone());
                    steps.push(SameStep { rule, fold, before, after });
                }
            };
            let mut done = Folds::default();
            for fold in folds.iter() {
                done = done.with(fold);
                step(done, Some(fold), &|_| true);
            }
            step(folds, None, &keeps);
        }
        steps
    }

    /// Adds the rules for a URL to those that act. Returns true if there are more than before.
    fn find(&self, acting: &mut RuleSet, url: &str) -> bool {
        let before = *acting;
        for number in self.pages.matching(&Page::of(url)) {
            *acting |= 1 << number;
        }
        *acting != before
    }

    /// Returns what the acting rules fold, and which fields of the query they keep.
    fn effect(rules: &[SameRule], acting: RuleSet) -> (Folds, impl Fn(&str) -> bool + '_) {
        let acting = rules.iter().enumerate().filter(move |(number, _)| acting >> number & 1 == 1);
        let acting = acting.map(|(_, rule)| rule);
        let folds = acting.clone().fold(Folds::default(), |folds, rule| folds.union(rule.folds));
        (folds, move |field: &str| !acting.clone().any(|rule| rule.removes(field)))
    }

    /// Returns the number of the first acting rule that folds a difference, or removes a parameter.
    fn cause(&self, acting: RuleSet, fold: Option<Fold>, query: &str) -> Option<usize> {
        let causes = |rule: &SameRule| match fold {
            Some(fold) => rule.folds.have(fold),
            None => query.split('&').any(|field| !field.is_empty() && rule.removes(field)),
        };
        let number =
            (0..self.own).find(|number| acting >> number & 1 == 1 && causes(&self.rules[*number]));
        number.filter(|&number| number < self.own)
    }
}
