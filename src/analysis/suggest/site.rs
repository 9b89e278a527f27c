//! Links of one site: a host, with and without `www.`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use urlseen_filter::limit::pattern;
use urlseen_fingerprint::rule_pages::Page;
use urlseen_fingerprint::same::{Fold, SessionList, TrackingList};
use urlseen_fingerprint::{FingerprintSpec, Fingerprinter, Request};

use super::Trial;
use super::facets::{Facets, fields, name, with_query};
use super::growth::SiteGrowth;
use super::param::Param;
use crate::analysis::hash;

/// Maximum number of parameters of a site, and of paths that may have facets.
const MOST: usize = 1000;
/// Maximum number of groups of a site whose growth is watched.
const MOST_GROUPS: usize = 10_000;
/// Maximum length in bytes of the name of a parameter.
const LONGEST_NAME: usize = 100;

/// Changes that are tried on each URL. Each has its own fingerprinter.
pub(super) struct Changes {
    /// Folds, each with a fingerprinter that applies all other folds.
    folds: Vec<(Fold, Fingerprinter)>,
    all_folds: Fingerprinter,
    tracking: Fingerprinter,
    sessions: Fingerprinter,
}

impl Changes {
    pub(super) fn new(list: TrackingList, sessions: SessionList) -> Self {
        let all_but = |fold| folding(Fold::all().filter(|&it| Some(it) != fold));
        let spec = FingerprintSpec { drop_tracking: list, ..FingerprintSpec::default() };
        Self {
            folds: Fold::all().map(|fold| (fold, all_but(Some(fold)))).collect(),
            all_folds: all_but(None),
            tracking: Fingerprinter::new(spec),
            sessions: ruled(&json!([{ "drop_sessions": sessions.name() }])),
        }
    }
}

/// Returns a fingerprinter that applies folds to all URLs.
fn folding(folds: impl Iterator<Item = Fold>) -> Fingerprinter {
    let names: Vec<_> = folds.map(Fold::name).collect();
    ruled(&json!([{ "fold": names }]))
}

/// Returns a fingerprinter that applies these rules.
fn ruled(rules: &Value) -> Fingerprinter {
    let same = rules.to_string().parse().expect("the rules are valid");
    Fingerprinter::new(FingerprintSpec { same, ..FingerprintSpec::default() })
}

/// Returns a canonical URL as a fingerprinter changes it.
fn changed(fingerprinter: &mut Fingerprinter, url: &str) -> String {
    fingerprinter.hashed(&Request::get(url)).unwrap_or(url).to_owned()
}

/// Different URLs of a site, and the trials of all changes.
#[derive(Debug, Default)]
pub(super) struct Site {
    /// Hashes of the different URLs.
    urls: HashSet<u64>,
    /// Hashes of the URLs without their queries.
    pages: HashSet<u64>,
    /// Hashes of the patterns of the paths. A trap has many paths of one pattern.
    patterns: HashSet<u64>,
    pub(super) folds: BTreeMap<&'static str, Trial>,
    pub(super) tracking: Trial,
    /// Trial of the URLs without session ids.
    pub(super) sessions: Trial,
    params: BTreeMap<String, Param>,
    facets: BTreeMap<String, Facets>,
    /// Growth of the groups that may have no end.
    groups: BTreeMap<Endless, SiteGrowth>,
    /// Hashes of the values of parameters, each with its group.
    values: HashSet<u64>,
}

/// Group of URLs that may have no end: URLs with a pattern of paths, or the values of a parameter
/// at such URLs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endless {
    pub(super) pattern: String,
    pub(super) parameter: Option<String>,
}

