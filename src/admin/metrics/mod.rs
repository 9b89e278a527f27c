//! Status of the daemon as metrics. A test compares the metrics with docs/reference/metrics.md.

mod format;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use procfs::process::{LimitValue, Process};

use crate::report::{
    Asked, ByRule, ClientsStatus, Counts, FATES, FilterStatus, GenerationsStatus, GroupCount,
    HeldStatus, Lists, Phase, RouteStatus, RoutedStatus, RuleCount, Status, Statuses,
};
pub(super) use format::Format;
use format::{Families, Value};
use urlseen_storage::Footprint;

/// Writes the metrics for the statuses of a daemon. Unknown values are left out.
pub(super) fn text(statuses: &Statuses, format: Format) -> Result<String, fmt::Error> {
    let (crawl, version, since) = match (statuses, statuses.all().first()) {
        (Statuses::Route(it), _) => (&it.crawl, &it.version, it.since),
        (_, Some(it)) => (&it.crawl, &it.version, it.since),
        (_, None) => return format.write(Families::default(), Families::default()),
    };
    let mut metrics = Families::default();
    metrics.set_labels(crawl, None);
    let help = "Version of the daemon";
    metrics.add("build", help, vec![("version", version.clone())], Value::Info);
    if let Statuses::Route(status) = statuses {
        metrics.route(status);
    }
    for status in statuses.all() {
        metrics.set_labels(crawl, status.partition);
        metrics.status(status);
    }
    format.write(process(since), metrics)
}

/// Metrics of all partitions.
impl Families {
    /// Gives all values that are added next the labels of a crawl, or of one of its partitions.
    fn set_labels(&mut self, crawl: &str, partition: Option<u16>) {
        self.labels = vec![("crawl", crawl.to_owned())];
        self.labels.extend(partition.map(|number| ("partition", number.to_string())));
    }

    /// Adds the metrics of a router.
    fn route(&mut self, status: &RouteStatus) {
        let RouteStatus { crawl, phase, routed, partitions, .. } = status;
        self.phase(phase);
        self.counter("routed_items", "Items that a router has moved to the partitions", *routed);
        for RoutedStatus { partition, pushed, waiting, trouble } in partitions {
            self.set_labels(crawl, Some(*partition));
            let help = "Items that a router has pushed to a partition";
            self.counter("route_pushed_items", help, *pushed);
            let help = "Items of a router that a partition has not acknowledged";
            self.gauge("route_waiting_items", help, *waiting);
            let help = "1 while a partition takes the items of a router";
            self.gauge("route_up", help, u64::from(trouble.is_none()));
        }
    }

    fn phase(&mut self, phase: &Phase) {
        self.gauge(
            "ready",
            "1 while the filter is recovered and the daemon is connected and holds the lease",
            u64::from(phase.is_ready()),
        );
        let phases = Phase::NAMES.map(|name| (name, Value::Gauge((name == phase.name()).into())));
        self.family("phase", "1 for the daemon's current phase", "phase", phases);
    }

    fn status(&mut self, status: &Status) {
        // The pattern names all fields, so the compiler reports a new field without a metric.
        let Status {
            crawl: _,
            partition: _,
            version: _,
            pid: _,
            since: _,
            phase,
            redis: _,
            head: _,
            lease_seconds: _,
            counts,
            rules: ByRule { passed, dropped, over_limit, over_limit_by_group },
            rejected_by_reason,
            times,
            asked,
            lists,
            list_limits,
            waiting_seconds,
            held,
            clients,
            filter,
            storage,
        } = status;
        self.phase(phase);
        self.counts(counts);
        self.by_rule("passed", "Items that a rule let pass unfiltered", passed);
        self.by_rule("dropped", "Items that a rule dropped", dropped);
        self.by_rule("over_limit", "Unseen items over the limit of a rule", over_limit);
        self.by_group(over_limit_by_group);
        let reasons = rejected_by_reason.all().map(counted);
        self.family("rejects", "Rejected items, by reason", "reason", reasons);
        for (name, help, histogram) in times.metrics() {
            self.add(name, help, Vec::new(), Value::Histogram(histogram));
        }
        self.asked(asked);
        if let Some(clients) = clients {
            self.clients(clients);
        }
        self.lists("list_items", "Length of a list when last read", lists);
        self.lists("list_limit_items", "Maximum length of a list", list_limits);
        if let Some(seconds) = *waiting_seconds {
            let help = "Upper bound of the age of the oldest item that is not committed";
            self.real("waiting_seconds", help, seconds);
        }
        if let Some(HeldStatus { requests, .. }) = *held {
            self.gauge("held_requests", "Requests that consumers hold", requests);
        }
        if let Some(filter) = filter {
            self.filter(filter);
        }
        if let Some(storage) = storage {
            self.storage(storage);
        }
    }

    fn by_rule(&mut self, name: &'static str, help: &'static str, counts: &[RuleCount]) {
        if !counts.is_empty() {
            let counts = counts.iter().map(|it| counted((it.rule.as_str(), it.items)));
            self.family(name, help, "rule", counts);
        }
    }

