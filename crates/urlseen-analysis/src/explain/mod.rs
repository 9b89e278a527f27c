//! Explanation of what becomes of an item, for people.
//!
//! No batch comes here. The fingerprints of other spellings are computed, not guessed.

mod alike;
pub mod pair;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use alike::Spelling;
pub use pair::{Pair, pair};
use urlseen_core::fingerprint::canonical::{Fragments, Step, Trace, trace, trace_verbatim};
use urlseen_core::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen_engine::item::{Identity, Options, Outline, OwnedRequest, Reader};

/// Meaning of an item, and the fingerprint that it is judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Form of the item: `url`, `json`, `fingerprint`, `tab` or `pickle`.
    pub form: Option<&'static str>,
    /// The request that it stands for.
    pub request: Option<RequestShown>,
    /// Why it would be rejected.
    pub unreadable: Option<String>,
    /// Why it would pass unchecked and unrecorded.
    pub passes: Option<String>,
    /// Changes on the way to the canonical URL, in order.
    pub steps: Vec<StepShown>,
    /// The URL as it goes into the fingerprint.
    pub canonical: Option<String>,
    /// The fingerprint that the item brings along.
    pub given: Option<String>,
    /// Fingerprints by all algorithms.
    pub fingerprints: Vec<Computed>,
    /// Fingerprint that the filter is asked for.
    pub fingerprint: Option<String>,
    /// Other parts of the item that do not count.
    pub ignored: Vec<&'static str>,
    /// Other items with the same fingerprint.
    pub same: Vec<Spelling>,
    /// Items that look much like it and have another fingerprint.
    pub others: Vec<Spelling>,
    /// The same, to work with.
    #[serde(skip)]
    pub key: Option<Fingerprint>,
    #[serde(skip)]
    outline: Option<Outline>,
    #[serde(skip)]
    changes: Vec<Step>,
}

/// A request, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestShown {
    /// As the producer wrote it.
    pub method: String,
    /// URL, as it was discovered.
    pub url: String,
    /// Number of bytes of the body.
    pub body_bytes: usize,
    /// Scrapy's `meta.verbatim_url`.
    pub verbatim_url: bool,
}

/// A step to the canonical URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepShown {
    /// Name of the rule, for programs.
    pub rule: &'static str,
    /// Rule in words, for people.
    pub words: &'static str,
    /// Origin of the rule: a standard or a program.
    pub by: &'static str,
    /// URL before the rule was applied.
    pub before: String,
    /// The URL as it is then.
    pub after: String,
}

impl From<&Step> for StepShown {
    fn from(Step { pass, rule, before, after }: &Step) -> Self {
        Self {
            rule: rule.name(),
            words: rule.words(),
            by: pass.function(),
            before: before.clone(),
            after: after.clone(),
        }
    }
}

/// Fingerprint of a request by one algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Computed {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Versions whose fingerprints are the same.
    pub(crate) version: &'static str,
    /// Fingerprint as hex digits.
    pub fingerprint: Option<String>,
    /// Reason that there is no fingerprint.
    pub refused: Option<String>,
}

/// Parts of a request that do not count for its fingerprint.
const IGNORED: &[&str] = &[
    "headers and cookies",
    "meta (but for verbatim_url), cb_kwargs, flags",
    "priority, callback, errback",
    "the case of method, scheme and host",
    "the order of the query's fields, and those with nothing in them",
];

/// Explains an item that is read in this way.
pub fn explain(item: &[u8], options: Options) -> Explained {
    let mut reader = Reader::new(options);
    let mut explained = Explained {
        form: None,
        request: None,
        unreadable: None,
        passes: None,
        steps: Vec::new(),
        canonical: None,
        given: None,
        fingerprints: Vec::new(),
        fingerprint: None,
        ignored: Vec::new(),
        same: Vec::new(),
        others: Vec::new(),
        key: None,
        outline: None,
        changes: Vec::new(),
    };
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
            explained.passes = match (outline.dont_filter, rule) {
                (true, _) => Some("it says dont_filter".to_owned()),
                (false, Some(rule)) => Some(format!("the rule {:?} ([[pass]]) fits", rule.name)),
                (false, None) => None,
            };
            explained.key = match read.identity {
                Identity::Fingerprint(key) => Some(key),
                Identity::Unfiltered => None,
            };
        }
    }
    explained.fingerprint = explained.key.as_ref().map(ToString::to_string);
    explained.ignored = ignored(&outline, options);
    (explained.same, explained.others) = alike::find(item, &outline, options);
    explained.outline = Some(outline);
    explained
}

impl Explained {
    /// Follows the request's URL, and computes what can be.
    fn follow(&mut self, request: &OwnedRequest, options: Options) {
        let OwnedRequest { method, url, body, verbatim_url } = request;
        self.request = Some(RequestShown {
            method: method.clone(),
            url: url.clone(),
            body_bytes: body.len(),
            verbatim_url: *verbatim_url,
        });
        let mut fingerprinter = Fingerprinter::new(options.algorithm, options.keep_fragments);
        let canonical = fingerprinter.canonical(&request.as_request()).map(str::to_owned);
        let fragments = if options.keep_fragments { Fragments::Keep } else { Fragments::Drop };
        let is_as_it_is = canonical.as_ref() == Ok(url);
        let Trace { steps, .. } = match (*verbatim_url, is_as_it_is) {
            (true, true) => Trace { steps: Vec::new(), outcome: canonical.clone() },
            (true, false) => trace_verbatim(url, fragments),
            (false, _) => trace(url, fragments),
        };
        self.steps = steps.iter().map(StepShown::from).collect();
        self.changes = steps;
        self.canonical = canonical.ok();
        self.fingerprints = Algorithm::all()
            .iter()
            .map(|&algorithm| computed(algorithm, request, options.keep_fragments))
            .collect();
    }
}

fn computed(algorithm: Algorithm, request: &OwnedRequest, keep_fragments: bool) -> Computed {
    let mut fingerprinter = Fingerprinter::new(algorithm, keep_fragments);
    let computed = fingerprinter.fingerprint(&request.as_request());
    Computed {
        algorithm: algorithm.name(),
        version: algorithm.version(),
        fingerprint: computed.as_ref().ok().map(ToString::to_string),
        refused: computed.err().map(|refusal| refusal.to_string()),
    }
}

fn ignored(outline: &Outline, options: Options) -> Vec<&'static str> {
    if outline.given.is_some() {
        return vec!["all but the fingerprint that the item brings along: URL, body, payload"];
    }
    let mut ignored = IGNORED.to_vec();
    if !options.keep_fragments {
        ignored.push("the fragment (fingerprint.keep_fragments is false)");
    }
    ignored
}
