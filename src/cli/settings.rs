//! Options that commands share: the sources of the configuration, and the storage folder.

use std::path::PathBuf;

use urlseen_engine::config::{Config, FilterPlace, Problems, Sources};

/// Sources of the configuration, besides the environment.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// The configuration file. Default: ./config.toml, if it exists
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the configuration, for example filter.capacity=1e9. The option can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// Reads and checks the configuration.
    pub(super) fn load(&self) -> Result<Config, Problems> {
        self.load_for(&[], |_| None)
    }

    /// Reads the configuration with the additional settings `KEY=VALUE` in `more`, and checks it.
    /// `machine` can report that this machine does not permit the configuration: see
    /// [`Config::load_for`].
    pub(super) fn load_for(
        &self,
        more: &[String],
        machine: impl FnOnce(&Config) -> Option<(&'static str, String)>,
    ) -> Result<Config, Problems> {
        let (file, set) = (self.config.clone(), [&self.set, more].concat());
        Config::load_for(Sources { file, env: std::env::vars_os().collect(), set }, machine)
    }
}

/// Storage folder of a command, named by its path or by the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Folder {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The storage folder. Default: storage.dir of the configuration
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set"])]
    storage: Option<PathBuf>,
}

/// Place of a filter: a storage folder or Redis.
#[derive(Debug)]
pub(super) enum Place {
    /// A storage folder with this path.
    Folder(PathBuf),
    /// The Redis of the configuration.
    Redis,
}

impl Folder {
    /// Returns true if the user named a folder in place of a configuration.
    pub(super) fn is_named(&self) -> bool {
        self.storage.is_some()
    }

    /// Returns the configuration and the place of the filter. With `--storage`, returns the default
    /// configuration.
    pub(super) fn locate(&self) -> Result<(Config, Place), Problems> {
        if let Some(folder) = &self.storage {
            return Ok((Config::default(), Place::Folder(folder.clone())));
        }
        let config = self.settings.load()?;
        let place = match config.filter.place {
            FilterPlace::Local => Place::Folder(config.storage.dir.clone()),
            FilterPlace::Redis => Place::Redis,
        };
        Ok((config, place))
    }
}
