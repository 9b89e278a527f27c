//! Kinds of rules: the keys of their tables, and the functions that read them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value as Json;
use urlseen_core::fingerprint::pages::Pages;
use urlseen_core::fingerprint::same::{SameRule, SameRules};
use urlseen_core::limit::{By, LimitRule};
use urlseen_engine::item::{ExpireRule, NamedRule};

use super::problem::ValueOrigin;
use super::raw::Raw;

/// Rules of each kind, in the order of the file.
#[derive(Default)]
pub(super) struct FoundRules {
    pub(super) same: Vec<SameRule>,
    pub(super) pass: Vec<NamedRule>,
    pub(super) drop: Vec<NamedRule>,
    pub(super) expire: Vec<ExpireRule>,
    pub(super) limit: Vec<LimitRule>,
}

/// Values of a rule in the file, except its expressions.
pub(super) struct Table {
    /// Place of the rule in the file.
    pub(super) origin: ValueOrigin,
    /// Values by their keys, each of the form of its key.
    pub(super) values: BTreeMap<&'static str, Raw>,
}

impl Table {
    /// Returns the text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.text().ok()
    }

    /// Returns the number of a key.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.number().ok()?.parse().ok()
    }

    /// Returns the list of a key; an empty list if the rule does not have the key.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        self.values.get(key).and_then(Raw::list).map(<[_]>::to_vec).unwrap_or_default()
    }
}

/// Rule of a file, with the keys that it has there.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveRule {
    /// Kind of the rule: the name of its tables.
    pub kind: &'static str,
    /// Place of the rule in the file.
    pub origin: ValueOrigin,
    /// Keys of the rule with their values.
    pub values: Vec<(&'static str, Json)>,
}

/// Maximum number of rules of a kind in a configuration.
pub(super) const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Keys that a rule may have besides those of [`Pages`].
    keys: &'static [RuleKey],
    /// True if a rule without patterns is for all pages.
    pub(super) for_all: bool,
    /// Adds a rule to those of its kind. The error is the reason why the rule is refused.
    pub(super) add: fn(&mut FoundRules, &Table, Pages) -> Result<(), String>,
}

/// Key that a table of rules may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKey {
    pub(super) name: &'static str,
    pub(super) form: ValueForm,
}

/// Type of the values of a rule's key.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueForm {
    /// A regular expression for a part of a URL.
    Pattern,
    /// A text in quotes, of any length.
    Text,
    /// A whole number in the range of `max`.
    Number,
    /// A list of texts in quotes.
    List,
}

/// Name of a rule in metrics and status.
const NAME: RuleKey = RuleKey { name: "name", form: ValueForm::Text };

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 5] = [
    RuleKind {
        name: "same",
        keys: &[
            RuleKey { name: "drop_params", form: ValueForm::List },
            RuleKey { name: "keep_params", form: ValueForm::List },
            RuleKey { name: "fold", form: ValueForm::List },
        ],
        for_all: true,
        add: |rules, table, pages| {
            let [drop_params, keep_params] =
                ["drop_params", "keep_params"].map(|it| table.list(it));
            let rule = SameRule::new(pages, drop_params, keep_params, &table.list("fold"))?;
            rules.same.push(rule);
            let is_allowed = SameRules::check(&rules.same);
            if is_allowed.is_err() {
                rules.same.pop();
            }
            is_allowed.map_err(|error| error.to_string())
        },
    },
    RuleKind {
        name: "pass",
        keys: &[NAME],
        for_all: false,
        add: |rules, table, pages| add_named(&mut rules.pass, table, pages),
    },
    RuleKind {
        name: "drop",
        keys: &[NAME],
        for_all: false,
        add: |rules, table, pages| add_named(&mut rules.drop, table, pages),
    },
    RuleKind {
        name: "limit",
        keys: &[
            NAME,
            RuleKey { name: "by", form: ValueForm::Text },
            RuleKey { name: "parameter", form: ValueForm::Text },
            RuleKey { name: "max", form: ValueForm::Number },
        ],
        for_all: true,
        add: |rules, table, pages| add_limit(&mut rules.limit, table, pages),
    },
    RuleKind {
        name: "expire",
        keys: &[RuleKey { name: "expire_after", form: ValueForm::Text }],
        for_all: false,
        add: |rules, table, pages| add_expire(&mut rules.expire, table, pages),
    },
];

