//! Crawl record, which the daemon publishes in Redis for producers and consumers.

use urlseen_core::fingerprint::Fingerprinter;
use urlseen_core::fingerprint::Request;
use urlseen_core::redis::held::{HeldRecord, PROBE};
use urlseen_core::redis::keys::Keys;
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
