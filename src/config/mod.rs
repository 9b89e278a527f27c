//! Configuration. It is read, checked and converted to types before anything starts.
//!
//! ```text
//! defaults < file < environment < --set      later layers override earlier ones
//! ```
//!
//! The layers become one flat map from key to values with their origins. Then the rule of each key
//! takes its value from the map. All problems therefore show together, each with its origin. The
//! caller passes in the environment and the arguments of the process. There are no warnings: an
//! invalid value is refused.
//!
//! Rules such as `[[same]]` can be only in the file: no environment variable can name a list of
//! tables.
//!
//! `config.toml` at the root of the repository documents every key and holds the defaults.
//!
//! Each file imports only files before it: `problem`, `secret`, `raw`, `partitions`,
//! `host_port`, `value`, `rule_kinds`, `found`, `keys` (the table of keys), `unknown`, `rules`,
//! `layers`, `check`, `crawl`, `show`.

mod check;
mod crawl;
mod found;
mod host_port;
mod keys;
mod layers;
mod partitions;
mod problem;
mod raw;
mod rule_kinds;
mod rules;
mod secret;
mod show;
mod unknown;
mod value;

pub use host_port::HostPort;
#[cfg(test)]
pub(crate) use keys::KEYS;
pub use partitions::PartitionChoice;
pub use problem::{FilePlace, Problems, ValueOrigin, removed};
pub use rule_kinds::{EffectiveRule, Rules};
pub use secret::Secret;
pub use show::{Effective, EffectiveValue, toml_text};

pub use keys::{Config, Filter, Fingerprint, Serve, Sink, Source};

pub use urlseen_core::filter::choice::{
    Emit, End, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback, SourceKind,
    WhenFull, choose,
};

pub use urlseen_core::filter::Kind;
pub use urlseen_core::redis::protocol::SinkKind;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{FilterSpec, Parameters, SpecError};
use urlseen_core::fingerprint::FingerprintSpec;
use urlseen_core::redis::TlsFiles;
use urlseen_core::redis::protocol::Keys;
use urlseen_core::redis_filter::opening::{RedisOpenError, Wanted};
use urlseen_core::storage::header_of;

use found::{Layers, Origins};
use serde_json::Value as Json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the file that is read if the user names no file. This file may be missing.
pub(crate) const DEFAULT_FILE: &str = "config.toml";

/// Origins of a configuration.
#[derive(Debug, Default)]
pub struct Sources {
    /// Path from `--config`; `DEFAULT_FILE` if it is not given.
    pub file: Option<PathBuf>,
    /// Environment of the process. Variables that do not begin with `URLSEEN_` are ignored.
    pub env: Vec<(OsString, OsString)>,
    /// Argument `key=value` of each `--set`, in order.
    pub set: Vec<String>,
}

impl Config {
    /// Reads and checks a configuration. Apart from reading the file, this has no side effect.
    pub fn load(sources: Sources) -> Result<Self, Problems> {
        Self::load_for(sources, |_| None)
    }