impl Site {
    /// Adds a canonical URL, which came with the link of this number. Returns false if the URL was
    /// added before.
    pub(super) fn add(&mut self, url: &str, link: u64, changes: &mut Changes) -> bool {
        if !self.urls.insert(hash(url.as_bytes())) {
            return false;
        }
        let untracked = changed(&mut changes.tracking, url);
        self.tracking.add(url, url, &untracked);
        let plain = changed(&mut changes.sessions, &untracked);
        self.sessions.add(url, &untracked, &plain);
        let (page, query) = plain.split_once('?').unwrap_or((&plain, ""));
        let paths = pattern(Page::of(page).path());
        // Folds do not change the query. Without it, a session id does not hide equal pages.
        if self.pages.insert(hash(page.as_bytes())) {
            let folded = changed(&mut changes.all_folds, page);
            for (fold, others) in &mut changes.folds {
                let trial = self.folds.entry(fold.name()).or_default();
                trial.add(page, &changed(others, page), &folded);
            }
            if paths.contains('*') {
                let group = Endless { pattern: paths.clone(), parameter: None };
                self.grow(group, link, [url, Page::of(page).path()]);
            }
        }
        let folded = changed(&mut changes.all_folds, &plain);
        self.patterns.insert(hash(paths.as_bytes()));
        for (name, value) in fields(query) {
            self.add_param([name, value], url, &folded, &paths);
            let mut is_new =
                || self.values.insert(hash(format!("{paths}?{name}={value}").as_bytes()));
            if is_number_or_date(value) && is_new() {
                let (pattern, parameter) = (paths.clone(), Some(name.to_owned()));
                self.grow(Endless { pattern, parameter }, link, [url, value]);
            }
        }
        let path = Page::of(page).path();
        let has_place = self.facets.len() < MOST || self.facets.contains_key(path);
        if has_place && Facets::may_have(query) {
            self.facets.entry(path.to_owned()).or_default().add(query);
        }
        true
    }

    /// Adds a URL, with the part that differs, to the growth of a group.
    fn grow(&mut self, group: Endless, link: u64, [url, text]: [&str; 2]) {
        if self.groups.len() < MOST_GROUPS || self.groups.contains_key(&group) {
            self.groups.entry(group).or_default().add(link, url, text);
        }
    }

    /// Iterates over the groups that seem to have no end after all links of the crawl.
    pub(super) fn endless(&self, links: u64) -> impl Iterator<Item = (&Endless, &SiteGrowth)> {
        let useless: Vec<_> = self.useless_params().map(|(name, _)| name).collect();
        self.groups.iter().filter(move |(group, growth)| {
            let name = group.parameter.as_deref();
            growth.is_endless(links) && !name.is_some_and(|name| useless.contains(&name))
        })
    }

    /// Adds a parameter and its value in a link. `url` is the URL of the link after all folds, and
    /// `paths` the pattern of its path.
    fn add_param(&mut self, [param, value]: [&str; 2], link: &str, url: &str, paths: &str) {
        let has_place = self.params.len() < MOST || self.params.contains_key(param);
        // In a rule, a `*` stands for any characters.
        if !has_place || param.len() > LONGEST_NAME || param.contains('*') {
            return;
        }
        let (page, query) = url.split_once('?').unwrap_or((url, ""));
        let found = self.params.entry(param.to_owned()).or_default();
        found.values.add(value);
        found.paths.insert(hash(page.as_bytes()));
        found.patterns.insert(hash(paths.as_bytes()));
        let kept: Vec<_> = query.split('&').filter(|field| name(field) != param).collect();
        found.trial.add(link, url, &with_query(page, &kept));
    }

    /// Iterates over the parameters whose values seem to change nothing.
    pub(super) fn useless_params(&self) -> impl Iterator<Item = (&str, &Param)> {
        let patterns = self.patterns.len();
        let all = self.params.iter().map(|(name, param)| (name.as_str(), param));
        all.filter(move |(_, param)| param.changes_nothing(patterns))
    }

    /// Returns the facets of each path that has some, with their names and their trial.
    pub(super) fn facets(&self, host: &str) -> impl Iterator<Item = (&str, Vec<String>, Trial)> {
        let useless: Vec<_> = self.useless_params().map(|(name, _)| name).collect();
        self.facets.iter().filter_map(move |(path, facets)| {
            let (names, trial) = facets.found(&format!("http://{host}{path}"), &useless)?;
            Some((path.as_str(), names, trial))
        })
    }
}

/// Returns true if a value of a parameter is a number, or several with separators, as in a date.
fn is_number_or_date(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-._:".contains(&byte);
    value.bytes().all(is_part) && pattern(value) == "*"
}
