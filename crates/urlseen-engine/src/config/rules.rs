//! Tables of rules in the file: `[[same]]`, `[[pass]]`, `[[drop]]`, `[[limit]]` and `[[expire]]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::effective::EffectiveRule;
use super::expire::ExpireRule;
use super::layers::Layers;
use super::named::NamedRule;
use super::problem::ValueOrigin;
use super::raw::Raw;
use super::rule_kinds::{MOST, RuleKind, ValueForm};
use super::unknown::hint;
use super::unknown::nearest;
use urlseen_core::fingerprint::pages::{Pages, Pattern};
use urlseen_core::fingerprint::same::SameRule;
use urlseen_core::limit::LimitRule;

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
                    let keys: Vec<_> = kind.names().collect();
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
        let (mut pages, mut values) = (Pages::default(), Vec::new());
        for (key, value) in table {
            let (found, here) = (key.get_ref().as_ref(), at(value.span().start));
            let Some(key) = kind.all_keys().find(|it| it.name == found) else {
                let nearest = nearest(found, kind.names()).map(|it| format!("{name}.{it}"));
                let known: Vec<_> = kind.names().collect();
                let known = format!("[[{name}]] has the keys {}", known.join(", "));
                let fault = format!(
                    "there is no key {name}.{}{}",
                    found.escape_debug(),
                    hint(nearest, &known)
                );
                self.refuse(at(key.span().start), fault);
                continue;
            };
            let raw = Raw::from_toml(value.get_ref());
            values.push((key.name, raw.to_json()));
            let is_read = match key.form {
                ValueForm::Pattern => raw.text().is_ok_and(|text| {
                    self.add_pattern(kind, key.name, text, &mut pages, here.clone());
                    true
                }),
                ValueForm::Text => raw.text().is_ok_and(|text| {
                    read.texts.insert(key.name, text.to_owned());
                    true
                }),
                ValueForm::Number => {
                    let number = raw.number().ok().and_then(|digits| digits.parse().ok());
                    number.map(|number| read.numbers.insert(key.name, number)).is_some()
                }
                ValueForm::List => match &raw {
                    Raw::List(list) => {
                        read.lists.insert(key.name, list.clone());
                        true
                    }
                    _ => false,
                },
            };
            if !is_read {
                let (shown, allowed) = (raw.shown(), key.form.allowed());
                let reason = format!("has {} = {shown}; allowed: {allowed}", key.name);
                self.refuse_rule(name, here, &reason);
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
        } else {
            self.tables.push(EffectiveRule { kind: name, origin: read.origin, values });
        }
    }

    /// Adds the pattern of a rule to its pages.
    fn add_pattern(
        &mut self,
        kind: RuleKind,
        key: &str,
        text: &str,
        pages: &mut Pages,
        origin: ValueOrigin,
    ) {
        match Pattern::new(text) {
            Ok(compiled) => {
                if let Some(pattern) = pages.pattern(key) {
                    *pattern = Some(compiled);
                }
            }
            Err(reason) => {
                let shown = Raw::String(text.to_owned()).shown();
                self.refuse_rule(kind.name, origin, &format!("has {key} = {shown}: {reason}"));
            }
        }
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}