    /// Reads and checks a configuration for this process. If the configuration exceeds a limit of
    /// the process, `machine` returns the key with the faulty value and the text of the problem.
    /// This problem is reported together with all other problems.
    pub fn load_for(
        sources: Sources,
        machine: impl FnOnce(&Self) -> Option<(&'static str, String)>,
    ) -> Result<Self, Problems> {
        Self::checked(Layers::read(sources), machine).map(|(config, _)| config)
    }

    /// Returns the names of the crawl's keys in Redis.
    pub fn keys(&self) -> Keys {
        let Self { source, sink, rejects, forget, .. } = self;
        Keys::new(&source.key, &sink.key, &rejects.key, &forget.key)
    }

    /// Returns the spec of the configured fingerprints.
    pub fn fingerprint_spec(&self) -> FingerprintSpec {
        let Fingerprint { algorithm, keep_fragments, drop_tracking } = self.fingerprint;
        FingerprintSpec { algorithm, keep_fragments, drop_tracking, same: self.rules.same.clone() }
    }

    /// Sets the spec of the fingerprints.
    pub fn computed_by(&mut self, spec: FingerprintSpec) {
        let FingerprintSpec { algorithm, keep_fragments, drop_tracking, same } = spec;
        self.fingerprint = Fingerprint { algorithm, keep_fragments, drop_tracking };
        self.rules.same = same;
    }

    /// Returns the spec of the configured filter.
    ///
    /// # Errors
    /// Returns an error if no such filter can exist.
    pub fn filter_spec(&self) -> Result<FilterSpec, SpecError> {
        FilterSpec::read(|name| self.part(name))
    }

    /// Returns one part of the filter's spec. `name` is its name, such as `filter.capacity`.
    pub fn part(&self, name: &str) -> Option<String> {
        match name {
            "fingerprint.same" => return Some(self.rules.same.to_string()),
            "partitions.count" => return Some(self.partition.count().to_string()),
            _ => {}
        }
        let (_, value) = self.values().into_iter().find(|(key, _)| *key == name)?;
        match value {
            Json::String(text) => Some(text).filter(|it| !["", "random"].contains(&&**it)),
            value => Some(value.to_string()),
        }
    }

    /// Returns the configured filter in Redis.
    ///
    /// # Errors
    /// Returns an error if no such filter can exist.
    pub fn redis_filter(&self) -> Result<Wanted, RedisOpenError> {
        Wanted::new(&self.filter.key, self.filter_spec()?)
    }

    /// Returns the number of fingerprints that a filter with these parameters is made for. With
    /// more fingerprints, its error rate is too high, or it takes more than `filter.max_memory`.
    /// Returns `None` if it may take as much memory as there is.
    pub fn limit(&self, parameters: &Parameters) -> Option<u64> {
        // If other settings than the capacity determine the size, the limit is the configured
        // capacity.
        let capacity = || parameters.capacity().unwrap_or(self.filter.capacity);
        let by_rate = parameters.field("filter.grow_to");
        let by_rate = by_rate.or_else(|| (!parameters.grows()).then(capacity));
        let max_memory = Some(self.filter.max_memory).filter(|&it| it > 0 && parameters.grows());
        by_rate.into_iter().chain(max_memory.map(|it| parameters.keys_within(it))).min()
    }

    /// Takes the configuration out of the layers, and checks it. Also returns the origins of the
    /// values that are no defaults.
    fn checked(
        mut layers: Layers,
        machine: impl FnOnce(&Self) -> Option<(&'static str, String)>,
    ) -> Result<(Self, Origins), Problems> {
        let mut config = Self::take(&mut layers);
        config.set_filter_defaults(&mut layers.origins);
        config.redis.url = layers.log_in(config.redis.url);
        let (ca, cert) = (config.redis.tls_ca.clone(), config.redis.tls_cert.clone());
        let files = TlsFiles { ca, cert, key: config.redis.tls_key.clone() };
        config.redis.url = config.redis.url.with_tls(files);
        config.find_node();
        let origins = layers.check(&config, machine(&config))?;
        Ok((config, origins))
    }

    /// Returns the same configuration with another source.
    #[must_use]
    pub fn with_source(&self, key: &str) -> Self {
        let mut config = self.clone();
        key.clone_into(&mut config.source.key);
        config.find_node();
        config
    }

    /// Sets the key that finds the node of a cluster.
    fn find_node(&mut self) {
        // While a slot is being moved, Redis names the new node only in reply to a command about a
        // missing key. No program has a key of this name.
        let key = format!("{}:missing", self.keys().state);
        self.redis.url = self.redis.url.for_key(&key);
    }
}

impl Config {
    /// Sets the kind, the capacity and the error rate of the filter, unless a layer sets them. An
    /// existing storage folder keeps kind and error rate. `origins` are those of the values that a
    /// layer sets.
    pub(super) fn set_filter_defaults(&mut self, origins: &mut Origins) {
        let recorded = self.recorded();
        if !origins.contains_key("filter.kind") {
            if let Some((spec, folder)) = &recorded {
                self.filter.kind = spec.kind();
                origins.insert("filter.kind", folder.clone());
            } else if self.filter.place == FilterPlace::Redis {
                self.filter.kind = NATIVE;
            }
        }
        let kind = self.filter.kind;
        if !origins.contains_key("filter.capacity") {
            self.filter.capacity = Filter::default_capacity(kind);
        }
        if !origins.contains_key("filter.error_rate") {
            self.filter.error_rate = Filter::default_error_rate(kind);
            if let Some((spec, folder)) = recorded.filter(|(spec, _)| spec.kind() == kind)
                && let Some(error_rate) = spec.parameters.field("filter.error_rate")
            {
                self.filter.error_rate = error_rate;
                origins.insert("filter.error_rate", folder);
            }
        }
    }

    /// Returns the spec in the first storage folder of the crawl that records one, and this folder.
    /// A folder that cannot be read is reported when the filter is opened.
    fn recorded(&self) -> Option<(FilterSpec, ValueOrigin)> {
        if self.filter.place == FilterPlace::Redis {
            return None;
        }
        let partitions = self.partitions.count.partitions();
        partitions.map(|partition| self.of_partition(partition).storage.dir).find_map(|dir| {
            let header = header_of(&dir).ok().flatten()?;
            Some((header.spec().filter.clone(), ValueOrigin::Folder(Arc::from(dir))))
        })
    }
}

impl Filter {
    /// Returns the default capacity of a kind. A filter that grows in small steps begins small.
    pub fn default_capacity(kind: Kind) -> u64 {
        if kind == Kind::TWO_CHOICE { 100_000 } else { 10_000_000 }
    }

    /// Returns the default error rate of a kind. It is lower for a filter that grows: while such a
    /// filter fills, its error rate is proportional to the number of its fingerprints, and that of
    /// a Bloom filter stays far below this line. With these error rates, a crawl of `grow_to` URLs
    /// loses fewer of them with the kind `two-choice` than with a native filter of this capacity.
    pub fn default_error_rate(kind: Kind) -> f64 {
        if kind == Kind::TWO_CHOICE { 1e-7 } else { 1e-6 }
    }
}

#[cfg(test)]
mod tests;
