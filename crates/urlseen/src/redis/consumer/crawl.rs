//! Keys of a crawl, and the deliveries of a consumer from there.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value};

use super::deliveries::Deliveries;
use crate::redis::links::{Links, read_as, unexpected};
use crate::{Error, ErrorKind};
use urlseen_redis::protocol::{HeldCalls, HeldKeys, HeldRecord, RecordError, Requeued};

/// Fields of a crawl record, with their values.
pub(super) type RecordFields = BTreeMap<String, String>;

/// Crawl as a consumer sees it: its crawl record, and the deliveries of the consumer.
pub(super) struct Crawl {
    /// Place among all crawls of the consumer.
    pub(super) number: usize,
    /// Place of its connection.
    pub(super) place: usize,
    pub(super) source: String,
    /// Name of the consumer, with a random suffix.
    pub(super) consumer: String,
    pub(super) deliveries: Deliveries,
    /// True if the last pop found no request.
    pub(super) is_idle: AtomicBool,
    /// Lock of the thread that pops with the next id.
    pub(super) popping: Mutex<()>,
    /// Names of the consumers that existed at the last count of requests.
    consumers: Mutex<Vec<String>>,
    /// Calls with the settings of the last record that was read, or the reason why that record
    /// cannot be used. `None` if no daemon has written a record yet.
    calls: Mutex<Option<Result<Arc<HeldCalls>, RecordError>>>,
    /// True if the record differs from the one of the last look at it.
    pub(super) is_changed: AtomicBool,
    /// Number of rejects at the last look at them.
    pub(super) rejects: AtomicU64,
}

impl Crawl {
    /// Makes a crawl whose record was not read yet.
    pub(super) fn new(number: usize, place: usize, source: String, consumer: &str) -> Self {
        Self {
            number,
            place,
            source,
            consumer: consumer.to_owned(),
            deliveries: Deliveries::new(),
            is_idle: AtomicBool::new(false),
            popping: Mutex::new(()),
            consumers: Mutex::new(Vec::new()),
            calls: Mutex::new(None),
            is_changed: AtomicBool::new(false),
            rejects: AtomicU64::new(0),
        }
    }

    /// Returns the calls with the settings of the crawl's record.
    ///
    /// # Errors
    /// The daemon has written a record that this version cannot use, or no record yet.
    pub(super) fn calls(&self) -> Result<Arc<HeldCalls>, Error> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match calls {
            Some(calls) => calls.map_err(|error| refused(&self.source, &error)),
            None => Err(no_record(&self.source)),
        }
    }

    /// Returns true if no daemon has written a record yet.
    pub(super) fn is_missing(&self) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Reads the crawl record again, because a restarted daemon may have other settings.
    pub(super) fn refresh(&self, links: &Links) -> Result<(), Error> {
        if let Some(fields) = read(links, &self.source)? {
            self.update(&fields);
        }
        Ok(())
    }

    /// Uses these fields of the record from now on, unless there are none.
    pub(super) fn update(&self, fields: &RecordFields) {
        if fields.is_empty() {
            return;
        }
        let found = HeldRecord::parse(fields);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, &*calls) {
            (Ok(record), Some(Ok(known))) if known.record == record => {}
            (found, _) => {
                *calls = Some(found.map(|record| Arc::new(HeldCalls::new(record))));
                self.is_changed.store(true, Relaxed);
            }
        }
    }

    /// Renews the heartbeat. Returns the ids of the deliveries that Redis holds for this
    /// consumer.
    pub(super) fn beat(&self, links: &Links) -> Result<Vec<u64>, Error> {
        let calls = self.calls()?;
        let ids: Vec<String> = read_as(links.ask(0, calls.beat(&self.consumer))?)?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Requeues the deliveries `ids` of this consumer, or all of its deliveries if `ids` is empty.
    /// Returns the number of requeued deliveries.
    pub(super) fn give_back(&self, links: &Links, ids: &[u64]) -> Result<u64, Error> {
        put_back(links.ask(0, self.calls()?.requeue(&self.consumer, "", ids))?)
    }

    /// Requeues the deliveries `ids` that `consumer` did not finish, or all of them if `ids` is
    /// empty. Rejects requests that were delivered too often. Returns false, and requeues nothing,
    /// if the heartbeat of that consumer is no longer `heartbeat`.
    pub(super) fn requeue(
        &self,
        links: &Links,
        consumer: &str,
        heartbeat: &str,
        ids: &[u64],
    ) -> Result<bool, Error> {
        let calls = self.calls()?;
        let reply = links.ask(0, calls.requeue(consumer, heartbeat, ids))?;
        let Requeued::Done { too_often, .. } = requeued(reply)? else { return Ok(false) };
        for too_often in &too_often {
            links.ask(0, calls.reject_too_often(consumer, too_often))?;
        }
        Ok(true)
    }

    /// Returns the names of the consumers that existed at the last count of requests.
    pub(super) fn consumers(&self) -> MutexGuard<'_, Vec<String>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of all consumers, with their heartbeats.
    pub(super) fn heartbeats(&self, links: &Links) -> Result<Vec<(String, String)>, Error> {
        let reply = links.ask(0, Cmd::hgetall(&self.calls()?.keys.consumers).into())?;
        HeldCalls::heartbeats(reply).map_err(unexpected)
    }
}

/// Returns the number of requests that a requeue has put back.
pub(super) fn put_back(reply: Value) -> Result<u64, Error> {
    match requeued(reply)? {
        Requeued::Done { put_back, .. } => Ok(put_back),
        Requeued::Alive | Requeued::Foreign => Ok(0),
    }
}

fn requeued(reply: Value) -> Result<Requeued, Error> {
    HeldCalls::requeued(reply).map_err(unexpected)
}

/// Returns the command that reads the record for the source with the key `source`.
pub(super) fn reading(source: &str) -> Cmd {
    Cmd::hgetall(HeldKeys::of_source(source).record)
}

/// Reads the record, if a daemon has written one.
pub(super) fn read(links: &Links, source: &str) -> Result<Option<RecordFields>, Error> {
    let fields: RecordFields = read_as(links.ask(0, reading(source).into())?)?;
    Ok(Some(fields).filter(|fields| !fields.is_empty()))
}

/// Error for a source without a record.
pub(super) fn no_record(source: &str) -> Error {
    let text = format!(
        "no daemon has run for the source {source} yet: Redis has no crawl record {}. Start \
         urlseen run with source.key = {source:?}, or open the consumer with the daemon's \
         source.key and database",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

/// Error for a record that cannot be used.
pub(super) fn refused(source: &str, error: &RecordError) -> Error {
    let key = HeldKeys::of_source(source).record;
    Error::new(ErrorKind::Mismatch, format!("the crawl record {key} cannot be used: {error}"))
}
