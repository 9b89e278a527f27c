//! Options that commands share: the sources of the configuration, and the storage folder.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use urlseen_core::filter::choice::Choice;
use urlseen_engine::config::{Config, FilterPlace, Problems, Sources, choose};

use super::start;
use urlseen_engine::item::Options;

/// Returns a parser of the words of a choice that `is_allowed` permits. The help and the errors of
/// clap list these words.
pub(super) fn word<T: Choice + Send + Sync>(
    is_allowed: fn(&T) -> bool,
) -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter().filter(move |(_, choice)| is_allowed(choice)).map(|(word, _)| *word);
    PossibleValuesParser::new(words).try_map(|word| choose(&word))
}

/// Sources of the configuration, besides the environment.
#[derive(Debug, clap::Args)]
pub(super) struct Layers {
    /// The configuration file. Default: ./config.toml, if it exists
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the configuration, for example filter.capacity=1e9. The option can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Layers {
    /// Returns the sources, with the environment and the additional settings `KEY=VALUE` in
    /// `more`.
    pub(super) fn sources(&self, more: &[String]) -> Sources {
        let (file, set) = (self.config.clone(), [&self.set, more].concat());
        Sources { file, env: std::env::vars_os().collect(), set }
    }
}

/// Sources of the configuration, and the choice of a partition.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    #[command(flatten)]
    layers: Layers,
    /// Work only on this partition, if the crawl has several (partitions.count). The first one has
    /// the number 0
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u16>,
}

impl Settings {
    /// Reads and checks the configuration, for a command that works on one partition: the one that
    /// the user named, or the only one of the crawl.
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        let mut partitions = self.load_all()?;
        let config = partitions.pop().filter(|_| partitions.is_empty());
        config.ok_or_else(|| {
            start::usage(
                "the crawl has several partitions (partitions.count): name one with --partition",
            )
        })
    }

    /// Reads and checks the configuration, for a command that works on all partitions, or on the
    /// one that the user named. Returns their configurations in order.
    pub(super) fn load_all(&self) -> anyhow::Result<Vec<Config>> {
        self.partitions_of(&self.load_crawl()?)
    }

    /// Reads and checks the configuration of the whole crawl.
    pub(super) fn load_crawl(&self) -> Result<Config, Problems> {
        self.load_for(&[], |_| None)
    }

    /// Returns the configurations of all partitions of `crawl`, or of the one that the user named.
    pub(super) fn partitions_of(&self, crawl: &Config) -> anyhow::Result<Vec<Config>> {
        let Some(number) = self.partition else { return Ok(crawl.all_partitions().collect()) };
        let partition = crawl.partitions.count.partitions().nth(number.into());
        let partition = partition.ok_or_else(|| {
            let count = crawl.partitions.count;
            start::usage(format!(
                "--partition is {number}, and partitions.count is {count}: the partitions have the \
                 numbers 0 to {}",
                count.get() - 1
            ))
        })?;
        Ok(vec![crawl.of_partition(partition)])
    }

    /// Returns true if the user named a partition.
    pub(super) fn names_partition(&self) -> bool {
        self.partition.is_some()
    }

    /// Reads the configuration with the additional settings `KEY=VALUE` in `more`, and checks it.
    /// `machine` can report that this machine does not permit the configuration: see
    /// [`Config::load_for`].
    pub(super) fn load_for(
        &self,
        more: &[String],
        machine: impl FnOnce(&Config) -> Option<(&'static str, String)>,
    ) -> Result<Config, Problems> {
        Config::load_for(self.layers.sources(more), machine)
    }
}

/// Storage folder of a command, named by its path or by the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Folder {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The storage folder. Default: storage.dir of the configuration
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set", "partition"])]
    storage: Option<PathBuf>,
}

/// Returns the storage folder of the filter; `None` if the filter is in Redis.
pub(super) fn folder_of(config: &Config) -> Option<&Path> {
    (config.filter.place == FilterPlace::Local).then_some(&*config.storage.dir)
}

impl Folder {
    /// Returns the folder that the user named in place of a configuration.
    pub(super) fn named(&self) -> Option<&Path> {
        self.storage.as_deref()
    }

    /// Returns the configuration. With `--storage`, returns the default configuration with this
    /// folder.
    pub(super) fn locate(&self) -> anyhow::Result<Config> {
        let Some(folder) = &self.storage else { return self.settings.load() };
        let mut config = Config::default();
        config.storage.dir.clone_from(folder);
        Ok(config)
    }

    /// Returns the options for reading items of all partitions.
    pub(super) fn item_options(&self) -> anyhow::Result<Options> {
        Ok(start::items(&if self.named().is_some() {
            Config::default()
        } else {
            self.settings.load_crawl()?
        }))
    }

    /// Returns the configuration of each partition, or of the only one that the user named.
    pub(super) fn locate_all(&self) -> anyhow::Result<Vec<Config>> {
        if self.storage.is_some() { Ok(vec![self.locate()?]) } else { self.settings.load_all() }
    }
}
