//! The configuration: read, checked and typed before anything starts.
//!
//! ```text
//! defaults < file < environment < --set      later ones go before earlier ones
//! ```
//!
//! The layers become one flat map from key to values with their origins; every key is then taken
//! out by its rule. So all problems show at once, each with the place it comes from. Nothing here
//! reads the process's environment or arguments: they are handed in. Nothing is warned about: what
//! is not right is refused.
//!
//! Rules, `[[pass]]`, are only in the file: a list of tables has no name for a variable.
//!
//! `config.toml` at the root of the repository documents every key and holds the defaults.

mod check;
mod host_names;
mod host_port;
mod layers;
mod mask;
mod nearest;
mod pass;
mod problem;
mod raw;
mod secret;
mod sections;
mod seed;
mod span;
mod value;

pub use host_port::HostPort;
pub use pass::PassRule;
pub(crate) use pass::host_and_path;
pub use problem::{Fault, FilePlace, Problems};
pub use secret::Secret;
pub use sections::Config;
#[cfg(test)]
pub(crate) use sections::KEYS;
pub use sections::Sink;
pub(crate) use sections::Source;
pub use sections::{Filter, Fingerprint};
pub use seed::SeedChoice;

pub use urlseen_core::filter::choice::{
    Emit, End, FilterKind, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback,
    SinkKind, SourceKind, WhenFull, choose,
};

use urlseen_core::filter::Seed;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis_filter::definition::Settings;

use check::Taker;
use layers::Layers;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that is read where none is named, if it is there.
pub(crate) const DEFAULT_FILE: &str = "config.toml";

/// Where a configuration comes from.
pub struct Sources<E> {
    /// `--config`; [`DEFAULT_FILE`] if it is not given.
    pub file: Option<PathBuf>,
    /// The environment, all of it: what does not begin with `URLSEEN_` is left alone.
    pub env: E,
    /// The `key=value` of each `--set`, in order.
    pub set: Vec<String>,
}

impl Config {
    /// Reads and checks a configuration. Reads the file, and touches nothing else.
    pub fn load<E, K, V>(sources: Sources<E>) -> Result<Self, Problems>
    where
        E: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        Self::load_for(sources, |_| None)
    }

    /// The same for a process that works by it. `machine` tells what of it this process is not
    /// granted, and the key to name; it is told with everything else that is wrong.
    pub fn load_for<E, K, V>(
        sources: Sources<E>,
        machine: impl FnOnce(&Self) -> Option<(&'static str, Fault)>,
    ) -> Result<Self, Problems>
    where
        E: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let mut layers = Layers::default();
        match &sources.file {
            Some(path) => layers.add_file(path, true),
            None => layers.add_file(Path::new(DEFAULT_FILE), false),
        }
        layers.add_environment(sources.env);
        layers.add_set(&sources.set);
        Self::checked(layers, machine)
    }

    /// Names of the crawl's keys in Redis.
    pub fn keys(&self) -> Keys {
        Keys::new(&self.source.key, &self.sink.key, &self.rejects.key, &self.forget.key)
    }

    /// Sets the filter to what one in Redis was made for.
    pub fn made_for(&mut self, settings: &Settings) {
        let Settings { kind, capacity, error_rate, bit, hash_number, block_num, .. } = *settings;
        let filter = &mut self.filter;
        (filter.kind, filter.capacity, filter.error_rate) = (kind, capacity, error_rate);
        (filter.bit, filter.hash_number, filter.block_num) = (bit, hash_number, block_num);
    }

    fn checked(
        layers: Layers,
        machine: impl FnOnce(&Self) -> Option<(&'static str, Fault)>,
    ) -> Result<Self, Problems> {
        let mut taker = Taker::new(layers);
        let mut config = Self::take(&mut taker);
        config.redis.url = taker.log_in(config.redis.url);
        match taker.finish(&config, machine(&config)) {
            None => Ok(config),
            Some(problems) => Err(problems),
        }
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let Config { filter, fingerprint, .. } = config;
        Self {
            key: filter.key.clone(),
            kind: filter.kind,
            capacity: filter.capacity,
            error_rate: filter.error_rate,
            seed: match filter.seed {
                SeedChoice::Random => None,
                SeedChoice::Fixed(seed) => Some(Seed::new(seed)),
            },
            bit: filter.bit,
            hash_number: filter.hash_number,
            block_num: filter.block_num,
            algorithm: fingerprint.algorithm,
            keep_fragments: fingerprint.keep_fragments,
        }
    }
}

#[cfg(test)]
mod tests;
