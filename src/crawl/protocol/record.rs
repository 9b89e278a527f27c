//! Crawl record, which the daemon publishes in Redis for producers and consumers, and partition
//! table, which all processes of a crawl with several partitions check and publish.

use redis::{Cmd, cmd};

use super::reply::{ProtocolError, values};
use urlseen_core::fingerprint::{Fingerprinter, Request};
use urlseen_core::redis::connect::connect;
use urlseen_core::redis::held::{HeldRecord, PROBE, PartitionTable};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::script::Script;
use urlseen_engine::config::{Config, End, FilterPlace};
use urlseen_engine::flow::source::Source;

/// Builds the crawl record from the configuration.
pub(crate) fn record(config: &Config, keys: &Keys) -> HeldRecord {
    let Config { source, sink, fingerprint, held, filter, .. } = config;
    // Consumers pop the oldest item first.
    let pop = match sink.push_to {
        End::Right => "LEFT",
        End::Left => "RIGHT",
    };
    let forget = match filter.place {
        FilterPlace::Local => keys.forget.clone(),
        FilterPlace::Redis => String::new(),
    };
    HeldRecord {
        urlseen: env!("CARGO_PKG_VERSION").to_owned(),
        source: keys.source.clone(),
        push: Source::new(source.take_from).push().to_owned(),
        processing: keys.processing.clone(),
        sink: keys.sink.clone(),
        sink_kind: sink.kind.name().to_owned(),
        pop: pop.to_owned(),
        emit: sink.emit.name().to_owned(),
        algorithm: fingerprint.algorithm.to_string(),
        drop_tracking: fingerprint.drop_tracking.to_string(),
        same: config.same.to_string(),
        probe: probe(config),
        rejects: keys.rejected.clone(),
        forget,
        deliveries: held.deliveries,
        timeout: held.timeout,
        partitions: config.partition.count(),
    }
}

/// Returns the configured fingerprint of [`PROBE`].
pub(super) fn probe(config: &Config) -> String {
    let probe = Fingerprinter::new(config.fingerprint_spec()).fingerprint(&Request::get(PROBE));
    probe.expect("the URL is absolute").to_string()
}

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
    let mut link = connect(&config.redis.url).await?;
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
    let mut link = connect(&config.redis.url).await?;
    link.call(&Cmd::del(config.keys().record)).await?;
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
