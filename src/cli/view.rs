//! Answers of a running daemon to its admin endpoint.

use std::sync::{Mutex, MutexGuard};

use crate::admin::Sample;
use crate::cli::prelude::*;
use crate::report::Watch;
use crate::serve::ServerState;
use urlseen_engine::engine::Handle;
use urlseen_filter::Verdict;
use urlseen_fingerprint::{Partition, PartitionCount};

/// Running daemon, as the admin endpoint sees it.
pub(super) struct Daemon {
    items: Options,
    /// True if the filter is in Redis.
    is_shared: bool,
    watch: Watch,
    filter: Handle,
    /// Clients of `serve.listen`, if the daemon listens there.
    clients: Option<Arc<ServerState>>,
}

/// All partitions of a crawl that run in this process, as the admin endpoint sees them.
pub(super) struct Partitions {
    /// Options for reading items of all partitions.
    items: Options,
    count: PartitionCount,
    /// All partitions of the process, in order.
    views: Mutex<BTreeMap<Partition, PartitionView>>,
}

/// Partition of a process, as the admin endpoint sees it.
enum PartitionView {
    /// Partition that is being prepared, or whose preparation has failed.
    Prepared(Box<Status>),
    Running(Arc<Daemon>),
}

impl PartitionView {
    fn status(&self) -> Status {
        match self {
            Self::Prepared(status) => (**status).clone(),
            Self::Running(daemon) => daemon.status_now(),
        }
    }
}

impl Partitions {
    /// Returns the view of a process that begins to prepare these partitions of `crawl`.
    pub(super) fn new(crawl: &Config, partitions: &[Config]) -> Self {
        let (items, count) = (start::items(crawl), crawl.partitions.count);
        let starting = |config: &Config| {
            let status = Box::new(Status::starting(config));
            (config.partition, PartitionView::Prepared(status))
        };
        let views = partitions.iter().map(starting).collect();
        Self { items, count, views: Mutex::new(views) }
    }

    /// Notes the phase of a partition that is being prepared. A partition that runs publishes its
    /// phase itself.
    pub(super) fn enter(&self, partition: Partition, phase: Phase) {
        if let Some(PartitionView::Prepared(status)) = self.views().get_mut(&partition) {
            status.phase = phase;
        }
    }

    /// Notes the phase of all partitions, before any of them runs.
    pub(super) fn enter_all(&self, phase: &Phase) {
        let partitions: Vec<_> = self.views().keys().copied().collect();
        for partition in partitions {
            self.enter(partition, phase.clone());
        }
    }

    /// Notes that a partition runs.
    pub(super) fn run(&self, partition: Partition, daemon: Arc<Daemon>) {
        self.views().insert(partition, PartitionView::Running(daemon));
    }

    fn views(&self) -> MutexGuard<'_, BTreeMap<Partition, PartitionView>> {
        self.views.lock().expect("no holder panics")
    }
}

impl View for Partitions {
    fn status(&self) -> Statuses {
        let mut partitions: Vec<_> = self.views().values().map(PartitionView::status).collect();
        if self.count == PartitionCount::ONE {
            Statuses::One(Box::new(partitions.remove(0)))
        } else {
            Statuses::Partitions { partitions }
        }
    }

    fn samples(&self, after: u64) -> Vec<Sample> {
        let views = self.views();
        let running = views.values().filter_map(|view| match view {
            PartitionView::Running(daemon) => Some(daemon.samples(after)),
            PartitionView::Prepared(_) => None,
        });
        let mut all: Vec<_> = running.flatten().collect();
        all.sort_unstable_by_key(|it| it.number);
        all
    }

    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, String> {
        by_partition(items, &self.items, self.count, |partition, items| {
            let daemon = match self.views().get(&partition) {
                Some(PartitionView::Running(daemon)) => Arc::clone(daemon),
                Some(PartitionView::Prepared(status)) => {
                    return Err(format!("the filter is not ready: {}", status.phase));
                }
                None => {
                    let words = format!("this process does not run partition {partition}");
                    return Err(words);
                }
            };
            daemon.check(items)
        })
    }
}

