//! Comparison of two items: shows whether they stand for the same request, and why.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Explained, StepShown};
use urlseen_engine::item::{ItemContent, Options, OwnedRequest};
use urlseen_fingerprint::canonical::{CanonicalForm, Rule, parts};
use urlseen_fingerprint::{Fingerprint, FingerprintSpec, Fingerprinter};

/// Comparison of two items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Pair {
    /// True if both items have the same fingerprint; `None` if an item has no fingerprint.
    pub(crate) same: Option<bool>,
    /// The other canonical form, if the answer is another one there.
    pub(crate) other_form: Option<FormShown>,
    /// The first difference between the two items.
    pub(crate) difference: Option<Difference>,
    /// Rules that were applied to the differing parts of the URLs.
    pub(crate) rules: Vec<RuleShown>,
}

/// Answer in another canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FormShown {
    /// Name of the form, as in the configuration.
    pub(crate) form: &'static str,
    /// True if both items have the same fingerprint; `None` if an item has no fingerprint.
    pub(crate) same: Option<bool>,
}

/// The first difference between two requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// Part that differs: `method`, a part of the canonical URL, `body` or `fingerprint`.
    pub(crate) what: String,
    /// Part of the first item, if it has one.
    pub(crate) one: Option<String>,
    /// Part of the second item, if it has one.
    pub(crate) other: Option<String>,
}

/// A rule that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RuleShown {
    /// Name of the rule, for programs.
    pub(crate) rule: String,
    /// Rule in words, for people.
    pub(crate) words: &'static str,
}

/// Compares two explained items.
pub(crate) fn pair(one: &Explained, other: &Explained, options: &Options) -> Pair {
    let keys = |spec| key(one, spec).zip(key(other, spec));
    let are_same =
        |(first, second): &(ItemKey<'_>, ItemKey<'_>)| first.fingerprint == second.fingerprint;
    let spec = &options.fingerprint;
    let canonical = match spec.canonical {
        CanonicalForm::W3lib25 => CanonicalForm::W3lib24,
        CanonicalForm::W3lib24 => CanonicalForm::W3lib25,
    };
    let in_other_form = FingerprintSpec { canonical, ..spec.clone() };
    let other_form =
        FormShown { form: canonical.name(), same: keys(&in_other_form).as_ref().map(are_same) };
    let keys = keys(spec);
    let same = keys.as_ref().map(are_same);
    let other_form = Some(other_form).filter(|it| it.same != same);
    let different = keys.filter(|_| same == Some(false));
    let difference = different.map(|(first, second)| first.differs_from(&second));
    Pair { same, other_form, difference, rules: rules(one, other) }
}

/// Fingerprint of an item, and the request that it was computed from.
struct ItemKey<'a> {
    fingerprint: Fingerprint,
    /// Request and hashed URL; `None` if the fingerprint came with the item.
    computed: Option<(&'a OwnedRequest, String)>,
}

fn key<'a>(explained: &'a Explained, spec: &FingerprintSpec) -> Option<ItemKey<'a>> {
    let ItemContent { request, given, .. } = explained.outline.as_ref()?;
    if let Some(given) = given {
        return Some(ItemKey { fingerprint: given.clone(), computed: None });
    }
    let request = request.as_ref()?;
    let mut fingerprinter = Fingerprinter::new(spec.clone());
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
                if let ("query", Some(one), Some(other)) = (part, &one, &other) {
                    let [one, other] = first_fields(one, other);
                    return difference("field of the query", one, other);
                }
                return difference(part, one, other);
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

/// Returns the rules that were applied to the differing parts of the URLs.
fn rules(one: &Explained, other: &Explained) -> Vec<RuleShown> {
    let is_given = one.given.is_some() || other.given.is_some();
    let requests = [one, other].map(|each| each.outline.as_ref()?.request.as_ref());
    let [Some(first), Some(second)] = requests.map(|it| it.filter(|_| !is_given)) else {
        return Vec::new();
    };
    let pairs = parts(&first.url).into_iter().zip(parts(&second.url));
    let differing: BTreeSet<&str> =
        pairs.filter(|((_, one), (_, other))| one != other).map(|((part, _), _)| part).collect();
    let part = |step: &&StepShown| step.canonical.map_or("url", Rule::part);
    let matters = |step: &&StepShown| part(step) == "url" || differing.contains(part(step));
    let steps = one.steps.iter().chain(&other.steps);
    let mut steps: Vec<_> = steps.filter(|_| first.url != second.url).filter(matters).collect();
    steps.sort_by_key(|step| step.canonical);
    let mut rules = Vec::new();
    for step in steps.into_iter().chain(&one.merged).chain(&other.merged) {
        let shown = RuleShown { rule: step.rule.clone(), words: step.words };
        if !rules.contains(&shown) {
            rules.push(shown);
        }
    }
    rules
}
