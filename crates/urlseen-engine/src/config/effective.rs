//! Effective configuration: the value of each key, with its origin.

use std::fmt::Write;

use serde_json::Value as Json;

use super::layers::{ADMIN_TOKEN, Layers, PASSWORD, SERVE_PASSWORD};
use super::problem::ValueOrigin;
use super::{Config, Problems, Sources};

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
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveValue {
    /// The key, `section.key`.
    pub key: &'static str,
    /// The value in the form that a file has.
    pub value: Json,
    /// Layer that set the value, or the default.
    pub origin: ValueOrigin,
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

impl Effective {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// The configuration is refused.
    pub fn load(sources: Sources) -> Result<Self, Problems> {
        Self::of(Layers::read(sources))
    }

    /// Checks the values of all layers.
    pub(super) fn of(mut layers: Layers) -> Result<Self, Problems> {
        let rules = std::mem::take(&mut layers.tables);
        let variable = |name: &str| ValueOrigin::Environment(name.to_owned());
        let password = layers.password.as_ref().map(|_| variable(PASSWORD));
        let serve_password = layers.serve_password.as_ref().map(|_| variable(SERVE_PASSWORD));
        let admin_token = layers.admin_token.as_ref().map(|_| variable(ADMIN_TOKEN));
        let (config, mut origins) = Config::checked(layers, |_| None)?;
        let mut origin = |key| origins.remove(key).unwrap_or(ValueOrigin::Default);
        let values = config.values().into_iter();
        let values: Vec<_> =
            values.map(|(key, value)| EffectiveValue { key, value, origin: origin(key) }).collect();
        let password = config.redis.url.password().and_then(|_| {
            let url = values.iter().find(|it| it.key == "redis.url");
            password.or(url.map(|it| it.origin.clone()))
        });
        let passwords =
            [("redis", password), ("serve", serve_password), ("admin", admin_token)].into_iter();
        let passwords = passwords.filter_map(|(server, origin)| Some((server, origin?))).collect();
        Ok(Self { values, rules, passwords })
    }

    /// Returns a configuration file with these values and rules. The passwords are not in it.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut write = |line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("a string can be written");
        };
        let mut last = "";
        for EffectiveValue { key, value, origin } in &self.values {
            let (section, key) = key.split_once('.').expect("section.key");
            if section != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                write(format_args!("{gap}[{section}]\n"));
                last = section;
            }
            match origin {
                ValueOrigin::Default => write(format_args!("{key} = {}\n", toml_text(value))),
                origin => {
                    write(format_args!("{key} = {}  # {}\n", toml_text(value), comment(origin)));
                }
            }
        }
        for EffectiveRule { kind, origin, values } in &self.rules {
            write(format_args!("\n[[{kind}]]  # {}\n", comment(origin)));
            for (key, value) in values {
                write(format_args!("{key} = {}\n", toml_text(value)));
            }
        }
        text
    }
}

/// Returns an origin on one line.
fn comment(origin: &ValueOrigin) -> String {
    origin.to_string().escape_debug().to_string()
}

/// Returns a value in the syntax of TOML.
pub fn toml_text(value: &Json) -> String {
    match value {
        Json::String(text) => toml::Value::String(text.clone()).to_string(),
        Json::Array(values) => {
            let values: Vec<_> = values.iter().map(toml_text).collect();
            format!("[{}]", values.join(", "))
        }
        // Numbers and booleans have the same syntax in both languages.
        other => other.to_string(),
    }
}
