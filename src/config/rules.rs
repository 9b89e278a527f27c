//! Tables of rules in the file: `[[same]]`, `[[pass]]`, `[[drop]]`, `[[limit]]` and `[[expire]]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::ValueOrigin;
use super::raw::Raw;
use super::rule_kinds::{EffectiveRule, MOST, RuleKey, RuleKind, Table, ValueForm};
use super::taker::Layers;
use super::unknown::{hint, nearest};
use urlseen_core::fingerprint::pages::{Pages, Pattern};

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
        let mut read = Table { origin, values: BTreeMap::new() };
        let mut pages = Pages::default();
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
            if let Err(reason) = check(key, &raw, &mut pages) {
                let reason = format!("has {} = {}{reason}", key.name, raw.shown());
                self.refuse_rule(name, here, &reason);
            }
            read.values.insert(key.name, raw);
        }
        if !kind.for_all && !Pages::KEYS.into_iter().any(|key| read.values.contains_key(key)) {
            let keys = Pages::KEYS.join(", ");
            let reason = format!("is for no pages; give at least one of {keys}");
            self.refuse_rule(name, read.origin, &reason);
        } else if self.problems.len() == before
            && let Err(reason) = (kind.add)(&mut self.rules, &read, pages)
        {
            self.refuse_rule(name, read.origin, &reason);
        } else if self.problems.len() == before {
            let values = read.values.iter().map(|(key, raw)| (*key, raw.to_json())).collect();
            self.tables.push(EffectiveRule { kind: name, origin: read.origin, values });
        }
    }

    pub(super) fn refuse_rule(&mut self, kind: &str, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[{kind}]] {reason}"));
    }
}

/// Checks the value of a key, and adds a pattern to the pages of its rule.
///
/// # Errors
/// Returns the reason why the value is refused.
fn check(key: RuleKey, raw: &Raw, pages: &mut Pages) -> Result<(), String> {
    let is_right = match key.form {
        ValueForm::Pattern | ValueForm::Text => raw.text().is_ok(),
        ValueForm::Number => raw.number().is_ok_and(|it| it.parse::<u64>().is_ok()),
        ValueForm::List => raw.list().is_some(),
    };
    if !is_right {
        return Err(format!("; allowed: {}", key.form.allowed()));
    }
    if let (Some(pattern), Ok(text)) = (pages.pattern(key.name), raw.text()) {
        *pattern = Some(Pattern::new(text).map_err(|reason| format!(": {reason}"))?);
    }
    Ok(())
}