/// Divides items by their partitions, and checks the items of each partition with `check`. Items
/// without a fingerprint go to the first partition.
pub(super) fn by_partition<E>(
    items: &[Vec<u8>],
    options: &Options,
    count: PartitionCount,
    mut check: impl FnMut(Partition, &[Vec<u8>]) -> Result<Vec<Checked>, E>,
) -> Result<Vec<Checked>, E> {
    let mut reader = Reader::new(options.clone());
    let mut parts: BTreeMap<Partition, Vec<usize>> = BTreeMap::new();
    let first = count.partitions().next().unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        let partition = match reader.read(item).map(|item| item.identity) {
            Ok(Identity::Fingerprint(fingerprint)) => count.of(&fingerprint),
            Ok(Identity::Unfiltered | Identity::Dropped(_)) | Err(_) => first,
        };
        parts.entry(partition).or_default().push(index);
    }
    let mut checked: Vec<Option<Checked>> = vec![None; items.len()];
    for (partition, indices) in parts {
        let items: Vec<_> = indices.iter().map(|&index| items[index].clone()).collect();
        for (index, found) in indices.into_iter().zip(check(partition, &items)?) {
            checked[index] = Some(found);
        }
    }
    Ok(checked.into_iter().map(|found| found.expect("each item has a partition")).collect())
}

impl Daemon {
    /// Returns the view of a daemon. `watch` sees what the pipeline publishes. `filter` sends
    /// questions to the engine.
    pub(super) fn new(
        config: &Config,
        watch: Watch,
        filter: Handle,
        clients: Option<Arc<ServerState>>,
    ) -> Self {
        let is_shared = config.filter.place == FilterPlace::Redis;
        Self { items: start::items(config), is_shared, watch, filter, clients }
    }

    fn status_now(&self) -> Status {
        self.watch.status(self.clients.as_ref().map(|state| state.clients()))
    }
}

impl View for Daemon {
    fn status(&self) -> Statuses {
        Statuses::One(Box::new(self.status_now()))
    }

    fn samples(&self, after: u64) -> Vec<Sample> {
        let (samples, mut reader) =
            (self.watch.samples.after(after), Reader::new(self.items.clone()));
        let mut same_as = |item: &[u8]| reader.same_steps(item).pop().map(|step| step.after);
        samples.into_iter().map(|it| Sample::new(same_as(&it.item), it)).collect()
    }

    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, String> {
        let phase = self.watch.live.borrow().status.phase.clone();
        if !phase.is_ready() {
            return Err(format!("the filter is not ready: {phase}"));
        }
        if self.is_shared {
            let reason = "the filter is in Redis: use urlseen check, which asks Redis".to_owned();
            return Err(reason);
        }
        check(items, &self.items, |fingerprints| {
            let gone = || "the daemon is ending".to_owned();
            self.filter.test(fingerprints).ok_or_else(gone)
        })
    }
}

/// Reads items with the given options, and gets the verdicts on their fingerprints from `test`.
pub(super) fn check<E>(
    items: &[Vec<u8>],
    options: &Options,
    test: impl FnOnce(&[Fingerprint]) -> Result<Vec<Verdict>, E>,
) -> Result<Vec<Checked>, E> {
    let (mut reader, mut fingerprints) = (Reader::new(options.clone()), Vec::new());
    let read = items.iter().map(|item| match reader.read(item).map(|item| item.identity) {
        Err(unreadable) => Some(Checked::Unreadable { reason: unreadable.to_string() }),
        Ok(Identity::Unfiltered) => Some(Checked::Unfiltered),
        Ok(Identity::Dropped(rule)) => {
            Some(Checked::Dropped { rule: options.drop[usize::from(rule)].name.clone() })
        }
        Ok(Identity::Fingerprint(fingerprint)) => {
            fingerprints.push(fingerprint);
            None
        }
    });
    let read: Vec<Option<Checked>> = read.collect();
    let mut verdicts = test(&fingerprints)?.into_iter().zip(fingerprints);
    let mut verdict = || {
        let (verdict, fingerprint) = verdicts.next().expect("one for each fingerprint");
        let fingerprint = fingerprint.to_string();
        match verdict {
            Verdict::Seen => Checked::Seen { fingerprint },
            Verdict::Unseen => Checked::Unseen { fingerprint },
        }
    };
    Ok(read.into_iter().map(|checked| checked.unwrap_or_else(&mut verdict)).collect())
}
