//! Report of a run: the state that the run publishes, for its watchers, and its progress.
//!
//! A run changes the present state of its [`Reporter`], and publishes it. The status, the metrics,
//! the page and the summary read the published [`Status`]. A new counter is one line in
//! `counts.rs`, and one line of code that counts.

mod counts;
mod filter;
mod phase;
mod repeats;
mod rules;
mod status;
mod trend;

use std::time::Instant;

use serde::Serialize;
use tokio::sync::watch;

use crate::config::Config;
use counts::Samples;
use rules::ByGroup;
use trend::Growth;
use urlseen_engine::engine::Works;
use urlseen_engine::item::batch::{Batch, Ready};
use urlseen_storage::{Head, Moment};

pub(crate) use counts::FATES;
pub use counts::{ByReason, Counts, Sampled, Times};
pub(crate) use filter::FilterReport;
pub use filter::{FilterStatus, GenerationsStatus};
pub use phase::{Backpressure, Phase};
pub(crate) use repeats::{AllRepeats, Repeats};
pub use rules::{ByRule, GroupCount, RuleCount};
pub(crate) use status::moment;
pub use status::{ClientsStatus, HeldStatus, Lists, RouteStatus, RoutedStatus, Status, Statuses};
pub use urlseen_engine::engine::query::Asked;

/// Progress of a run at some moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Counts since the start.
    #[serde(flatten)]
    pub counts: Counts,
    /// Queries since the start.
    pub(crate) asked: Asked,
    /// Seconds since the start.
    pub seconds: f64,
    /// Items that waited in the source when the daemon last read its length.
    pub(crate) source: u64,
    /// Items that are claimed and not committed.
    pub(crate) processing: u64,
    /// State of the filter at that moment.
    #[serde(flatten)]
    pub(crate) filter: FilterStatus,
}

impl Report {
    /// Adds the progress of another run.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            counts: self.counts.and(other.counts),
            asked: self.asked.and(other.asked),
            seconds: self.seconds.max(other.seconds),
            source: self.source + other.source,
            processing: self.processing + other.processing,
            filter: self.filter.and(&other.filter),
        }
    }
}

/// State of a run, as watchers see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    /// Everything except the values that change with time, and the numbers of the shards.
    pub(crate) status: Status,
    /// Time at which the lease counts as lost unless it is renewed; `None` without a lease.
    pub(crate) lease_until: Option<Instant>,
    /// Moment at which the next generation begins; `None` if fingerprints do not expire, or if no
    /// generation has begun.
    pub(crate) next_generation: Option<Moment>,
    /// Time after which all waiting items arrived; `None` if no item waits.
    pub(crate) waiting_since: Option<Instant>,
    /// Speed at which the filter fills.
    pub(crate) growth: Growth,
    /// Time at which the daemon last read the length of the source.
    pub(crate) lengths_read: Option<Instant>,
}

/// Access of watchers to a run.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// The state that the run published last.
    pub(crate) live: watch::Receiver<Live>,
    /// Sample of the newest items that the run committed.
    pub(crate) samples: Samples,
}

impl Watch {
    /// Returns the present status, with the values that change with time. `clients` are those of
    /// `serve.listen`.
    pub(crate) fn status(&self, clients: Option<ClientsStatus>) -> Status {
        let now = Instant::now();
        let Live { mut status, lease_until, next_generation, waiting_since, growth, lengths_read } =
            self.live.borrow().clone();
        let lease = lease_until.filter(|_| status.phase.is_ready());
        let left = |until: Instant| until.saturating_duration_since(now).as_secs_f64();
        status.lease_seconds = lease.map(left);
        status.lists.age_seconds =
            lengths_read.map(|read| now.saturating_duration_since(read).as_secs());
        // The daemon asks for the source's length when it begins to work.
        status.waiting_seconds = status
            .lists
            .source
            .map(|_| waiting_since.map_or(0.0, |since| since.elapsed().as_secs_f64()));
        status.clients = clients;
        if let Some(filter) = &mut status.filter {
            let until = |limit| growth.seconds_until(limit, filter.keys, now);
            filter.full_seconds = filter.limit.and_then(until);
            if let Some(generations) = &mut filter.generations {
                generations.next_seconds = next_generation.map(|begin| {
                    let left = begin.since_boot.saturating_sub(Moment::now().since_boot);
                    left.as_secs_f64()
                });
            }
        }
        status
    }
}

