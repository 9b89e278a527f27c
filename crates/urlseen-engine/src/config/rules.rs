//! Tables of rules in the file: `[[same]]`, `[[pass]]`, `[[drop]]`, `[[limit]]` and `[[expire]]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expire::ExpireRule;
use super::layers::{Layers, hint};
use super::limit;
use super::named::NamedRule;
use super::nearest::nearest;
use super::problem::ValueOrigin;
use super::raw::Raw;
use urlseen_core::fingerprint::pages::{Pages, Pattern};
use urlseen_core::fingerprint::same::{SameRule, SameRules};
use urlseen_core::limit::LimitRule;

/// Maximum number of rules of a kind in a configuration.
const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Keys with a text that a rule may have besides those of [`Pages`].
    keys: &'static [&'static str],
    /// Keys with a whole number that a rule may have.
    numbers: &'static [&'static str],
    /// Keys with a list of texts that a rule may have.
    lists: &'static [&'static str],
    /// True if a rule without patterns is for all pages.
    for_all: bool,
    /// Adds a rule to the layers. The error is the reason why the rule is refused.
    add: fn(&mut Layers, &Table, Pages) -> Result<(), String>,
}

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 5] = [
    RuleKind {
        name: "same",
        keys: &[],
        numbers: &[],
        lists: &["drop_params", "keep_params", "fold"],
        for_all: true,
        add: |layers, table, pages| {
            let [drop_params, keep_params] =
                ["drop_params", "keep_params"].map(|it| table.list(it));
            let rule = SameRule::new(pages, drop_params, keep_params, &table.list("fold"))?;
            layers.rules.same.push(rule);
            let is_allowed = SameRules::check(&layers.rules.same);
            if is_allowed.is_err() {
                layers.rules.same.pop();
            }
            is_allowed.map_err(|error| error.to_string())
        },
    },
    RuleKind {
        name: "pass",
        keys: &["name"],
        numbers: &[],
        lists: &[],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.pass, table, pages),
    },
    RuleKind {
        name: "drop",
        keys: &["name"],
        numbers: &[],
        lists: &[],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.drop, table, pages),
    },
    RuleKind {
        name: "limit",
        keys: &["name", "by", "parameter"],
        numbers: &["max"],
        lists: &[],
        for_all: true,
        add: |layers, table, pages| limit::add(&mut layers.rules.limit, table, pages),
    },
    RuleKind {
        name: "expire",
        keys: &["expire_after"],
        numbers: &[],
        lists: &[],
        for_all: false,
        add: |layers, table, pages| {
            layers.rules.expire.push(ExpireRule::read(table, pages)?);
            Ok(())
        },
    },
];

impl RuleKind {
    /// Iterates over all keys that a rule may have.
    fn all_keys(self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().chain(self.numbers).chain(self.lists).copied().chain(Pages::KEYS)
    }
}

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
    texts: BTreeMap<&'static str, String>,
    numbers: BTreeMap<&'static str, u64>,
    lists: BTreeMap<&'static str, Vec<String>>,
}

impl Table {
    /// Returns the text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// Returns the number of a key.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Returns the list of a key; an empty list if the rule does not have the key.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        self.lists.get(key).cloned().unwrap_or_default()
    }
}

impl Layers {
    /// Adds the rules of a file to the layers. `value` is the value of the key with the name of the
    /// kind. `at` returns the place in the file for a byte offset.
    pub(super) fn add_rules(
        &mut self,
        kind: RuleKind,
        value: &Spanned<DeValue<'_>>,
        at: impl Fn(usize) -> ValueOrigin,
    ) {
        let name = kind.name;
        let DeValue::Array(array) = value.get_ref() else {
            let found = Raw::from_toml(value.get_ref()).kind();
            let reason =
                format!("is {found}; allowed: rules that each begin with the line [[{name}]]");
            return self.refuse_rule(name, at(value.span().start), &reason);
        };
        for (index, value) in array.iter().enumerate() {
            let origin = at(value.span().start);
            if index == MOST {
                let reason = format!("is here more than {MOST} times; combine rules");
                return self.refuse_rule(name, origin, &reason);
            }
            match value.get_ref() {
                DeValue::Table(table) => self.add_rule(kind, table, origin, &at),
                other => {
                    let found = Raw::from_toml(other).kind();
                    let keys: Vec<_> = kind.all_keys().collect();
                    let reason = format!("holds {found}; allowed: {}", keys.join(", "));
                    self.refuse_rule(name, origin, &reason);
                }
            }
        }
    }

    fn add_rule(
        &mut self,
        kind: RuleKind,
        table: &DeTable<'_>,
        origin: ValueOrigin,
        at: &impl Fn(usize) -> ValueOrigin,
    ) {
        let (name, before) = (kind.name, self.problems.len());
        let (texts, numbers, lists) = Default::default();
        let mut read = Table { origin, texts, numbers, lists };
        let mut pages = Pages::default();
        for (key, value) in table {
            let (found, here) = (key.get_ref().as_ref(), at(value.span().start));
            let Some(key_name) = kind.all_keys().find(|&it| it == found) else {
                let nearest = nearest(found, kind.all_keys()).map(|it| format!("{name}.{it}"));
                let fault =
                    format!("there is no key {name}.{}{}", found.escape_debug(), hint(nearest));
                self.refuse(at(key.span().start), fault);
                continue;
            };
            let raw = Raw::from_toml(value.get_ref());
            if kind.numbers.contains(&key_name) {
                if let Some(number) = raw.number().ok().and_then(|digits| digits.parse().ok()) {
                    read.numbers.insert(key_name, number);
                } else {
                    self.refuse_value([name, key_name], here, &raw, "a whole number");
                }
                continue;
            }
            if kind.lists.contains(&key_name) {
                if let Raw::List(list) = raw {
                    read.lists.insert(key_name, list);
                } else {
                    self.refuse_value([name, key_name], here, &raw, "an array of texts in quotes");
                }
                continue;
            }
            let Ok(text) = raw.text() else {
                self.refuse_value([name, key_name], here, &raw, "a text in quotes");
                continue;
            };
            let Some(pattern) = pages.pattern(key_name) else {
                read.texts.insert(key_name, text.to_owned());
                continue;
            };
            match Pattern::new(text) {
                Ok(compiled) => *pattern = Some(compiled),
                Err(reason) => {
                    let reason = format!("has {key_name} = {}: {reason}", raw.shown());
                    self.refuse_rule(name, here, &reason);
                }
            }
        }
        let has = |key: &str| table.iter().any(|(name, _)| name.get_ref() == key);
        if !kind.for_all && !Pages::KEYS.into_iter().any(has) {
            let keys = Pages::KEYS.join(", ");
            let reason = format!("is for no pages; give at least one of {keys}");
            self.refuse_rule(name, read.origin, &reason);
        } else if self.problems.len() == before
            && let Err(reason) = (kind.add)(self, &read, pages)
        {
            self.refuse_rule(name, read.origin, &reason);
        }
    }

    /// Refuses the value of a key of a rule. The names are those of the kind and of the key.
    fn refuse_value(&mut self, names: [&str; 2], origin: ValueOrigin, raw: &Raw, allowed: &str) {
        let ([kind, key], shown) = (names, raw.shown());
        self.refuse_rule(kind, origin, &format!("has {key} = {shown}; allowed: {allowed}"));
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}
