//! Rules that would save a crawl requests, found in its links alone.
//!
//! A change to URLs, such as the removal of a parameter, is tried on all different links of a site.
//! It is suggested if most of the links become equal to others, and if nothing speaks for different
//! pages. A limit is suggested for groups of URLs that grow until the last link. The thresholds are
//! in the modules of the changes and of the growth.

mod draft;
mod facets;
mod growth;
mod param;
mod site;

use std::collections::{BTreeMap, HashSet};

use draft::RuleDraft;
use growth::SiteGrowth;
use serde::Serialize;
use site::{Changes, Endless, Site};
use urlseen_engine::item::OwnedRequest;
use urlseen_fingerprint::rule_pages::Page;
use urlseen_fingerprint::same::{SessionList, TrackingList, param_name};
use urlseen_fingerprint::{FingerprintSpec, Fingerprinter, Request};

use super::hash;

/// Maximum number of different links that are looked at. Further links are only counted.
const MOST_URLS: usize = 20_000_000;
/// Maximum number of examples of a rule.
const EXAMPLES: usize = 10;
/// Limit that is suggested for a group of URLs without an end.
const MAX: u64 = 100;
/// List of tracking parameters that is suggested.
const LIST: TrackingList = TrackingList::November2026;
/// List of session parameters that is suggested.
const SESSIONS: SessionList = SessionList::December2026;

/// Rules that would save requests.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestions {
    /// Number of links that were looked at.
    pub(crate) links: u64,
    /// Number of different URLs among them.
    pub(crate) urls: usize,
    /// Suggested rules, those that save the most requests first.
    pub(crate) rules: Vec<Suggestion>,
}

/// Rule that would save requests.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestion {
    /// Rule in the form of the configuration file.
    pub(crate) toml: String,
    /// Reason for the rule, in words.
    pub(crate) why: String,
    /// Number of different URLs that the rule changes, or that a limit counts.
    pub(crate) changes: u64,
    /// Number of requests that the rule saves, among the different URLs.
    pub(crate) saves: u64,
    /// URLs that the rule changes, each with the URL that it equals by the rule. For a limit, URLs
    /// that it counts.
    pub(crate) examples: Vec<Vec<String>>,
}

/// Searches links, whose fingerprints have this spec, for rules that would save requests.
pub(crate) fn suggest<E>(
    spec: FingerprintSpec,
    requests: impl Iterator<Item = Result<OwnedRequest, E>>,
) -> Result<Suggestions, E> {
    let (mut canonical, mut changes) = (Fingerprinter::new(spec), Changes::new(LIST, SESSIONS));
    let (mut sites, mut links, mut urls) = (BTreeMap::<String, Site>::new(), 0, 0);
    for request in requests {
        links += 1;
        // A link that has no fingerprint is only counted.
        let request = request?;
        let Ok(url) = canonical.hashed(&request.as_request()) else { continue };
        if !url.starts_with("http") || urls == MOST_URLS {
            continue;
        }
        let page = Page::of(url);
        let site = page.host().strip_prefix("www.").unwrap_or(page.host());
        if !sites.contains_key(site) {
            sites.insert(site.to_owned(), Site::default());
        }
        let site = sites.get_mut(site).expect("it was inserted");
        urls += usize::from(site.add(url, links, &mut changes));
    }
    let mut rules: Vec<_> = tracking(&sites).into_iter().collect();
    for (host, site) in &sites {
        rules.extend(of_site(host, site));
        rules.extend(site.facets(host).map(|(path, drop_params, trial)| {
            let why = format!("{path} combines {} freely", drop_params.join(", "));
            let draft = RuleDraft::same_page(host, path, drop_params);
            Suggestion::new(&draft, why, &[&trial])
        }));
        let endless = site.endless(links);
        rules.extend(endless.map(|(group, growth)| limit(host, group, growth)));
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.saves));
    Ok(Suggestions { links, urls, rules })
}

/// Suggests the list of tracking parameters, if some links have such parameters.
fn tracking(sites: &BTreeMap<String, Site>) -> Option<Suggestion> {
    let trials: Vec<_> = sites.values().map(|site| &site.tracking).collect();
    let why = "links have parameters of the list of tracking parameters".to_owned();
    let suggestion = Suggestion::new(&RuleDraft::Tracking(LIST), why, &trials);
    (suggestion.changes > 0).then_some(suggestion)
}

