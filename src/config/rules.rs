//! Tables of rules in the file: `[[same]]`, `[[pass]]`, `[[drop]]`, `[[limit]]` and `[[expire]]`.

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::found::Layers;
use super::problem::ValueOrigin;
use super::rule_kinds::{EffectiveRule, MOST, RuleKind, Rules, Values, read};
use super::unknown::{hint, nearest};
use super::value::Raw;
use urlseen_fingerprint::rule_pages::Pages;

impl Rules {
    /// Reads rules from JSON: an object with the kinds, each with a list of its rules.
    ///
    /// # Errors
    /// Returns the reasons why rules are refused.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let tables: toml::Table = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut layers = Layers::default();
        layers.add_toml("".as_ref(), &tables.to_string());
        if !layers.rules.limits.is_empty() && !layers.rules.expire.is_empty() {
            let reason = "cannot be used with [[expire]], because pages that pass again would use \
                          the limits up";
            layers.refuse_rule("limit", ValueOrigin::Default, reason);
        }
        let faults: Vec<_> = layers.problems.0.into_iter().map(|(_, fault)| fault).collect();
        if faults.is_empty() { Ok(layers.rules) } else { Err(faults.join("; ")) }
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
            let found = Raw::from_toml(value.get_ref()).kind;
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
                    let found = Raw::from_toml(other).kind;
                    let reason = format!("holds {found}; allowed: {}", kind.keys().join(", "));
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
        let (name, before) = (kind.name, self.problems.0.len());
        let (mut values, mut pages) = (Values::new(), Pages::default());
        for (key, value) in table {
            let (found, here) = (key.get_ref().as_ref(), at(value.span().start));
            let keys = kind.keys();
            let Some(&key) = keys.iter().find(|it| **it == found) else {
                let known = format!("[[{name}]] has the keys {}", keys.join(", "));
                let nearest = nearest(found, keys).map(|it| format!("{name}.{it}"));
                let (found, hint) = (found.escape_debug(), hint(nearest, &known));
                let fault = format!("there is no key {name}.{found}{hint}");
                self.refuse(at(key.span().start), fault);
                continue;
            };
            let raw = Raw::from_toml(value.get_ref());
            let value = read(key, &raw, &mut pages).unwrap_or_else(|reason| {
                self.refuse_rule(name, here, &format!("has {key} = {reason}"));
                Json::Null
            });
            values.insert(key, value);
        }
        if !kind.for_all && !Pages::KEYS.into_iter().any(|key| values.contains_key(key)) {
            let keys = Pages::KEYS.join(", ");
            let reason = format!("is for no pages; give at least one of {keys}");
            self.refuse_rule(name, origin, &reason);
        } else if self.problems.0.len() == before {
            match (kind.add)(&mut self.rules, &values, pages) {
                Ok(()) => self.tables.push(EffectiveRule { kind: name, origin, values }),
                Err(reason) => self.refuse_rule(name, origin, &reason),
            }
        }
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}
