//! Explanation, for people, of the steps from an item to its fingerprint.
//!
//! Batches never run this code.

mod pair;

use serde::Serialize;

pub(crate) use pair::{Pair, pair};
use urlseen_engine::item::{Identity, ItemContent, Options, OwnedRequest, Reader};
use urlseen_filter::limit::{Claim, LimitRule, Limits};
use urlseen_fingerprint::canonical::{Rule, Step, Trace, trace, trace_verbatim};
use urlseen_fingerprint::same::{SameRules, SameStep};
use urlseen_fingerprint::{Fingerprint, Fingerprinter};

/// Meaning of an item, and the fingerprint that the filter tests for the item.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Form of the item: `url`, `json`, `fingerprint`, `tab` or `pickle`.
    pub(crate) form: Option<&'static str>,
    /// Request that the item describes, if it describes one.
    pub(crate) request: Option<RequestShown>,
    /// Reason why the daemon would reject the item.
    pub(crate) unreadable: Option<String>,
    /// Reason why the daemon would emit the item without testing or adding its fingerprint.
    pub(crate) passes: Option<String>,
    /// Name of the rule `[[pass]]` for the item.
    #[serde(skip)]
    passed_by: Option<String>,
    /// Name of the rule that drops the item.
    pub(crate) dropped_by: Option<String>,
    /// Changes that make the URL canonical, in order.
    pub(crate) steps: Vec<StepShown>,
    /// Canonical URL of the request, before rules `[[same]]` change it.
    pub(crate) canonical: Option<String>,
    /// Changes by rules `[[same]]` to the canonical URL, in order.
    pub(crate) merged: Vec<StepShown>,
    /// URL that is hashed for the fingerprint, if it is not the canonical URL.
    pub(crate) hashed: Option<String>,
    /// Fingerprint that the item itself contains.
    pub(crate) given: Option<String>,
    /// Name of the algorithm of the fingerprint.
    pub(crate) algorithm: &'static str,
    /// Fingerprint that the filter tests for the item.
    pub(crate) fingerprint: Option<String>,
    /// Groups of limits that count the item if it is unseen.
    pub(crate) limits: Vec<LimitShown>,
    /// Fingerprint that the filter tests for the item, as a value for programs.
    #[serde(skip)]
    pub(crate) key: Option<Fingerprint>,
    #[serde(skip)]
    outline: Option<ItemContent>,
}

/// Request as it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RequestShown {
    /// HTTP method as the producer wrote it.
    pub(crate) method: String,
    /// URL as it was discovered.
    pub(crate) url: String,
    /// Number of bytes of the body.
    pub(crate) body_bytes: usize,
    /// Scrapy's `meta.verbatim_url`: true if the URL is sent unchanged.
    pub(crate) verbatim_url: bool,
}

/// Change that a rule made to a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct StepShown {
    /// Name of the rule, for programs.
    pub(crate) rule: String,
    /// Rule in words, for people.
    pub(crate) words: &'static str,
    /// Function of w3lib that applies the rule; empty for a rule of the configuration.
    pub(crate) by: &'static str,
    /// URL before the rule was applied.
    pub(crate) before: String,
    /// URL after the rule was applied.
    pub(crate) after: String,
    /// Rule of a canonical form; `None` for a rule of the configuration.
    #[serde(skip)]
    canonical: Option<Rule>,
}

impl From<Step> for StepShown {
    fn from(Step { pass, rule, before, after }: Step) -> Self {
        let (by, words) = (pass.function(), rule.words());
        let name = rule.name().to_owned();
        Self { rule: name, words, by, before, after, canonical: Some(rule) }
    }
}

impl StepShown {
    /// Describes a change by a rule `[[same]]`.
    fn merging(step: SameStep, rules: &SameRules) -> Self {
        let SameStep { rule, words, before, after } = step;
        Self {
            rule: rule.map_or_else(|| DROP_TRACKING.to_owned(), |number| rules.name(number)),
            words,
            by: "",
            before,
            after,
            canonical: None,
        }
    }
}

/// Key of the configuration that names the list of tracking parameters.
pub(crate) const DROP_TRACKING: &str = "fingerprint.drop_tracking";