    fn by_group(&mut self, counts: &[GroupCount]) {
        let help = "Unseen items over the limit of a rule, for the groups with most of them";
        for GroupCount { rule, group, items } in counts {
            let labels = vec![("rule", rule.clone()), ("group", group.clone())];
            self.add("over_limit_by_group", help, labels, Value::Counter(*items));
        }
    }

    fn counts(&mut self, counts: &Counts) {
        let fates = FATES.into_iter().zip(counts.by_fate()).map(counted);
        self.family("items", "Committed items, by fate", "fate", fates);
        for (name, help, value) in counts.metrics() {
            self.counter(name, help, value);
        }
    }

    fn asked(&mut self, asked: &Asked) {
        let Asked { seen, unseen, full, forgotten } = *asked;
        let answers =
            [("seen", seen), ("unseen", unseen), ("full", full), ("forgotten", forgotten)];
        let help = "Fingerprints that clients asked about, by answer";
        self.family("queries", help, "answer", answers.map(counted));
    }

    fn clients(&mut self, clients: &ClientsStatus) {
        let ClientsStatus { open, refused, .. } = *clients;
        self.gauge("clients", "Connected clients", open);
        let help = "Clients that were refused, because too many were connected";
        self.counter("clients_refused", help, refused);
    }

    fn lists(&mut self, name: &'static str, help: &'static str, lists: &Lists) {
        let Lists { source, processing, sink, rejected, .. } = *lists;
        let lists = [
            ("source", source),
            ("processing", processing),
            ("sink", sink),
            ("rejected", rejected),
        ];
        let known = lists.into_iter().filter_map(|(list, items)| Some((list, items?)));
        let lengths = known.map(|(list, items)| (list, Value::Gauge(items)));
        self.family(name, help, "list", lengths);
    }

    fn filter(&mut self, filter: &FilterStatus) {
        let FilterStatus { keys, error_rate, lost_urls, bytes, .. } = *filter;
        self.gauge("filter_keys", "Fingerprints in the filter", keys);
        if let Some(limit) = filter.limit {
            let help = "Fingerprints up to which the filter keeps its error rate";
            self.gauge("filter_limit", help, limit);
        }
        let help = "Share of unseen items that the filter reports as seen, computed from its fill";
        self.real("filter_error_ratio", help, error_rate);
        if let Some(urls) = lost_urls {
            let help = "Expected number of unseen URLs that the filter has reported as seen so far";
            self.real("filter_lost_urls", help, urls);
        }
        if let Some(generations) = filter.generations {
            let GenerationsStatus { number, next_seconds, keys, expired, swept } = generations;
            self.gauge("filter_generation", "Number of the present generation", number.into());
            if let Some(seconds) = next_seconds {
                let help = "Time until the next generation begins";
                self.real("filter_next_generation_seconds", help, seconds);
            }
            let help = "Fingerprints in the filter by age in generations";
            let ages = ["0", "1", "2", "3", "4", "5"].into_iter().zip(keys.map(Value::Gauge));
            self.family("filter_generation_keys", help, "age", ages);
            let help = "Expired fingerprints that still take memory";
            self.gauge("filter_expired_keys", help, expired);
            let help = "Expired fingerprints whose memory was freed since the filter was loaded";
            self.counter("filter_swept_keys", help, swept);
        }
        self.gauge("filter_bytes", "Memory of the filter in bytes", bytes);
    }

    fn storage(&mut self, storage: &Footprint) {
        let Footprint { log_bytes, written_bytes, .. } = storage;
        self.counter("log_written_bytes", "Bytes written to the log", *written_bytes);
        self.gauge(
            "storage_log_bytes",
            "Size of the log in the storage folder in bytes",
            *log_bytes,
        );
    }
}

/// Makes the counter for a value of a label.
fn counted((value, count): (&str, u64)) -> (&str, Value) {
    (value, Value::Counter(count))
}

/// Returns the metrics of this process, which started at `since`, with the names that Prometheus's
/// client libraries use. Leaves out the values that the system does not show.
fn process(since: SystemTime) -> Families {
    let mut all = Families::default();
    let mut add = |name, help, value| all.add(name, help, Vec::new(), value);
    let started = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let help = "Time of the start of the process, in seconds since 1970";
    add("process_start_time_seconds", help, Value::Real(started));
    let Ok(process) = Process::myself() else { return all };
    if let Ok(stat) = process.stat() {
        let ticks = (stat.utime + stat.stime) as f64;
        let seconds = ticks / procfs::ticks_per_second() as f64;
        let help = "Processor time of the process, of the user and of the system";
        add("process_cpu_seconds", help, Value::Seconds(seconds));
        let help = "Virtual memory of the process";
        add("process_virtual_memory_bytes", help, Value::Gauge(stat.vsize));
        let help = "Memory of the process that is not swapped out";
        let resident = stat.rss * procfs::page_size();
        add("process_resident_memory_bytes", help, Value::Gauge(resident));
        let threads = u64::try_from(stat.num_threads).unwrap_or_default();
        add("process_threads", "Threads of the process", Value::Gauge(threads));
    }
    if let Ok(open) = process.fd_count() {
        add("process_open_fds", "Open file descriptors of the process", Value::Gauge(open as u64));
    }
    if let Ok(limits) = process.limits()
        && let LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        let help = "Limit on the open file descriptors of the process";
        add("process_max_fds", help, Value::Gauge(most));
    }
    all
}
