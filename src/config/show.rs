//! Effective configuration: the value of each key, with its origin.

use serde::Serialize;
use serde_json::Value as Json;

use super::found::Layers;
use super::keys::Config;
use super::layers::{SECRETS, Sources};
use super::problem::{Problems, ValueOrigin};
use super::rule_kinds::EffectiveRule;

/// Values of a configuration with their origins. It contains no password.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// Values of all keys, in the order of the documentation.
    pub values: Vec<EffectiveValue>,
    /// Rules in the order of their kinds and of the file.
    pub rules: Vec<EffectiveRule>,
    /// Passwords that are set: the server that they are for, and their origin.
    pub passwords: Vec<(&'static str, ValueOrigin)>,
}

/// Value of a key after all layers, with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectiveValue {
    /// The key, `section.key`.
    #[serde(skip)]
    pub key: &'static str,
    /// The value in the form that a file has.
    pub value: Json,
    /// Layer that set the value, or the default.
    #[serde(rename = "from")]
    pub origin: ValueOrigin,
}

impl Effective {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// The configuration is refused.
    pub fn load(sources: Sources) -> Result<Self, Problems> {
        Self::of(Layers::read(sources))
    }

    /// Checks the values of all layers.
    pub(super) fn of(layers: Layers) -> Result<Self, Problems> {
        let rules = layers.tables.clone();
        let from_environment = SECRETS.map(|(server, _)| layers.secrets.contains_key(server));
        let (config, origins) = Config::checked(layers, |_| None)?;
        let origin = |key| origins.get(key).cloned().unwrap_or(ValueOrigin::Default);
        let values = config.values().into_iter();
        let values = values.map(|(key, value)| EffectiveValue { key, value, origin: origin(key) });
        let has_password = config.redis.url.password.is_some();
        let passwords = SECRETS.into_iter().zip(from_environment);
        let passwords = passwords.filter_map(|((server, variable), is_variable)| match server {
            _ if is_variable => Some((server, ValueOrigin::Environment(variable.to_owned()))),
            "redis" if has_password => Some((server, origin("redis.url"))),
            _ => None,
        });
        Ok(Self { values: values.collect(), rules, passwords: passwords.collect() })
    }

    /// Returns a configuration file with these values and rules. The passwords are not in it.
    pub fn to_toml(&self) -> String {
        let mut lines = Vec::new();
        let mut last = "";
        for EffectiveValue { key, value, origin } in &self.values {
            let (section, key) = key.split_once('.').expect("section.key");
            if section != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                lines.push(format!("{gap}[{section}]\n"));
                last = section;
            }
            let origin = Some(origin).filter(|it| **it != ValueOrigin::Default);
            let origin = origin.map(comment).unwrap_or_default();
            lines.push(format!("{key} = {}{origin}\n", toml_text(value)));
        }
        for EffectiveRule { kind, origin, values } in &self.rules {
            lines.push(format!("\n[[{kind}]]{}\n", comment(origin)));
            let line = |(key, value): (&&str, &Json)| format!("{key} = {}\n", toml_text(value));
            lines.extend(values.iter().map(line));
        }
        lines.concat()
    }
}

/// Returns a comment with an origin, on one line.
fn comment(origin: &ValueOrigin) -> String {
    format!("  # {}", origin.to_string().escape_debug())
}

/// Returns a value in the syntax of TOML.
pub(crate) fn toml_text(value: &Json) -> String {
    match value {
        Json::String(_) | Json::Array(_) => {
            toml::Value::try_from(value).expect("texts have a form in TOML").to_string()
        }
        // Numbers and booleans have the same syntax in both languages.
        other => other.to_string(),
    }
}
