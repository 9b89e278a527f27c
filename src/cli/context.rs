//! Configuration of a command, and its runtime for calls to servers.

use std::io;

use tokio::runtime::{Builder, Runtime};
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{Opened, Wanted};
use urlseen_engine::config::Config;

/// Builds a runtime that runs its tasks on the calling thread, while the thread waits for it.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Configuration and runtime of a command.
pub(super) struct Context {
    pub(super) config: Config,
    pub(super) runtime: Runtime,
}

impl Context {
    /// Builds the runtime for a configuration.
    pub(super) fn new(config: Config) -> anyhow::Result<Self> {
        Ok(Self { config, runtime: runtime()? })
    }

    /// Connects to `redis.url`.
    pub(super) async fn connect(&self) -> Result<Link, LinkError> {
        connect(&self.config.redis.url, Timeouts::default()).await
    }

    /// Connects to `redis.url`, and finds the filter there.
    pub(super) async fn find(&self, wanted: &Wanted) -> anyhow::Result<(Link, Opened)> {
        let mut link = self.connect().await?;
        let opened = wanted.find(&mut link).await?;
        Ok((link, opened))
    }
}
