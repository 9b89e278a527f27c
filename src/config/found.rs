//! Values that were found in all layers, which the table of keys takes with their types.

use super::problem::{Problems, ValueOrigin};
use super::rule_kinds::{EffectiveRule, Rules};
use super::secret::{Secret, masked};
use super::value::{Raw, Rule};
use std::collections::{BTreeMap, BTreeSet};
use urlseen_redis::{RedisAddress, RedisAddressError};

/// Values of all layers. Later layers override earlier layers.
#[derive(Default)]
pub(super) struct Layers {
    /// Values of each key with their origins, in the order of the layers. The last value is used,
    /// but all are checked.
    pub(super) found: BTreeMap<&'static str, Vec<(Raw, ValueOrigin)>>,
    /// Passwords and tokens from the environment, by their servers in
    /// [`SECRETS`](super::layers::SECRETS).
    pub(super) secrets: BTreeMap<&'static str, Secret>,
    /// Rules of each kind, from the tables of the file.
    pub(super) rules: Rules,
    /// The same rules in the order of the file, as the file has them.
    pub(super) tables: Vec<EffectiveRule>,
    pub(super) problems: Problems,
    /// True if a file could not be read. Then combinations of values cannot be checked.
    pub(super) incomplete: bool,
    /// Origins of the values that were taken, by key. A default value has no origin.
    pub(super) origins: Origins,
    /// Keys with a refused value.
    wrong: BTreeSet<&'static str>,
}

/// Origins of values, by key.
pub(super) type Origins = BTreeMap<&'static str, ValueOrigin>;

impl Layers {
    pub(super) fn refuse(&mut self, origin: ValueOrigin, fault: String) {
        self.problems.0.push((origin, fault));
    }

    /// Takes the value of a key: the value of the last layer that sets the key. If a value is
    /// refused, the returned value only helps to find further problems.
    pub(super) fn take<T: 'static>(&mut self, key: &'static str, rule: &Rule<T>) -> Option<T> {
        let mut taken = None;
        for (raw, origin) in self.found.remove(key).unwrap_or_default() {
            let shown = if key == "redis.url" { raw.masked() } else { raw.shown() };
            match rule.read(&raw, &shown) {
                Ok(value) => {
                    taken = Some(value);
                    self.origins.insert(key, origin);
                }
                Err(fault) => {
                    self.wrong.insert(key);
                    self.refuse(origin, format!("{key} is {fault}"));
                }
            }
        }
        taken
    }

    /// Puts the password from its own environment variable into the URL. This password replaces a
    /// password in the URL.
    pub(super) fn log_in(&mut self, url: RedisAddress) -> RedisAddress {
        let password = self.secrets.remove("redis").map(|secret| secret.reveal().to_owned());
        let url = url.with_password(password);
        if url.lacks_password() {
            // Masks the user in the URL, too: it may be a password in the wrong place.
            let found = masked(&url.to_string());
            let reason = RedisAddressError::NoPassword;
            self.refuse_key(&["redis.url"], format!("redis.url is {found:?}: {reason}"));
        }
        url
    }

    pub(super) fn origin(&self, key: &str) -> ValueOrigin {
        self.origins.get(key).cloned().unwrap_or(ValueOrigin::Default)
    }

    /// Refuses the value of the first key, unless a value of one of the keys was already refused.
    pub(super) fn refuse_key(&mut self, keys: &[&str], fault: String) {
        if !keys.iter().any(|key| self.wrong.contains(key)) {
            self.refuse(self.origin(keys[0]), fault);
        }
    }
}
