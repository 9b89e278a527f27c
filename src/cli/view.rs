//! Answers of a running daemon to its admin endpoint.

use std::time::Instant;

use crate::admin::{CheckError, Checked, Status, View};
use crate::pipeline::Live;
use tokio::sync::watch;
use urlseen_core::filter::Verdict;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::{Config, FilterPlace};
use urlseen_engine::engine::Handle;
use urlseen_engine::item::{Identity, Options, Reader};

use super::start;

/// Running daemon, as the admin endpoint sees it.
pub(super) struct Daemon {
    items: Options,
    /// True if the filter is in Redis.
    is_shared: bool,
    live: watch::Receiver<Live>,
    filter: Handle,
}

impl Daemon {
    /// Returns the view of a daemon. `live` receives the status that the pipeline publishes.
    /// `filter` sends questions to the engine.
    pub(super) fn new(config: &Config, live: watch::Receiver<Live>, filter: Handle) -> Self {
        let is_shared = config.filter.place == FilterPlace::Redis;
        Self { items: start::items(config), is_shared, live, filter }
    }
}

impl View for Daemon {
    fn status(&self) -> Status {
        let Live { mut status, lease_until } = self.live.borrow().clone();
        let lease = lease_until.filter(|_| status.phase.is_ready());
        let left = |until: Instant| until.saturating_duration_since(Instant::now()).as_secs_f64();
        status.lease_seconds = lease.map(left);
        status
    }

    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, CheckError> {
        let phase = self.live.borrow().status.phase.clone();
        if !phase.is_ready() {
            return Err(CheckError(format!("the filter is not ready: {phase}")));
        }
        if self.is_shared {
            let reason = "the filter is in Redis: use urlseen check, which asks Redis".to_owned();
            return Err(CheckError(reason));
        }
        check(items, self.items, |fingerprints| {
            let gone = || CheckError("the daemon is ending".to_owned());
            self.filter.test(fingerprints).ok_or_else(gone)
        })
    }
}

/// Reads items with the given options, and gets the verdicts on their fingerprints from `test`.
pub(super) fn check<E>(
    items: &[Vec<u8>],
    options: Options,
    test: impl FnOnce(&[Fingerprint]) -> Result<Vec<Verdict>, E>,
) -> Result<Vec<Checked>, E> {
    let (mut reader, mut fingerprints) = (Reader::new(options), Vec::new());
    let read = items.iter().map(|item| match reader.read(item).map(|item| item.identity) {
        Err(unreadable) => Some(Checked::Unreadable { reason: unreadable.to_string() }),
        Ok(Identity::Unfiltered) => Some(Checked::Unfiltered),
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
