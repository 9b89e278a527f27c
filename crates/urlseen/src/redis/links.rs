//! Connections over which filters and consumers ask their questions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use redis::{FromRedisValue, RedisError, RedisResult, Value};

use super::circuit_breakers::CircuitBreakers;
use super::link::Link;
use super::patience::{Patience, is_unknown_script, last};
use crate::{Error, ErrorKind};
use urlseen_redis::protocol::Call;

/// Connections of a filter, of a consumer, or of its heartbeats.
pub(super) struct Links {
    all: Vec<Mutex<Link>>,
    /// Circuit breakers of the connections, if they rest after failed calls.
    breakers: Option<Arc<CircuitBreakers>>,
    is_cluster: bool,
    retries: u32,
}

/// Question that is safe to repeat, with the place of its connection.
pub(super) type Addressed = (usize, Call);

/// Question with its answer, if it has one.
struct Open<'a> {
    place: usize,
    question: &'a Call,
    /// True if the server does not know the script of the question by its hash.
    by_text: bool,
    answer: Option<Result<Value, Error>>,
}

impl Links {
    /// Joins connections. They have circuit breakers if there are several, and no call is repeated.
    pub(super) fn new(mut all: Vec<Link>, retries: u32) -> Self {
        let is_cluster = all.iter().any(|link| link.address.is_cluster());
        let can_break = retries == 0 && all.len() > 1;
        let breakers = can_break.then(|| Arc::new(CircuitBreakers::new(all.len())));
        if let Some(breakers) = &breakers {
            all.iter_mut().enumerate().for_each(|(place, link)| link.break_with(breakers, place));
        }
        Self { all: all.into_iter().map(Mutex::new).collect(), breakers, is_cluster, retries }
    }

    /// Returns true if no connection can be used now. Call this after a failed call.
    pub(super) fn are_away(&self) -> bool {
        let rests = |place| self.breakers.as_ref().is_none_or(|all| all.reason(place).is_some());
        (0..self.len()).all(rests)
    }

    /// Returns the error that opened the circuit breaker at this place.
    pub(super) fn open_circuit(&self, place: usize) -> Option<String> {
        let reason = self.breakers.as_ref()?.reason(place)?;
        Some(last(&reason, self.is_cluster).to_string())
    }

    /// Returns the connections.
    pub(super) fn into_all(self) -> impl Iterator<Item = Link> {
        self.all.into_iter().filter_map(|link| link.into_inner().ok())
    }

    /// Returns the number of connections.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Waits until no other thread uses the connection.
    pub(super) fn lock(&self, place: usize) -> MutexGuard<'_, Link> {
        // A panic of another thread does no harm: a connection that was interrupted during a call
        // is never used again (`Link::connect`).
        self.all[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one question. Repeats it if it fails.
    pub(super) fn ask(&self, place: usize, question: Call) -> Result<Value, Error> {
        self.ask_all(&[(place, question)], self.retries, |_| {}).swap_remove(0)
    }

    /// Sends all questions before it waits for the answers. Repeats questions that failed up to
    /// `retries` times, each time on a new connection. Returns the answers in the order of the
    /// questions. Calls `connected` with the place of each new connection.
    pub(super) fn ask_all(
        &self,
        questions: &[Addressed],
        retries: u32,
        connected: impl Fn(usize),
    ) -> Vec<Result<Value, Error>> {
        let open = |&(place, ref question)| Open { place, question, by_text: false, answer: None };
        let mut all: Vec<Open<'_>> = questions.iter().map(open).collect();
        let mut patience = Patience::new(retries, self.is_cluster);
        while let Some(wait) = self.round(&mut all, &mut patience, &connected) {
            thread::sleep(wait);
        }
        all.into_iter().filter_map(|open| open.answer).collect()
    }

    /// Asks all open questions once. Returns the time to wait before the next round, or `None` if
    /// all questions have answers.
    fn round(
        &self,
        all: &mut [Open<'_>],
        patience: &mut Patience,
        connected: impl Fn(usize),
    ) -> Option<Duration> {
        let mut groups: BTreeMap<usize, Vec<&mut Open<'_>>> = BTreeMap::new();
        for open in all.iter_mut().filter(|open| open.answer.is_none()) {
            groups.entry(open.place).or_default().push(open);
        }
        // The places are in ascending order, so two threads never wait for each other.
        let mut links: Vec<_> = groups.keys().map(|&place| self.lock(place)).collect();
        let before: Vec<u64> = links.iter().map(|link| link.connects).collect();
        let opened = connect(&mut links);
        let sent: Vec<_> = (links.iter_mut().zip(groups.values()).zip(opened))
            .map(|((link, group), opened)| {
                opened.and_then(|()| link.send(&packed(group), group.len()))
            })
            .collect();
        let (mut wait, start) = (None, patience.clone());
        for (((link, (&place, group)), sent), before) in
            links.iter_mut().zip(&mut groups).zip(sent).zip(before)
        {
            let mut is_broken = false;
            for open in group {
                match sent.clone().and_then(|()| link.receive()) {
                    Ok(value) => open.answer = Some(Ok(value)),
                    Err(error) if !open.by_text && is_unknown_script(&error) => {
                        open.by_text = true;
                        wait = wait.max(Some(Duration::ZERO));
                    }
                    Err(error) => {
                        is_broken = true;
                        link.went_away(&error);
                        let mut next = start.clone();
                        match next.after(&error) {
                            Ok(pause) => (wait, *patience) = (wait.max(Some(pause)), next),
                            Err(error) => open.answer = Some(Err(error)),
                        }
                    }
                }
            }
            if is_broken {
                link.close();
            }
            if link.connects != before {
                connected(place);
            }
        }
        wait
    }
}

/// Opens the connections that are not open, all at the same time.
fn connect(links: &mut [MutexGuard<'_, Link>]) -> Vec<RedisResult<()>> {
    if links.iter().filter(|link| link.connection.is_none()).count() < 2 {
        return links.iter_mut().map(|link| link.connect()).collect();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = links
            .iter_mut()
            .map(|link| {
                let link: &mut Link = link;
                thread::Builder::new().spawn_scoped(scope, || link.connect())
            })
            .collect();
        let ended = threads.into_iter().map(|thread| match thread?.join() {
            Ok(opened) => opened,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

/// Joins the commands of questions.
fn packed(group: &[&mut Open<'_>]) -> Vec<u8> {
    group.iter().flat_map(|open| open.question.command(open.by_text).get_packed_command()).collect()
}

/// Converts a reply to the expected type.
pub(super) fn read_as<T: FromRedisValue>(reply: Value) -> Result<T, Error> {
    T::from_redis_value(reply).map_err(unexpected)
}

/// Makes the error for a reply that the call cannot have.
pub(super) fn unexpected(error: impl Into<RedisError>) -> Error {
    let error: RedisError = error.into();
    Error::new(ErrorKind::Refused, format!("Redis returned an unexpected answer: {error}"))
}