/// Group of a limit that counts an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LimitShown {
    /// Name of the rule in the configuration.
    pub(crate) limit: String,
    /// Name of the group for people.
    pub(crate) group: String,
    /// Maximum number of unseen items, or of values, by the rule.
    pub(crate) max: u64,
}

/// Explains an item as a reader with these options would read it.
pub fn explain(item: &[u8], options: &Options) -> Explained {
    let mut reader = Reader::new(options.clone());
    let algorithm = options.fingerprint.algorithm.name();
    let mut explained = Explained { algorithm, ..Explained::default() };
    let outline = match reader.outline(item) {
        Ok(outline) => outline,
        Err(unreadable) => {
            explained.unreadable = Some(unreadable.to_string());
            return explained;
        }
    };
    explained.form = Some(outline.form.name());
    explained.given = outline.given.as_ref().map(ToString::to_string);
    if let Some(request) = &outline.request {
        explained.follow(request, options);
    }
    match reader.read(item) {
        Err(unreadable) => explained.unreadable = Some(unreadable.to_string()),
        Ok(read) => {
            let rule = read.passed.and_then(|rule| options.pass.get(usize::from(rule)));
            let name = rule.map(|rule| rule.name.clone());
            explained.passes = match (outline.dont_filter, &name) {
                (true, _) => Some("the item has dont_filter".to_owned()),
                (false, Some(name)) => Some(format!("the rule {name:?} ([[pass]]) fits")),
                (false, None) => None,
            };
            explained.passed_by = name;
            if let Identity::Dropped(rule) = read.identity {
                explained.dropped_by = Some(options.drop[usize::from(rule)].name.clone());
                explained.passes = None;
            }
            explained.key = match read.identity {
                Identity::Fingerprint(key) => Some(key),
                Identity::Unfiltered | Identity::Dropped(_) => None,
            };
        }
    }
    if let (Some(_), Some(url)) = (&explained.key, &explained.canonical) {
        let claims = Limits::new(options.limits.clone()).claims(url).into_iter();
        let shown = claims.map(|Claim { rule, name, .. }| {
            let LimitRule { name: limit, max, .. } = &options.limits[rule];
            LimitShown { limit: limit.clone(), group: name, max: *max }
        });
        explained.limits = shown.collect();
    }
    explained.fingerprint = explained.key.as_ref().map(ToString::to_string);
    explained.outline = Some(outline);
    explained
}

impl Explained {
    /// Iterates over the names of the rules that are for the item.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &str> {
        let verdict = self.dropped_by.iter().chain(&self.passed_by).map(String::as_str);
        let same = self.merged.iter().map(|step| &*step.rule);
        verdict.chain(same).chain(self.limits.iter().map(|it| &*it.limit))
    }

    /// Adds the request and the steps to its canonical URL to the explanation.
    fn follow(&mut self, request: &OwnedRequest, options: &Options) {
        let OwnedRequest { method, url, body, verbatim_url } = request;
        self.request = Some(RequestShown {
            method: method.clone(),
            url: url.clone(),
            body_bytes: body.len(),
            verbatim_url: *verbatim_url,
        });
        let mut fingerprinter = Fingerprinter::new(options.fingerprint.clone());
        let canonical = fingerprinter.canonical(&request.as_request()).map(str::to_owned);
        let mut spec = options.fingerprint.canonical_spec();
        // A rule can keep the fragment.
        spec.keep_fragments |= canonical.as_ref().is_ok_and(|url| url.contains('#'));
        let is_as_it_is = canonical.as_ref() == Ok(url);
        let Trace { steps, .. } = match (*verbatim_url, is_as_it_is) {
            (true, true) => Trace { steps: Vec::new(), outcome: canonical.clone() },
            (true, false) => trace_verbatim(url, spec),
            (false, _) => trace(url, spec),
        };
        self.steps = steps.into_iter().map(StepShown::from).collect();
        self.canonical = canonical.ok();
        let merged = fingerprinter.same_steps(&request.as_request()).unwrap_or_default();
        self.hashed = merged.last().map(|step| step.after.clone());
        let shown = |step| StepShown::merging(step, &options.fingerprint.same);
        self.merged = merged.into_iter().map(shown).collect();
    }
}