impl RuleKind {
    /// Iterates over all keys that a rule may have.
    pub(super) fn all_keys(self) -> impl Iterator<Item = RuleKey> + Clone {
        let pages = Pages::KEYS.into_iter().map(|name| RuleKey { name, form: ValueForm::Pattern });
        self.keys.iter().copied().chain(pages)
    }

    /// Iterates over the names of all keys that a rule may have.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        self.all_keys().map(|key| key.name)
    }
}

impl ValueForm {
    /// Describes the form, for the end of a message.
    pub(super) fn allowed(self) -> &'static str {
        match self {
            Self::Number => "a whole number",
            Self::List => "an array of texts in quotes",
            Self::Pattern | Self::Text => "a text in quotes",
        }
    }
}

/// Maximum length of a rule's name in bytes.
pub(super) const LONGEST_NAME: usize = 100;

/// Adds a rule to those of `[[pass]]` or `[[drop]]`. Without a name in the file, its name is the
/// text of its patterns.
///
/// # Errors
/// Returns the reason why the rule is refused.
fn add_named(rules: &mut Vec<NamedRule>, table: &Table, pages: Pages) -> Result<(), String> {
    let name = name_of(table, &pages.to_string(), rules.iter().map(|rule| &rule.name[..]))?;
    rules.push(NamedRule { name, pages });
    Ok(())
}

/// Returns the name of a rule, or a text if the file gives it none.
///
/// # Errors
/// Returns the reason why the name is refused. `others` are the names of other rules.
fn name_of<'a>(
    table: &Table,
    otherwise: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let name = table.text("name").unwrap_or(otherwise);
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\""));
    }
    if others.any(|other| other == name) {
        return Err(format!("has the name {name:?}, as another rule has; give each its own"));
    }
    Ok(name.to_owned())
}

/// Adds a rule of `[[expire]]` to the rules of its kind.
///
/// # Errors
/// Returns the reason why the rule is refused.
fn add_expire(rules: &mut Vec<ExpireRule>, table: &Table, pages: Pages) -> Result<(), String> {
    let after = match table.text("expire_after") {
        Some("never") => Some(None),
        text => text.and_then(|text| humantime::parse_duration(text).ok()).map(Some),
    };
    let is_whole = |time: Duration| time.subsec_nanos() == 0 && !time.is_zero();
    let after = after.filter(|after| after.is_none_or(is_whole)).ok_or(
        "has no time in whole seconds, as in expire_after = \"1d\" or expire_after = \"never\"",
    )?;
    rules.push(ExpireRule { pages, after });
    Ok(())
}

/// Allowed values of `max`.
pub(super) const MAX: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// Adds a rule to the rules of its kind. Without a name in the file, its name is the text of its
/// scope.
///
/// # Errors
/// Returns the reason why the rule is refused.
fn add_limit(rules: &mut Vec<LimitRule>, table: &Table, pages: Pages) -> Result<(), String> {
    let by = By::read(table.text("by"), table.text("parameter"))?;
    let Some(max) = table.number("max").filter(|max| MAX.contains(max)) else {
        let found = table.number("max").map_or("no max".to_owned(), |max| format!("max = {max}"));
        return Err(format!("has {found}; allowed: {} to {}", MAX.start(), MAX.end()));
    };
    let mut rule = LimitRule { name: String::new(), max, by, pages };
    if let Some(other) = rules.iter().find(|other| rule.overlaps(other)) {
        return Err(format!(
            "limits the same groups as the rule {:?}, {}; keep one of them, or give each pages of \
             its own",
            other.name, other.by
        ));
    }
    let scope = rule.scope();
    rule.name = name_of(table, scope.trim(), rules.iter().map(|rule| &rule.name[..]))?;
    rules.push(rule);
    Ok(())
}
