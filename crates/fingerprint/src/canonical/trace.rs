//! Steps that make a URL canonical, as an explanation for people.

use super::authority::{CanonicalizeError, split_user_info};
use super::path_query::UrlTail;
use super::split::{Scheme, split_authority};
use super::steps::{Observer, Pass, Rule};
use super::{Buffers, CanonicalSpec, push_canonical_url, push_in_two_passes};

/// Change that one rule made to a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Function of w3lib that made the change.
    pub pass: Pass,
    /// Rule that required the change.
    pub rule: Rule,
    /// URL before the change.
    pub before: String,
    /// URL after the change by the rule.
    pub after: String,
}

/// Trace of a URL through all rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// All changes, in order. For a refused URL, the changes before the refusal.
    pub steps: Vec<Step>,
    /// Canonical form of the URL, or the reason for its refusal.
    pub outcome: Result<String, CanonicalizeError>,
}

/// Observer that records all changes, for explanations.
struct Recorder {
    pass: Pass,
    url: String,
    steps: Vec<Step>,
}

impl Observer for Recorder {
    fn begin(&mut self, pass: Pass) {
        self.pass = pass;
    }

    fn step(&mut self, rule: Rule, url: impl FnOnce() -> String) {
        let (pass, after) = (self.pass, url());
        let before = std::mem::replace(&mut self.url, after.clone());
        match self.steps.last_mut() {
            _ if before == after => {}
            // Several fields of a query.
            Some(last) if (last.pass, last.rule) == (pass, rule) => last.after = after,
            _ => self.steps.push(Step { pass, rule, before, after }),
        }
    }
}

/// Traces the work of [`push_request_url`](super::push_request_url) on a request's URL.
pub fn trace(url: &str, spec: CanonicalSpec) -> Trace {
    recorded(url, Pass::Safe, |recorder, out| {
        push_in_two_passes(url, spec, &mut Buffers::default(), out, recorder)
    })
}

/// Traces the work of `push_canonical_url` on a URL that was never made safe.
pub fn trace_verbatim(url: &str, spec: CanonicalSpec) -> Trace {
    recorded(url, Pass::Canonical, |recorder, out| {
        push_canonical_url(url, spec, &mut Buffers::default(), out, recorder)
    })
}

fn recorded(
    url: &str,
    pass: Pass,
    push: impl FnOnce(&mut Recorder, &mut String) -> Result<(), CanonicalizeError>,
) -> Trace {
    let mut recorder = Recorder { pass, url: url.to_owned(), steps: Vec::new() };
    let mut canonical = String::new();
    let outcome = push(&mut recorder, &mut canonical).map(|()| canonical);
    Trace { steps: recorder.steps, outcome }
}

/// Returns the parts of a canonical URL, in order and without delimiters. A missing part is `None`.
/// The path includes its `;` parameters.
pub fn parts(url: &str) -> [(&'static str, Option<String>); 7] {
    let (scheme, rest) = Scheme::split(url);
    let (_, authority, rest) = split_authority(rest);
    let (user_info, host_and_port) = split_user_info(authority);
    let port = host_and_port.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let (host, port) = port.map_or((host_and_port, ""), |(host, port)| (host, port));
    let UrlTail { path, query, fragment, .. } = UrlTail::split(rest);
    [
        ("scheme", scheme.0),
        ("user info", user_info.unwrap_or_default()),
        ("host", host),
        ("port", port),
        ("path", path),
        ("query", query),
        ("fragment", fragment),
    ]
    .map(|(part, text)| (part, Some(text.to_owned()).filter(|text| !text.is_empty())))
}
