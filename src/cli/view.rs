//! What the admin endpoint sees of the daemon.

use std::time::{Instant, SystemTime};

use crate::admin::{
    Archive, Asked, CheckError, Checked, Counts, FilterStatus, Lists, Status, Storage, View,
};
use crate::pipeline::Live;
use tokio::sync::watch;
use urlseen_core::filter::Verdict;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::{Config, FilterPlace, SourceKind};
use urlseen_engine::engine::Handle;
use urlseen_engine::engine::store::Footprint;
use urlseen_engine::item::{Identity, Options, Reader};

use super::start;

/// The running daemon.
pub(super) struct Daemon {
    crawl: String,
    since: SystemTime,
    redis: String,
    items: Options,
    /// Whether the filter is in Redis.
    is_shared: bool,
    live: watch::Receiver<Live>,
    filter: Handle,
}

impl Daemon {
    /// The daemon whose pipeline tells `live`, with what `filter` asks.
    pub(super) fn new(config: &Config, live: watch::Receiver<Live>, filter: Handle) -> Self {
        Self {
            crawl: config.crawl.name.clone(),
            since: SystemTime::now(),
            redis: match config.source.kind {
                SourceKind::List => config.redis.url.to_string(),
                SourceKind::None => "none: there is no source".to_owned(),
            },
            items: start::items(config),
            is_shared: config.filter.place == FilterPlace::Redis,
            live,
            filter,
        }
    }
}

impl View for Daemon {
    fn status(&self) -> Status {
        let live = self.live.borrow().clone();
        let Live { phase, report, head, lease_until, sink, rejected, kept, passed } = live;
        let lease = lease_until.map(|until| until.saturating_duration_since(Instant::now()));
        let is_known = head.is_some();
        let tally = report.tally;
        Status {
            crawl: self.crawl.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: self.since,
            redis: self.redis.clone(),
            head: head.map(Into::into),
            lease_seconds: lease.filter(|_| phase.is_ready()).map(|lease| lease.as_secs_f64()),
            phase,
            counts: Counts {
                unseen: tally.unseen,
                seen: tally.seen,
                unfiltered: tally.unfiltered,
                rejected: tally.rejected,
                rejects_dropped: tally.rejects_dropped,
                batches: tally.batches,
                batches_aborted: tally.batches_aborted,
                recoveries: tally.recoveries,
                rollbacks: tally.rollbacks,
                snapshots: tally.snapshots,
                log_bytes: kept.as_ref().map_or(0, |kept| kept.logged),
            },
            passed: start::passed(self.items.pass, &passed),
            asked: Asked {
                seen: report.asked.seen,
                unseen: report.asked.unseen,
                full: report.asked.full,
                forgotten: report.asked.forgotten,
            },
            lists: Lists {
                source: is_known.then_some(report.source),
                processing: is_known.then_some(report.processing),
                sink,
                rejected,
            },
            filter: Some(FilterStatus {
                keys: report.keys,
                capacity: report.capacity,
                fill: report.fill,
                error_rate: report.error_rate,
                bytes: report.bytes,
                forgotten: report.forgotten as u64,
            }),
            storage: kept.map(
                |Footprint { dir, fsync, snapshots, last_snapshot, log_bytes, archive, .. }| {
                    let fsync = fsync.to_string();
                    let archive = archive.map(|(bytes, is_whole)| Archive { bytes, is_whole });
                    Storage { dir, fsync, snapshots, last_snapshot, log_bytes, archive }
                },
            ),
        }
    }

    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, CheckError> {
        if !self.live.borrow().phase.is_ready() {
            let phase = &self.live.borrow().phase;
            return Err(CheckError(format!("the filter is not ready: {phase}")));
        }
        if self.is_shared {
            let reason = "the filter is in Redis: urlseen check asks it there".to_owned();
            return Err(CheckError(reason));
        }
        check(items, self.items, |fingerprints| {
            let gone = || CheckError("the daemon is ending".to_owned());
            self.filter.test(fingerprints).ok_or_else(gone)
        })
    }
}

/// Reads items as `options` say, and has `test` tell which of their fingerprints were seen.
pub(super) fn check<E>(
    items: &[Vec<u8>],
    options: Options,
    test: impl FnOnce(&[Fingerprint]) -> Result<Vec<Verdict>, E>,
) -> Result<Vec<Checked>, E> {
    let mut reader = Reader::new(options);
    let mut fingerprints = Vec::new();
    let mut read: Vec<Result<(), Checked>> = Vec::with_capacity(items.len());
    for item in items {
        read.push(match reader.read(item) {
            Err(unreadable) => Err(Checked::Unreadable { reason: unreadable.to_string() }),
            Ok(item) => match item.identity {
                Identity::Unfiltered => Err(Checked::Unfiltered),
                Identity::Fingerprint(fingerprint) => {
                    fingerprints.push(fingerprint);
                    Ok(())
                }
            },
        });
    }
    let verdicts = test(&fingerprints)?;
    let mut verdicts = verdicts.into_iter().zip(fingerprints);
    let checked = read.into_iter().map(|read| {
        let Err(checked) = read else {
            let (verdict, fingerprint) = verdicts.next().expect("one for each that was read");
            let fingerprint = fingerprint.to_string();
            return match verdict {
                Verdict::Seen => Checked::Seen { fingerprint },
                Verdict::Unseen => Checked::Unseen { fingerprint },
            };
        };
        checked
    });
    Ok(checked.collect())
}
