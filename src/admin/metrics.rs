//! Status as metrics. docs/reference/metrics.md lists them all, and a test compares the two.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::{Asked, Counts, FilterStatus, Lists, Phase, Status, Storage};

/// Prefix of the names of all metrics.
const PREFIX: &str = "urlseen";

/// Content type of [`text`], from the `OpenMetrics` specification 1.0.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writes the metrics for a status at the time `now`. Unknown values are left out.
pub(super) fn text(status: Status, now: SystemTime) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Snapshot { status, now }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot {
    status: Status,
    now: SystemTime,
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics = Metrics { encoder };
        // All fields are named, so that a new one cannot be left out here.
        let Status {
            crawl,
            version,
            pid: _,
            since,
            phase,
            redis: _,
            head,
            lease_seconds,
            counts,
            passed,
            asked,
            lists,
            filter,
            storage,
        } = &self.status;
        metrics.info("build", "What runs", &[("version", version), ("crawl", crawl)])?;
        let started = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let help = "When the daemon was started, in seconds since 1970";
        metrics.gauge("start_time_seconds", help, Some(started))?;
        metrics.gauge(
            "ready",
            "1 while it is recovered, connected and holds the lease",
            Some(u64::from(phase.is_ready())),
        )?;
        let phases = Phase::NAMES.map(|name| (name, Some(u64::from(name == phase.name()))));
        metrics.gauges("phase", "1 for the daemon's current phase", "phase", &phases)?;
        let seq = head.as_ref().map(|head| head.seq);
        metrics.gauge("seq", "Number of the last batch committed", seq)?;
        let help = "How long the lease is held unless it is renewed";
        metrics.gauge("lease_seconds", help, *lease_seconds)?;
        metrics.counts(counts)?;
        if !passed.is_empty() {
            let passed: Vec<_> = passed.iter().map(|it| (it.rule.as_str(), it.items)).collect();
            metrics.counters("passed", "Items passed on by a rule", "rule", &passed)?;
        }
        metrics.asked(asked)?;
        metrics.lists(lists)?;
        if let Some(filter) = filter {
            metrics.filter(filter)?;
        }
        if let Some(storage) = storage {
            metrics.storage(storage, self.now)?;
        }
        Ok(())
    }
}

/// Writer of metrics, one after the other.
struct Metrics<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Metrics<'_> {
    fn counts(&mut self, counts: &Counts) -> fmt::Result {
        let Counts { unseen, seen, unfiltered, rejected, .. } = *counts;
        let fates = [
            ("unseen", unseen),
            ("seen", seen),
            ("unfiltered", unfiltered),
            ("rejected", rejected),
        ];
        self.counters("items", "Items committed, by their fate", "fate", &fates)?;
        for (name, help, value) in counts.metrics() {
            self.counter(name, help, value)?;
        }
        Ok(())
    }

    fn asked(&mut self, asked: &Asked) -> fmt::Result {
        let Asked { seen, unseen, full, forgotten } = *asked;
        let answers =
            [("seen", seen), ("unseen", unseen), ("full", full), ("forgotten", forgotten)];
        self.counters("queries", "Fingerprints asked for, by answer", "answer", &answers)
    }

    fn lists(&mut self, lists: &Lists) -> fmt::Result {
        let Lists { source, processing, sink, rejected } = *lists;
        let lists = [
            ("source", source),
            ("processing", processing),
            ("sink", sink),
            ("rejected", rejected),
        ];
        self.gauges("list_items", "Items in a list in Redis, as last seen", "list", &lists)
    }

    fn filter(&mut self, filter: &FilterStatus) -> fmt::Result {
        let FilterStatus { keys, capacity, fill, error_rate, bytes, forgotten } = *filter;
        self.gauge("filter_keys", "Fingerprints in the filter", Some(keys))?;
        self.gauge("filter_capacity", "Fingerprints that the filter is made for", Some(capacity))?;
        self.gauge("filter_fill_ratio", "Keys as a share of the capacity", Some(fill))?;
        let help = "Share of unseen items that the filter takes for seen, computed from its fill";
        self.gauge("filter_error_ratio", help, Some(error_rate))?;
        self.gauge("filter_bytes", "Memory of the filter", Some(bytes))?;
        let help = "Fingerprints in the filter that pass once more";
        self.gauge("filter_tombstones", help, Some(forgotten))
    }

    fn storage(&mut self, storage: &Storage, now: SystemTime) -> fmt::Result {
        let Storage { snapshots, last_snapshot, log_bytes, written_bytes, .. } = storage;
        self.counter("log_written_bytes", "Bytes written to the log", *written_bytes)?;
        self.gauge("storage_snapshots", "Snapshots in the storage folder", Some(*snapshots))?;
        // A clock that was set back must not make a negative age.
        let age = last_snapshot
            .map(|finished| now.duration_since(finished).unwrap_or_default().as_secs_f64());
        self.gauge("snapshot_age_seconds", "Time since the last snapshot was finished", age)?;
        self.gauge("storage_log_bytes", "Log in the storage folder", Some(*log_bytes))
    }

    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &String)]) -> fmt::Result {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>();
        let info = Info::new(labels);
        info.encode(self.encoder.encode_descriptor(name, help, None, MetricType::Info)?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    /// Writes one counter for each value of a label.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (which, value) in values {
            let labels = [(label, *which)];
            ConstCounter::new(*value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: Option<impl EncodeGaugeValue>,
    ) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    /// Writes one gauge for each value of a label.
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, Option<u64>)],
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (which, value) in values {
            if let Some(value) = *value {
                let labels = [(label, *which)];
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