/// Suggests one rule for the whole site, if there is a reason for it.
fn of_site(host: &str, site: &Site) -> Option<Suggestion> {
    let (mut reasons, mut trials) = (Vec::new(), Vec::new());
    let (mut drop_params, mut fold) = (Vec::new(), Vec::new());
    for (name, param) in site.useless_params() {
        let (values, paths) = (param.values.len(), param.paths.len());
        reasons.push(format!("{name} has {values} values on {paths} paths"));
        drop_params.push(param_name(name).into_owned());
        trials.push(&param.trial);
    }
    let sessions = Some(&site.sessions).filter(|trial| trial.is_useful());
    if let Some(trial) = sessions {
        let (changed, saved) = (trial.changed, trial.saved());
        reasons.push(format!("without session ids, {saved} of {changed} URLs equal others"));
        trials.push(trial);
    }
    for (&name, trial) in site.folds.iter().filter(|(_, trial)| trial.is_useful()) {
        let (changed, saved) = (trial.changed, trial.saved());
        reasons.push(format!("{name} makes {saved} of {changed} URLs equal to others"));
        fold.push(name);
        trials.push(trial);
    }
    let draft = RuleDraft::same(host, drop_params, sessions.map(|_| SESSIONS), fold);
    (!trials.is_empty()).then(|| Suggestion::new(&draft, reasons.join("; "), &trials))
}

/// Suggests a limit for a group of URLs that seems to have no end.
fn limit(host: &str, group: &Endless, growth: &SiteGrowth) -> Suggestion {
    let Endless { pattern, parameter } = group;
    let urls = growth.urls();
    let what = parameter.as_ref().map_or_else(String::new, |name| format!("values of {name} at "));
    let draft = RuleDraft::limit(host, group, MAX);
    let examples = growth.examples.iter().filter(|url| !url.is_empty());
    Suggestion {
        toml: draft.toml(),
        why: format!("{what}{pattern} grow without end, {urls} so far"),
        changes: urls,
        saves: urls.saturating_sub(MAX),
        examples: examples.map(|url| vec![url.clone()]).collect(),
    }
}

impl Suggestion {
    fn new(draft: &RuleDraft, why: String, trials: &[&Trial]) -> Self {
        let mut fingerprinter = Fingerprinter::new(draft.spec());
        let mut same_as = |url: &String| {
            let hashed = fingerprinter.hashed(&Request::get(url)).map(str::to_owned);
            vec![url.clone(), hashed.unwrap_or_default()]
        };
        let examples = trials.iter().flat_map(|trial| &trial.examples);
        Self {
            toml: draft.toml(),
            why,
            changes: trials.iter().map(|trial| trial.changed).sum(),
            saves: trials.iter().map(|trial| trial.saved()).sum(),
            examples: examples.take(EXAMPLES).map(&mut same_as).collect(),
        }
    }
}

/// Maximum number of examples of a change.
const SHOWN: usize = 3;

/// Different URLs that a change would alter, and the results.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Number of different URLs that the change alters.
    pub(super) changed: u64,
    /// Different URLs that were tried, altered or not.
    urls: HashSet<u64>,
    results: HashSet<u64>,
    /// The first links with these URLs, as examples.
    pub(super) examples: Vec<String>,
}

impl Trial {
    /// Adds a URL, and the result of the change. Both may be simpler than the link itself.
    pub(super) fn add(&mut self, link: &str, url: &str, result: &str) {
        if !self.urls.insert(hash(url.as_bytes())) || url == result {
            return;
        }
        self.changed += 1;
        self.results.insert(hash(result.as_bytes()));
        if self.examples.len() < SHOWN {
            self.examples.push(link.to_owned());
        }
    }

    /// Returns the number of requests that the change would save, among these different URLs.
    pub(super) fn saved(&self) -> u64 {
        let present = self.results.intersection(&self.urls).count() as u64;
        self.changed + present - self.results.len() as u64
    }

    /// Returns true if most of the URLs would become equal to others, and not just a few.
    pub(super) fn is_useful(&self) -> bool {
        const LEAST: u64 = 10;
        let saved = self.saved();
        saved >= LEAST && 2 * saved >= self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_saves_urls_that_become_equal_to_each_other_or_to_an_unchanged_one() {
        let mut trial = Trial::default();
        for url in ["a?x=1", "a?x=2", "b?x=1", "a", "c?x=1", "c?x=2", "c?x=2", "a?x=1"] {
            trial.add(url, url, &url[..1]);
        }
        assert_eq!((trial.changed, trial.saved()), (5, 3));
        assert_eq!(trial.examples.len(), SHOWN);
    }
}
