//! Values of all layers, and the source of typed values that takes them out of the layers.

use super::problem::{ConfigError, ValueOrigin, removed};
use super::raw::{Raw, ValueError};
use super::rule_kinds::{EffectiveRule, FoundRules};
use super::secret::{Secret, masked};
use super::value::{CRAWL, Rule};
use std::collections::{BTreeMap, BTreeSet};
use urlseen_core::redis::{RedisAddress, RedisAddressError};

/// Value of a key, with its origin.
pub(super) struct FoundValue {
    pub(super) raw: Raw,
    pub(super) origin: ValueOrigin,
}

/// Values of all layers. Later layers override earlier layers.
#[derive(Default)]
pub(super) struct Layers {
    /// Values of each key in the order of the layers. The last value is used, but all are checked.
    pub(super) found: BTreeMap<&'static str, Vec<FoundValue>>,
    /// Passwords and tokens from the environment, by their servers in [`SECRETS`].
    pub(super) secrets: BTreeMap<&'static str, Secret>,
    /// Rules of each kind, from the tables of the file.
    pub(super) rules: FoundRules,
    /// The same rules in the order of the file, as the file has them.
    pub(super) tables: Vec<EffectiveRule>,
    pub(super) problems: Vec<ConfigError>,
    /// True if a file could not be read. Then combinations of values cannot be checked.
    pub(super) incomplete: bool,
}

impl Layers {
    pub(super) fn refuse(&mut self, origin: ValueOrigin, fault: String) {
        self.problems.push(ConfigError { origin, fault });
    }
}

/// Origins of the values that were taken, by key. A default value has no origin.
pub(super) type Origins = BTreeMap<&'static str, ValueOrigin>;

/// Source of typed values by key.
pub(super) struct Taker {
    pub(super) layers: Layers,
    /// Value of `crawl.name`, from which defaults are derived.
    crawl: String,
    /// Origins of the values so far.
    pub(super) origins: Origins,
    /// Keys with a refused value.
    wrong: BTreeSet<&'static str>,
}

impl Taker {
    pub(super) fn new(layers: Layers) -> Self {
        let names = layers.found.get("crawl.name").into_iter().flatten();
        let crawl = names.rev().find_map(|name| CRAWL.read(&name.raw).ok());
        Self {
            layers,
            crawl: crawl.unwrap_or_else(|| "demo".to_owned()),
            origins: BTreeMap::new(),
            wrong: BTreeSet::new(),
        }
    }

    /// Takes the value of a key: the value of the last layer that sets the key, or else the
    /// default. If a value is refused, the returned value only helps to find further problems.
    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        rule: &impl Rule<T>,
        default: impl FnOnce(&str) -> T,
    ) -> T {
        let mut taken = None;
        for FoundValue { raw, origin } in self.layers.found.remove(key).unwrap_or_default() {
            let refusal = match rule.read(&raw) {
                Ok(value) => {
                    taken = Some(value);
                    self.origins.insert(key, origin);
                    continue;
                }
                Err(refusal) => refusal,
            };
            self.wrong.insert(key);
            let (found, kind, allowed) = (rule.shown(&raw), raw.kind(), rule.allowed());
            let fault = match refusal {
                ValueError::Type if found != kind => {
                    format!("{key} is {found}, {kind}; allowed: {allowed}")
                }
                ValueError::Type | ValueError::Value => removed(&format!("{key} = {found}"))
                    .unwrap_or_else(|| format!("{key} is {found}; allowed: {allowed}")),
                ValueError::Because(reason) => format!("{key} is {found}: {reason}"),
                ValueError::NotYet => format!(
                    "{key} is {found}, which is not in this version yet; allowed now: {allowed}"
                ),
            };
            self.layers.refuse(origin, fault);
        }
        taken.unwrap_or_else(|| default(&self.crawl))
    }

    /// Takes the rules of the file out of the layers.
    pub(super) fn take_rules(&mut self) -> FoundRules {
        std::mem::take(&mut self.layers.rules)
    }

    /// Puts the password from its own environment variable into the URL. This password replaces a
    /// password in the URL.
    pub(super) fn log_in(&mut self, url: RedisAddress) -> RedisAddress {
        let password = self.secret("redis").map(|secret| secret.reveal().to_owned());
        let url = url.with_password(password);
        if url.lacks_password() {
            // Masks the user in the URL, too: it may be a password in the wrong place.
            let found = masked(&url.to_string());
            let reason = RedisAddressError::NoPassword;
            self.refuse(&["redis.url"], format!("redis.url is {found:?}: {reason}"));
        }
        url
    }

    /// Takes the password or the token of a server.
    pub(super) fn secret(&mut self, server: &str) -> Option<Secret> {
        self.layers.secrets.remove(server)
    }

    pub(super) fn origin(&self, key: &str) -> ValueOrigin {
        self.origins.get(key).cloned().unwrap_or(ValueOrigin::Default)
    }

    /// Refuses the value of the first key, unless a value of one of the keys was already refused.
    pub(super) fn refuse(&mut self, keys: &[&str], fault: String) {
        if !keys.iter().any(|key| self.wrong.contains(key)) {
            self.layers.refuse(self.origin(keys[0]), fault);
        }
    }
}
