//! Tables of rules in the file: `[[pass]]` and `[[expire]]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expire::ExpireRule;
use super::layers::{Layers, hint};
use super::nearest::nearest;
use super::pages::{Pages, Pattern};
use super::pass::PassRule;
use super::problem::ValueOrigin;
use super::raw::Raw;

/// Maximum number of rules of a kind in a configuration.
const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Keys that a rule may have.
    keys: [&'static str; 3],
    add: fn(&mut Layers, Table, Pages),
}

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 2] = [
    RuleKind { name: "pass", keys: ["name", "host", "path"], add: PassRule::add },
    RuleKind { name: "expire", keys: ["host", "path", "expire_after"], add: ExpireRule::add },
];

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
        let RuleKind { name, keys, .. } = kind;
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
                    let [one, two, three] = keys;
                    let reason = format!("holds {found}; allowed: {one}, {two} and {three}");
                    self.refuse_rule(name, origin, &reason);
                }
            }
        }
    }

    fn add_rule(
        &mut self,
        RuleKind { name, keys, add }: RuleKind,
        table: &DeTable<'_>,
        origin: ValueOrigin,
        at: &impl Fn(usize) -> ValueOrigin,
    ) {
        let before = self.problems.len();
        let (mut texts, mut pages) = (BTreeMap::new(), Pages::default());
        for (key, value) in table {
            let (found, here) = (key.get_ref().as_ref(), at(value.span().start));
            let Some(&key_name) = keys.iter().find(|&&it| it == found) else {
                let nearest = nearest(found, keys).map(|it| format!("{name}.{it}"));
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
            let pattern = match key_name {
                "host" => &mut pages.host,
                "path" => &mut pages.path,
                _ => {
                    texts.insert(key_name, text.to_owned());
                    continue;
                }
            };
            match Pattern::new(text) {
                Ok(compiled) => *pattern = Some(compiled),
                Err(reason) => {
                    let reason = format!("has {key_name} = {}: {reason}", raw.shown());
                    self.refuse_rule(name, here, &reason);
                }
            }
        }
        if self.problems.len() == before {
            add(self, Table { origin: origin.clone(), texts }, pages);
        }
        let has = |key: &str| table.iter().any(|(name, _)| name.get_ref() == key);
        if !has("host") && !has("path") {
            let reason = "has neither host nor path; give at least one of them";
            self.refuse_rule(name, origin, reason);
        }
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}
