//! Kinds of rules: the keys of their tables, and the functions that read them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};
use urlseen_engine::item::{ExpireRule, NamedRule};
use urlseen_filter::limit::{By, LimitRule};
use urlseen_fingerprint::rule_pages::{Pages, Pattern};
use urlseen_fingerprint::same::SameRules;

use super::problem::ValueOrigin;
use super::value::{Raw, Rule, flag, texts, whole};

/// Rules of a file, each kind in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// Rules by which different URLs are the same.
    pub same: SameRules,
    /// Rules that let items pass unchecked.
    pub pass: Arc<[NamedRule]>,
    /// Rules that drop items.
    pub drop: Arc<[NamedRule]>,
    /// Rules that limit unseen items.
    pub limits: Arc<[LimitRule]>,
    /// Rules with the times after which URLs of some pages pass again.
    pub expire: Arc<[ExpireRule]>,
}

/// Values of a rule in the file by their keys, each of the type of its key.
pub(super) type Values = BTreeMap<&'static str, Json>;

/// Rule of a file, with the keys that it has there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectiveRule {
    /// Kind of the rule: the name of its tables.
    pub kind: &'static str,
    /// Place of the rule in the file.
    #[serde(rename = "from")]
    pub origin: ValueOrigin,
    /// Keys of the rule with their values.
    pub values: Values,
}

/// Maximum number of rules of a kind in a configuration.
pub(super) const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Keys that a rule may have besides those of [`Pages`].
    keys: &'static [&'static str],
    /// True if a rule without patterns is for all pages.
    pub(super) for_all: bool,
    /// Adds a rule to those of its kind. The error is the reason why the rule is refused.
    pub(super) add: fn(&mut Rules, &Values, Pages) -> Result<(), String>,
}

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 5] = [
    RuleKind {
        name: "same",
        keys: &[
            "drop_params",
            "keep_params",
            "ignore_values",
            "drop_sessions",
            "keep_fragments",
            "fold",
        ],
        for_all: true,
        add: add_same,
    },
    RuleKind {
        name: "pass",
        keys: &["name"],
        for_all: false,
        add: |rules, values, pages| add_named(&mut rules.pass, values, pages),
    },
    RuleKind {
        name: "drop",
        keys: &["name"],
        for_all: false,
        add: |rules, values, pages| add_named(&mut rules.drop, values, pages),
    },
    RuleKind {
        name: "limit",
        keys: &["name", "by", "parameter", "max"],
        for_all: true,
        add: add_limit,
    },
    RuleKind { name: "expire", keys: &["expire_after"], for_all: false, add: add_expire },
];

impl RuleKind {
    /// Returns the keys that a rule may have.
    pub(super) fn keys(self) -> Vec<&'static str> {
        [self.keys, &Pages::KEYS].concat()
    }
}

/// Reads the value of a key of a rule, and adds a pattern to the pages of the rule.
///
/// # Errors
/// The value is refused. The error has the value, and the reason or what is allowed.
pub(super) fn read(key: &str, raw: &Raw, pages: &mut Pages) -> Result<Json, String> {
    let value = match key {
        "max" => whole::<u64>(MAX, "").json(raw),
        "keep_fragments" => flag().json(raw),
        "drop_params" | "keep_params" | "ignore_values" | "fold" => {
            texts(0..=usize::MAX, |_| true, "an array of texts in quotes").json(raw)
        }
        _ => Rule::text("a text in quotes", |it| Some(it.to_owned()), String::clone).json(raw),
    }?;
    if let Some(pattern) = pages.pattern(key) {
        let compiled = Pattern::new(&raw.text);
        *pattern = Some(compiled.map_err(|reason| format!("{}: {reason}", raw.shown()))?);
    }
    Ok(value)
}

fn text<'a>(values: &'a Values, key: &str) -> Option<&'a str> {
    values.get(key)?.as_str()
}

fn push<T: Clone>(rules: &mut Arc<[T]>, rule: T) {
    *rules = rules.iter().cloned().chain([rule]).collect();
}

// Each of these functions returns the reason if it refuses the rule.

fn add_same(rules: &mut Rules, values: &Values, _: Pages) -> Result<(), String> {
    let rule = json!([values]).to_string().parse::<SameRules>();
    let same = rule.and_then(|rule| rules.same.with(&rule));
    rules.same = same.map_err(|error| error.to_string())?;
    Ok(())
}

/// Maximum length of a rule's name in bytes.
pub(super) const LONGEST_NAME: usize = 100;

/// Without a name in the file, the name of the rule is the text of its patterns.
fn add_named(rules: &mut Arc<[NamedRule]>, values: &Values, pages: Pages) -> Result<(), String> {
    let name = name_of(values, &pages.to_string(), rules.iter().map(|rule| &rule.name[..]))?;
    push(rules, NamedRule { name, pages });
    Ok(())
}

/// Returns the name of a rule, or a text if the file gives it none.
///
/// # Errors
/// Returns the reason why the name is refused. `others` are the names of other rules.
fn name_of<'a>(
    values: &Values,
    otherwise: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let name = text(values, "name").unwrap_or(otherwise);
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\""));
    }
    if others.any(|other| other == name) {
        return Err(format!("has the name {name:?}, as another rule has; give each its own"));
    }
    Ok(name.to_owned())
}

fn add_expire(rules: &mut Rules, values: &Values, pages: Pages) -> Result<(), String> {
    let after = match text(values, "expire_after") {
        Some("never") => Some(None),
        text => text.and_then(|text| humantime::parse_duration(text).ok()).map(Some),
    };
    let is_whole = |time: Duration| time.subsec_nanos() == 0 && !time.is_zero();
    let after = after.filter(|after| after.is_none_or(is_whole)).ok_or(
        "has no time in whole seconds, as in expire_after = \"1d\" or expire_after = \"never\"",
    )?;
    push(&mut rules.expire, ExpireRule { pages, after });
    Ok(())
}

/// Allowed values of `max`.
const MAX: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// Without a name in the file, the name of the rule is the text of its scope.
fn add_limit(rules: &mut Rules, values: &Values, pages: Pages) -> Result<(), String> {
    let by = By::read(text(values, "by"), text(values, "parameter"))?;
    let max = values.get("max").and_then(Json::as_u64);
    let max =
        max.ok_or_else(|| format!("has no max; allowed: {} to {}", MAX.start(), MAX.end()))?;
    let mut rule = LimitRule { name: String::new(), max, by, pages };
    if let Some(other) = rules.limits.iter().find(|other| rule.overlaps(other)) {
        return Err(format!(
            "limits the same groups as the rule {:?}, {}; keep one of them, or give each pages of \
             its own",
            other.name, other.by
        ));
    }
    let scope = rule.scope();
    let others = rules.limits.iter().map(|rule| &rule.name[..]);
    rule.name = name_of(values, scope.trim(), others)?;
    push(&mut rules.limits, rule);
    Ok(())
}
