//! Status of the daemon as metrics. A test compares the metrics with docs/reference/metrics.md.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
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
        // The pattern names all fields, so the compiler reports a new field without a metric.
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
        let build = Info::new(vec![("version", version.as_str()), ("crawl", crawl.as_str())]);
        metrics.metric("build", "Version and crawl of the daemon", &build)?;
        let started = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let help = "Time of the daemon's start, in seconds since 1970";
        metrics.gauge("start_time_seconds", help, started)?;
        metrics.gauge(
            "ready",
            "1 while the filter is recovered and the daemon is connected and holds the lease",
            u64::from(phase.is_ready()),
        )?;
        let phases =
            Phase::NAMES.map(|name| (name, ConstGauge::new(u64::from(name == phase.name()))));
        metrics.family("phase", "1 for the daemon's current phase", "phase", phases)?;
        if let Some(head) = head {
            metrics.gauge("seq", "Number of the last committed batch", head.seq)?;
        }
        if let Some(seconds) = *lease_seconds {
            let help = "Time until the lease ends, unless the daemon renews the lease";
            metrics.gauge("lease_seconds", help, seconds)?;
        }
        metrics.counts(counts)?;
        if !passed.is_empty() {
            let passed = passed.iter().map(|it| counted((it.rule.as_str(), it.items)));
            metrics.family("passed", "Items that a rule let pass unfiltered", "rule", passed)?;
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

/// Writer that encodes one metric after the other.
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
        self.family("items", "Committed items, by fate", "fate", fates.map(counted))?;
        for (name, help, value) in counts.metrics() {
            self.counter(name, help, value)?;
        }
        Ok(())
    }

    fn asked(&mut self, asked: &Asked) -> fmt::Result {
        let Asked { seen, unseen, full, forgotten } = *asked;
        let answers =
            [("seen", seen), ("unseen", unseen), ("full", full), ("forgotten", forgotten)];
        let help = "Fingerprints that clients asked about, by answer";
        self.family("queries", help, "answer", answers.map(counted))
    }

    fn lists(&mut self, lists: &Lists) -> fmt::Result {
        let Lists { source, processing, sink, rejected } = *lists;
        let lists = [
            ("source", source),
            ("processing", processing),
            ("sink", sink),
            ("rejected", rejected),
        ];
        let known = lists.into_iter().filter_map(|(list, items)| Some((list, items?)));
        let lengths = known.map(|(list, items)| (list, ConstGauge::new(items)));
        self.family("list_items", "Length of a list when last read", "list", lengths)
    }

    fn filter(&mut self, filter: &FilterStatus) -> fmt::Result {
        let FilterStatus { keys, capacity, fill, error_rate, bytes, forgotten } = *filter;
        self.gauge("filter_keys", "Fingerprints in the filter", keys)?;
        self.gauge("filter_capacity", "Fingerprints that the filter is made for", capacity)?;
        self.gauge(
            "filter_fill_ratio",
            "Fingerprints in the filter as a share of its capacity",
            fill,
        )?;
        let help = "Share of unseen items that the filter reports as seen, computed from its fill";
        self.gauge("filter_error_ratio", help, error_rate)?;
        self.gauge("filter_bytes", "Memory of the filter in bytes", bytes)?;
        let help = "Fingerprints in the filter that were forgotten and pass once more";
        self.gauge("filter_tombstones", help, forgotten)
    }

    fn storage(&mut self, storage: &Storage, now: SystemTime) -> fmt::Result {
        let Storage { snapshots, last_snapshot, log_bytes, written_bytes, .. } = storage;
        self.counter("log_written_bytes", "Bytes written to the log", *written_bytes)?;
        self.gauge("storage_snapshots", "Snapshots in the storage folder", *snapshots)?;
        // If the clock was set back after the snapshot, the age counts as 0.
        if let Some(finished) = *last_snapshot {
            let age = now.duration_since(finished).unwrap_or_default().as_secs_f64();
            self.gauge("snapshot_age_seconds", "Time since the last snapshot was finished", age)?;
        }
        self.gauge(
            "storage_log_bytes",
            "Size of the log in the storage folder in bytes",
            *log_bytes,
        )
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, &ConstCounter::new(value))
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.metric(name, help, &ConstGauge::new(value))
    }

    fn metric<M>(&mut self, name: &str, help: &str, metric: &M) -> fmt::Result
    where
        M: EncodeMetric + TypedMetric,
    {
        metric.encode(self.encoder.encode_descriptor(name, help, None, M::TYPE)?)
    }

    /// Writes one metric for each value of a label.
    fn family<'a, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        metrics: impl IntoIterator<Item = (&'a str, M)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, M::TYPE)?;
        for (value, metric) in metrics {
            metric.encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }
}

/// Makes the counter for a value of a label.
fn counted((value, count): (&str, u64)) -> (&str, ConstCounter<u64>) {
    (value, ConstCounter::new(count))
}
