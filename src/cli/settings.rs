//! Options that commands share: where the configuration comes from, and whose daemon is meant.

use std::path::PathBuf;

use urlseen_engine::config::{Config, Fault, FilterPlace, Problems, Sources};

/// Where the configuration comes from, beside the environment.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// The configuration; without this option ./config.toml is read if it is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the configuration, as in filter.capacity=1e9; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// Reads and checks it.
    pub(super) fn load(&self) -> Result<Config, Problems> {
        self.load_with(&[])
    }

    /// The same with more `KEY=VALUE` behind those given.
    pub(super) fn load_with(&self, more: &[String]) -> Result<Config, Problems> {
        self.load_for(more, |_| None)
    }

    /// The same for a process that works by it: see [`Config::load_for`].
    pub(super) fn load_for(
        &self,
        more: &[String],
        machine: impl FnOnce(&Config) -> Option<(&'static str, Fault)>,
    ) -> Result<Config, Problems> {
        let (file, set) = (self.config.clone(), [&self.set, more].concat());
        Config::load_for(Sources { file, env: std::env::vars_os(), set }, machine)
    }
}

/// Whose daemon, or whose storage at rest, is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Folder {
    #[command(flatten)]
    settings: Settings,
    /// The storage folder; without this option the one that the configuration names
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set"])]
    storage: Option<PathBuf>,
}

/// Where a filter is.
pub(super) enum Place {
    /// In a storage folder.
    Folder(PathBuf),
    /// In the Redis of this configuration.
    Redis(Box<Config>),
}

impl Folder {
    /// The configuration, where no folder was named in its place.
    pub(super) fn config(&self) -> Result<Config, Problems> {
        self.settings.load()
    }

    /// The configuration and where the filter is; where a folder was named, the one that nobody
    /// changed.
    pub(super) fn both(&self) -> Result<(Config, Place), Problems> {
        let place = self.place()?;
        Ok(match (&self.storage, &place) {
            (None, Place::Redis(config)) => (Config::clone(config), place),
            (None, Place::Folder(_)) => (self.settings.load()?, place),
            (Some(_), _) => (Config::default(), place),
        })
    }

    /// Returns true if a folder was named in place of a configuration.
    pub(super) fn is_named(&self) -> bool {
        self.storage.is_some()
    }

    /// Where the filter is.
    pub(super) fn place(&self) -> Result<Place, Problems> {
        if let Some(folder) = &self.storage {
            return Ok(Place::Folder(folder.clone()));
        }
        let config = self.settings.load()?;
        Ok(match config.filter.place {
            FilterPlace::Local => Place::Folder(config.storage.dir),
            FilterPlace::Redis => Place::Redis(Box::new(config)),
        })
    }
}
