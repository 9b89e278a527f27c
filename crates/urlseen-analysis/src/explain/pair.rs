//! Comparison of two items: shows whether they stand for the same request, and why.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Explained;
use urlseen_core::fingerprint::canonical::{Rule, UrlPart, parts};
use urlseen_core::fingerprint::{Algorithm, Fingerprint, FingerprintSpec, Fingerprinter};
use urlseen_engine::item::{Options, Outline, OwnedRequest};

/// Comparison of two items by all algorithms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Comparison by each algorithm.
    pub verdicts: Vec<Verdict>,
    /// Rules that were applied to the differing parts of the URLs.
    pub rules: Vec<RuleShown>,
    /// Other differences between the two items, which do not affect the fingerprint.
    pub also: Vec<&'static str>,
}

/// Comparison of two items by one algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Name of the fingerprint algorithm.
    pub algorithm: &'static str,
    /// True if the configuration uses this algorithm.
    pub is_used: bool,
    /// True if both items have the same fingerprint; `None` if an item has no fingerprint.
    pub same: Option<bool>,
    /// The first difference between the two items.
    pub difference: Option<Difference>,
}

/// The first difference between two requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Part that differs: `method`, a part of the canonical URL, `body` or `fingerprint`.
    pub what: String,
    /// Part of the first item, if it has one.
    pub one: Option<String>,
    /// Part of the second item, if it has one.
    pub other: Option<String>,
}

/// A rule that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleShown {
    /// Name of the rule, for programs.
    pub rule: String,
    /// Rule in words, for people.
    pub words: &'static str,
}

/// Compares two explained items.
pub fn pair(one: &Explained, other: &Explained, options: Options) -> Pair {
    let verdicts = Algorithm::all().iter().map(|&algorithm| {
        let is_used = algorithm == options.fingerprint.algorithm;
        let spec = FingerprintSpec { algorithm, ..options.fingerprint };
        let keys = [one, other].map(|each| key(each, spec));
        let [Some(first), Some(second)] = &keys else {
            return Verdict { algorithm: algorithm.name(), is_used, same: None, difference: None };
        };
        let same = first.fingerprint == second.fingerprint;
        let difference = if same { None } else { Some(first.differs_from(second)) };
        Verdict { algorithm: algorithm.name(), is_used, same: Some(same), difference }
    });
    let (rules, also) = between(one, other);
    Pair { verdicts: verdicts.collect(), rules, also }
}

/// Fingerprint of an item, and the request that it was computed from.
struct ItemKey<'a> {
    fingerprint: Fingerprint,
    /// Request and hashed URL; `None` if the fingerprint came with the item.
    computed: Option<(&'a OwnedRequest, String)>,
}

fn key(explained: &Explained, spec: FingerprintSpec) -> Option<ItemKey<'_>> {
    let Outline { request, given, .. } = explained.outline.as_ref()?;
    if let Some(given) = given {
        return Some(ItemKey { fingerprint: given.clone(), computed: None });
    }
    let request = request.as_ref()?;
    let mut fingerprinter = Fingerprinter::new(spec);
    let hashed = fingerprinter.hashed(&request.as_request()).ok()?.to_owned();
    let fingerprint = fingerprinter.finish(&request.as_request());
    Some(ItemKey { fingerprint, computed: Some((request, hashed)) })
}

impl ItemKey<'_> {
    /// Returns the first difference in this order: method, URL, body.
    fn differs_from(&self, other: &Self) -> Difference {
        let difference = |what: &str, one: Option<String>, other: Option<String>| Difference {
            what: what.to_owned(),
            one,
            other,
        };
        let (Some((one, url)), Some((second, other_url))) = (&self.computed, &other.computed)
        else {
            let texts = [self, other].map(|key| Some(key.fingerprint.to_string()));
            let [one, other] = texts;
            return difference("fingerprint", one, other);
        };
        let methods = [one, second].map(|request| request.method.to_uppercase());
        if methods[0] != methods[1] {
            let [one, other] = methods;
            return difference("method", Some(one), Some(other));
        }
        if url != other_url {
            let pairs = parts(url).into_iter().zip(parts(other_url));
            for ((part, one), (_, other)) in pairs {
                if one == other {
                    continue;
                }
                if let (UrlPart::Query, Some(one), Some(other)) = (part, &one, &other) {
                    let [one, other] = first_fields(one, other);
                    return difference("field of the query", one, other);
                }
                return difference(part.name(), one, other);
            }
            return difference("url", Some(url.clone()), Some(other_url.clone()));
        }
        let same = one.body.iter().zip(&second.body).take_while(|(a, b)| a == b).count();
        let rest = |body: &[u8]| {
            let shown = String::from_utf8_lossy(&body[same..body.len().min(same + 40)]);
            shown.into_owned()
        };
        let what = format!("body, from byte {same} on");
        difference(&what, Some(rest(&one.body)), Some(rest(&second.body)))
    }
}

/// Returns the first pair of fields in which two sorted queries differ.
fn first_fields(one: &str, other: &str) -> [Option<String>; 2] {
    let (one, other): (Vec<_>, Vec<_>) = (one.split('&').collect(), other.split('&').collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    [one, other].map(|fields| fields.get(same).map(|&field| field.to_owned()))
}

/// Returns the rules that were applied to the differing parts of the URLs, and the differences
/// outside of the URLs.
fn between(one: &Explained, other: &Explained) -> (Vec<RuleShown>, Vec<&'static str>) {
    let outlines = [one, other].map(|each| each.outline.as_ref());
    let [Some(first), Some(second)] = outlines else { return (Vec::new(), Vec::new()) };
    if first.given.is_some() || second.given.is_some() {
        let is_other = first != second;
        let also = "all parts except the fingerprint in the item: URL, body, payload";
        return (Vec::new(), if is_other { vec![also] } else { Vec::new() });
    }
    let (Some(first), Some(second)) = (&first.request, &second.request) else {
        return (Vec::new(), Vec::new());
    };
    let mut also = Vec::new();
    if first.method != second.method && first.method.to_uppercase() == second.method.to_uppercase()
    {
        also.push("the case of the method");
    }
    let is_dressed = [one, other].iter().any(|each| each.form != Some("url"));
    if is_dressed && first.url == second.url && first.body == second.body {
        also.push("other parts of the items: headers, cookies, meta, priority, callback");
    }
    let pairs = parts(&first.url).into_iter().zip(parts(&second.url));
    let differing: BTreeSet<UrlPart> =
        pairs.filter(|((_, one), (_, other))| one != other).map(|((part, _), _)| part).collect();
    let applied: BTreeSet<Rule> =
        one.changes.iter().chain(&other.changes).map(|step| step.rule).collect();
    let matters = |rule: &Rule| rule.part() == UrlPart::Url || differing.contains(&rule.part());
    let rules = applied
        .into_iter()
        .filter(|rule| first.url != second.url && matters(rule))
        .map(|rule| RuleShown { rule: rule.name().to_owned(), words: rule.words() });
    let mut rules: Vec<_> = rules.collect();
    for step in one.merged.iter().chain(&other.merged) {
        let shown = RuleShown { rule: step.rule.clone(), words: step.words };
        if !rules.contains(&shown) {
            rules.push(shown);
        }
    }
    (rules, also)
}
