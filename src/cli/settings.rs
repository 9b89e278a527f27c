//! Options that commands share: sources of the configuration, and the storage folder.

use std::path::PathBuf;

use urlseen_engine::config::{Config, FilterPlace, Problems, Sources};

/// Sources of the configuration, besides the environment.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// The configuration file; without this option ./config.toml, if it exists
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the configuration, as in filter.capacity=1e9; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// Reads and checks the configuration.
    pub(super) fn load(&self) -> Result<Config, Problems> {
        self.load_with(&[])
    }

    /// Does the same, with more `KEY=VALUE` after those of the command line.
    pub(super) fn load_with(&self, more: &[String]) -> Result<Config, Problems> {
        self.load_for(more, |_| None)
    }

    /// Does the same for a process that runs with the configuration: see [`Config::load_for`].
    pub(super) fn load_for(
        &self,
        more: &[String],
        machine: impl FnOnce(&Config) -> Option<(&'static str, String)>,
    ) -> Result<Config, Problems> {
        let (file, set) = (self.config.clone(), [&self.set, more].concat());
        Config::load_for(Sources { file, env: std::env::vars_os(), set }, machine)
    }
}

/// Storage folder that a command works on, by its path or by the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Folder {
    #[command(flatten)]
    settings: Settings,
    /// The storage folder; without this option that of the configuration
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set"])]
    storage: Option<PathBuf>,
}

/// Place where a filter is.
pub(super) enum Place {
    /// A storage folder with this path.
    Folder(PathBuf),
    /// The Redis of this configuration.
    Redis(Box<Config>),
}

impl Folder {
    /// Loads the configuration, for options that exclude `--storage`.
    pub(super) fn config(&self) -> Result<Config, Problems> {
        self.settings.load()
    }

    /// Returns the configuration and the filter's place. With `--storage` the configuration is the
    /// default one.
    pub(super) fn both(&self) -> Result<(Config, Place), Problems> {
        let place = self.place()?;
        Ok(match (&self.storage, &place) {
            (None, Place::Redis(config)) => (Config::clone(config), place),
            (None, Place::Folder(_)) => (self.config()?, place),
            (Some(_), _) => (Config::default(), place),
        })
    }

    /// Returns true if a folder was named in place of a configuration.
    pub(super) fn is_named(&self) -> bool {
        self.storage.is_some()
    }

    /// Returns the filter's place.
    pub(super) fn place(&self) -> Result<Place, Problems> {
        if let Some(folder) = &self.storage {
            return Ok(Place::Folder(folder.clone()));
        }
        let config = self.config()?;
        Ok(match config.filter.place {
            FilterPlace::Local => Place::Folder(config.storage.dir),
            FilterPlace::Redis => Place::Redis(Box::new(config)),
        })
    }
}
