//! Partition table, which all processes of a crawl with several partitions check and publish.

use redis::{Cmd, cmd};

use super::record::probe;
use super::reply::{ProtocolError, values};
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::held::PartitionTable;
use urlseen_core::redis::script::Script;
use urlseen_engine::config::Config;

const PUBLISH: &str = include_str!("lua/table.lua");

/// Publishes the partition table of the crawl, if the crawl has several partitions. `config` is the
/// configuration of the whole crawl.
///
/// # Errors
/// Redis fails, or has a table or a crawl that does not fit.
pub(crate) async fn publish(config: &Config) -> Result<(), ProtocolError> {
    call(config, "publish").await
}

/// Checks that [`publish`] would succeed, and changes nothing.
///
/// # Errors
/// The errors of [`publish`].
pub(crate) async fn check(config: &Config) -> Result<(), ProtocolError> {
    call(config, "check").await
}

async fn call(config: &Config, action: &str) -> Result<(), ProtocolError> {
    let mut link = connect(&config.redis.url, Timeouts::default()).await?;
    match values::<()>("the partition table", link.call(&command(config, action)).await?) {
        Err(ProtocolError::OtherTable { field, found, .. }) => {
            let wanted = table(config).fields().into_iter().find(|(name, _)| *name == field);
            let wanted = wanted.map(|(_, value)| value).unwrap_or_default();
            Err(ProtocolError::OtherTable { field, found, wanted })
        }
        other => other,
    }
}

/// Deletes the partition table.
pub(crate) async fn delete(config: &Config) -> Result<(), ProtocolError> {
    let mut link = connect(&config.redis.url, Timeouts::default()).await?;
    link.call(cmd("DEL").arg(config.keys().record)).await?;
    Ok(())
}

fn table(config: &Config) -> PartitionTable {
    PartitionTable {
        urlseen: env!("CARGO_PKG_VERSION").to_owned(),
        partitions: config.partitions.count,
        kind: config.filter.kind.to_string(),
        item: config.source.item,
        fingerprint: config.fingerprint_spec(),
        probe: probe(config),
    }
}

fn command(config: &Config, action: &str) -> Cmd {
    let keys = config.keys();
    let mut command = cmd("EVAL");
    command.arg(Script::new(PUBLISH).text()).arg(2).arg(keys.record).arg(keys.state);
    command.arg(action).arg(PartitionTable::SHARED.len()).arg(&PartitionTable::SHARED);
    command.arg(table(config).fields());
    command
}
