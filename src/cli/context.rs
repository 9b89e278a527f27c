//! Runtime of the process, and its connections to Redis.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use urlseen_core::redis::connect::{self, Timeouts};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{Opened, Wanted};
use urlseen_engine::config::Config;

/// Returns the runtime of the process. It runs its tasks on the calling thread, while the thread
/// waits for it.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// Connects to `redis.url`.
pub(super) async fn connect(config: &Config) -> Result<Link, LinkError> {
    connect::connect(&config.redis.url, Timeouts::default()).await
}

/// Connects to `redis.url`, and finds the filter there.
pub(super) async fn find(config: &Config, wanted: &Wanted) -> anyhow::Result<(Link, Opened)> {
    let mut link = connect(config).await?;
    let opened = wanted.find(&mut link).await?;
    Ok((link, opened))
}