/// State of a run: the current one and the last published one.
pub(crate) struct Reporter {
    pub(crate) now: Live,
    published: watch::Sender<Live>,
    samples: Samples,
    groups: ByGroup,
    started: Instant,
}

impl Reporter {
    /// Publishes the state of a daemon that starts.
    pub(crate) fn new(config: &Config) -> Self {
        let status = Status::starting(config);
        let now = Live {
            status,
            lease_until: None,
            next_generation: None,
            waiting_since: None,
            growth: Growth::default(),
            lengths_read: None,
        };
        let published = watch::Sender::new(now.clone());
        let (samples, groups) = (Samples::default(), ByGroup::default());
        Self { now, published, samples, groups, started: Instant::now() }
    }

    /// Returns the access for watchers.
    pub(crate) fn watch(&self) -> Watch {
        Watch { live: self.published.subscribe(), samples: self.samples.clone() }
    }

    /// Counts committed batches, and samples their items. If the filter is in Redis, `unseen` is
    /// the number of their unseen items. Then the unseen ones are not known, and no item is
    /// sampled.
    pub(crate) fn count<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a Batch<Ready>> + Clone,
        unseen: Option<u64>,
    ) {
        let Status { rules, counts, rejected_by_reason, .. } = &mut self.now.status;
        batches.clone().for_each(|batch| rejected_by_reason.add(batch));
        for (_, rule) in batches.clone().flat_map(Batch::passed) {
            rules.passed[usize::from(rule)].items += 1;
        }
        for (_, rule) in batches.clone().flat_map(Batch::dropped) {
            rules.dropped[usize::from(rule)].items += 1;
        }
        for over in batches.clone().flat_map(|batch| &batch.findings.over_limit) {
            rules.over_limit[usize::from(over.rule)].items += 1;
            self.groups.add(over, &rules.over_limit);
        }
        if unseen.is_none() {
            batches.clone().for_each(|batch| self.samples.add(batch, rules));
        }
        counts.add(batches, unseen);
    }

    /// Notes the position of the crawl: its last commit, and the number of items that are claimed
    /// and not committed.
    pub(crate) fn note(&mut self, last: Head, processing: u64) {
        let Status { head, lists, .. } = &mut self.now.status;
        *head = Some(last);
        lists.processing = Some(processing);
    }

    /// Notes the length of the source, which the daemon has just read.
    pub(crate) fn note_source(&mut self, waiting: u64) {
        self.now.status.lists.source = Some(waiting);
        self.now.lengths_read = Some(Instant::now());
    }

    /// Notes the durations that the engine and the folder of the filter have observed, and the
    /// begin of the next generation.
    pub(crate) fn note_times(&mut self, works: &Works) {
        self.now.next_generation = works.next_generation();
        let times = &mut self.now.status.times;
        times.judge = works.engine.judge_times;
        if let Some(storage) = &works.storage {
            times.log_sync = storage.requests.log_syncs();
        }
    }

    /// Returns true if the state has changed since the last publication. Ignores the state of the
    /// filter.
    pub(crate) fn has_news(&self) -> bool {
        *self.published.borrow() != self.now
    }

    /// Publishes the state, with the given state of the filter.
    pub(crate) fn publish(&mut self, filter: FilterStatus) {
        if self.now.status.phase.is_ready() {
            self.now.growth.note(filter.keys, Instant::now());
        } else {
            self.now.growth = Growth::default();
        }
        self.now.status.filter = Some(filter);
        self.now.status.rules = self.by_rule();
        self.published.send_replace(self.now.clone());
    }

    /// Returns the numbers of items by rule and by group.
    pub(crate) fn by_rule(&self) -> ByRule {
        let rules = self.now.status.rules.clone();
        let over_limit_by_group = self.groups.fullest(&rules.over_limit);
        ByRule { over_limit_by_group, ..rules }
    }

    /// Returns the progress of the run, with the given state of the filter.
    pub(crate) fn report(&self, filter: FilterStatus) -> Report {
        let Status { counts, asked, lists, .. } = &self.now.status;
        let (source, processing) = (lists.source.unwrap_or(0), lists.processing.unwrap_or(0));
        let seconds = self.started.elapsed().as_secs_f64();
        Report { counts: *counts, asked: *asked, seconds, source, processing, filter }
    }
}
