//! Tables of rules in the file: `[[pass]]`, `[[drop]]` and `[[expire]]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expire::ExpireRule;
use super::layers::{Layers, hint};
use super::named::NamedRule;
use super::nearest::nearest;
use super::pages::{Pages, Pattern};
use super::problem::ValueOrigin;
use super::raw::Raw;

/// Maximum number of rules of a kind in a configuration.
const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Keys that a rule may have besides those of [`Pages`].
    keys: &'static [&'static str],
    /// Adds a rule to the layers. The error is the reason why the rule is refused.
    add: fn(&mut Layers, &Table, Pages) -> Result<(), String>,
}

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 3] = [
    RuleKind {
        name: "pass",
        keys: &["name"],
        add: |layers, table, pages| NamedRule::add(&mut layers.pass, table, pages),
    },
    RuleKind {
        name: "drop",
        keys: &["name"],
        add: |layers, table, pages| NamedRule::add(&mut layers.drop, table, pages),
    },
    RuleKind {
        name: "expire",
        keys: &["expire_after"],
        add: |layers, table, pages| {
            layers.expire.push(ExpireRule::read(table, pages)?);
            Ok(())
        },
    },
];

impl RuleKind {
    /// Iterates over all keys that a rule may have.
    fn all_keys(self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().copied().chain(Pages::KEYS)
    }
}

/// Texts of a rule in the file.
pub(super) struct Table {
    /// Place of the rule in the file.
    pub(super) origin: ValueOrigin,
    texts: BTreeMap<&'static str, String>,
}

impl Table {
    /// Returns the text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
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
        let (mut texts, mut pages) = (BTreeMap::new(), Pages::default());
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
            let Ok(text) = raw.text() else {
                let reason = format!("has {key_name} = {}; allowed: a text in quotes", raw.shown());
                self.refuse_rule(name, here, &reason);
                continue;
            };
            let Some(pattern) = pages.pattern(key_name) else {
                texts.insert(key_name, text.to_owned());
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
        if !Pages::KEYS.into_iter().any(has) {
            let keys = Pages::KEYS.join(", ");
            let reason = format!("is for no pages; give at least one of {keys}");
            self.refuse_rule(name, origin, &reason);
        } else if self.problems.len() == before {
            let table = Table { origin, texts };
            if let Err(reason) = (kind.add)(self, &table, pages) {
                self.refuse_rule(name, table.origin, &reason);
            }
        }
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}
