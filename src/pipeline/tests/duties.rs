//! Duties of a session whose requests the server refuses or answers slowly.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::items::{self, Treatment};
use super::oracle::Tally;
use super::run_calm;
use super::server::Fate;
use super::wire::{Words, array, bulk, integer};
use super::world::World;
use urlseen_filter::choice::Fsync;
use urlseen_redis::error::LinkError;

/// Trial of a duty: what the server does to its requests.
#[derive(Debug)]
pub(super) struct Trial {
    /// Starts of the names of its requests.
    requests: &'static [&'static str],
    /// True if the server refuses these requests.
    is_refusing: bool,
    /// Time that the reply to such a request takes.
    pause: Duration,
    /// Number of these requests that came, and that were answered without a refusal.
    count: [usize; 2],
}

/// Name of the request that asks replicas for their saves. It has a connection of its own.
const SAVES: &str = "saves of the replicas";

/// Duties of a session, by the names of their requests. If a duty is only one of filters in the
/// folder, or in Redis, `true` stands for the latter.
const DUTIES: [(&[&str], Option<bool>); 14] = [
    (&["LLEN source"], None),
    (&["LLEN sink", "ZCARD sink"], None),
    (&["LLEN sim:rejected"], None),
    (&["LLEN forget"], Some(false)),
    (&["claim forget"], Some(false)),
    (&["LRANGE urlseen:{source}:forgetting"], Some(false)),
    (&["trim urlseen:{source}:forgetting"], Some(false)),
    (&["INFO"], Some(false)),
    (&[SAVES], Some(false)),
    (&["SCARD filter"], Some(true)),
    (&["HGETALL urlseen:{source}:consumers"], None),
    // Scripts for a consumer: the number of its requests, their requeue, and the reject of one.
    (&["EVAL 1"], None),
    (&["EVAL 4"], None),
    (&["EVAL 3"], None),
];

/// Time that the reply to a request takes if it is slow.
const SLOW: Duration = Duration::from_secs(2);

/// Maximum time for an item, beside the replies that the server delays.
const SOON: Duration = Duration::from_millis(100);

impl Trial {
    /// Notes a request. Returns its fate, and the time that its reply takes.
    fn note(&mut self, name: &str) -> Option<(Fate, Duration)> {
        if !self.requests.iter().any(|start| name.starts_with(start)) {
            return None;
        }
        self.count[0] += 1;
        if self.is_refusing {
            return Some((Fate::Refused("-WRONGTYPE a key holds another type\r\n"), self.pause));
        }
        self.count[1] += 1;
        Some((Fate::Answered, self.pause))
    }
}

impl World {
    /// Returns the fate of a command under trial, and the time that its reply takes. The requests
    /// with which a session begins are no duties.
    pub(super) fn tried(&self, commands: &[Words]) -> Option<(Fate, Duration)> {
        let data = &mut *self.data();
        data.trial.as_ref()?;
        data.state.head.as_ref()?;
        let script = data.script(commands).as_bytes();
        let words = commands.last().expect("a command");
        let word = |index: usize| words.get(index).map_or(&b""[..], |word| word.as_ref());
        let name = match (script, word(0)) {
            // A script that is sent as a text has the number of its keys after the text.
            (b"", b"EVAL") => [word(0), word(2)],
            (b"", _) => [word(0), word(1)],
            // The first key is the lease.
            _ => [script, word(4)],
        };
        let name = name.map(String::from_utf8_lossy).join(" ");
        let tried = data.trial.as_mut()?.note(&name)?;
        data.note(|| format!("on trial: {name}: {tried:?}"));
        Some(tried)
    }

    /// Answers for a consumer that has stopped, and for a replica, while a duty is on trial.
    pub(super) fn trial_reply(&self, commands: &[Words]) -> Option<Vec<u8>> {
        let data = self.data();
        data.trial.as_ref()?;
        let (words, script) = (&commands[0], data.script(commands));
        match (&*words[0], script) {
            (b"HGETALL", _) => Some(array([bulk(b"consumer#1"), bulk(b"1")])),
            (b"EVAL", "") if &*words[2] == b"4" => {
                let delivery = [&b"1"[..], b"0 9 http://held/", b""].map(bulk);
                Some(array(std::iter::once(integer(0)).chain(delivery)))
            }
            (b"EVAL", "") => Some(integer(1)),
            (b"INFO", _) => Some(bulk(
                b"redis_version:7.0.0\r\nrole:master\r\nslave0:ip=::1,port=6380,state=online\r\n",
            )),
            _ => None,
        }
    }

    /// Answers for a replica.
    pub(super) async fn trial_saves(&self) -> Result<String, LinkError> {
        let tried = self.data().trial.as_mut().and_then(|trial| trial.note(SAVES));
        let (fate, pause) = tried.unwrap_or((Fate::Answered, Duration::ZERO));
        sleep(pause).await;
        if fate == Fate::Answered { Ok(String::new()) } else { Err(LinkError::WrongType) }
    }

    /// Feeds items one after the other, and puts each on the list of items to forget, if that list
    /// is read. Returns the longest time that an item took.
    async fn feed_and_forget(&self, numbers: Range<u32>) -> Duration {
        let is_shared = self.data().is_shared;
        let mut longest = Duration::ZERO;
        for number in numbers {
            sleep(Duration::from_secs(1)).await;
            let pushed = Instant::now();
            self.feed(std::iter::once(number));
            self.pass().await;
            longest = longest.max(pushed.elapsed());
            if !is_shared {
                self.forget(std::iter::once(number));
            }
        }
        longest
    }

    /// Waits until all items that were fed are committed.
    async fn pass(&self) {
        let is_passed = || {
            let state = &self.data().state;
            state.source.is_empty() && state.processing.is_empty()
        };
        let begun = Instant::now();
        while !is_passed() {
            assert!(begun.elapsed() < Duration::from_mins(1), "items wait for too long");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the numbers of requests under trial: all, and those that were not refused.
    fn trial_count(&self) -> [usize; 2] {
        self.data().trial.as_ref().expect("a trial").count
    }
}

/// Runs crawls while a duty is on trial: items are committed in time, in one session. Then the
/// server answers as ever, and the duty is done: each item is forgotten once.
fn try_duty(requests: &'static [&'static str], is_refusing: bool, pause: Duration) {
    let adapt = |crawl: &super::Crawl| {
        let mut crawl = crawl.with(4, Fsync::Never, 0);
        crawl.config.held.timeout = Duration::from_secs(8);
        crawl
    };
    // These requests come before a snapshot, for which the logs of some crawls are too short.
    let is_rare = ["INFO", SAVES].contains(&requests[0]);
    let repeated = &Cell::new(0);
    let place = DUTIES.iter().find(|(duty, _)| *duty == requests).expect("a duty").1;
    run_calm(adapt, |world| async move {
        let is_shared = world.data().is_shared;
        let passes_again_unasked = {
            let data = world.data();
            data.limit.is_some() || data.expire_after.is_some()
        };
        if passes_again_unasked || place.is_some_and(|place| place != is_shared) {
            return world.wind_up().await;
        }
        world.data().trial = Some(Trial { requests, is_refusing, pause, count: [0; 2] });
        world.feed(0..20);
        world.pass().await;
        let numbers = 20..32;
        let longest = world.feed_and_forget(numbers.clone()).await;
        assert!(longest < pause + SOON, "{requests:?}: an item took {longest:?}");
        sleep(Duration::from_secs(20)).await;
        world.feed(numbers.clone());
        world.pass().await;
        let [came, answered] = world.trial_count();
        assert!(came >= if is_rare { 1 } else { 2 }, "{requests:?} came {came} times");
        assert!(is_refusing == (answered == 0), "{requests:?}");

        if let Some(trial) = &mut world.data().trial {
            (trial.is_refusing, trial.pause) = (false, Duration::ZERO);
        }
        if !is_shared {
            world.forget(0..1);
        }
        sleep(Duration::from_secs(20)).await;
        assert!(world.is_done(), "{requests:?}: keys to forget wait");
        let again = world.trial_count()[1] - answered;
        assert!(is_rare || again > 0, "{requests:?} does not come again");
        repeated.set(repeated.get() + came - 1 + again);
        world.feed(numbers.clone());
        world.pass().await;
        assert_eq!(world.data().sessions, 1, "{requests:?}");
        if !is_shared {
            let emitted = Tally::of(&world.data().state).emitted;
            for number in numbers.filter(|&it| items::treatment(it) == Treatment::Filtered) {
                assert_eq!(emitted[number as usize], 2, "{requests:?}: item {number}");
            }
        }
        world.wind_up().await
    });
    assert!(repeated.get() > 0, "{requests:?} does not come again");
}

/// Fails if a refused request of a duty ends the session, or delays a commit, or is not repeated.
#[test]
fn a_duty_that_is_refused_ends_no_session_and_comes_again() {
    for (requests, _) in DUTIES {
        try_duty(requests, true, Duration::ZERO);
    }
}

/// Fails if a commit waits for the reply to a duty for longer than that reply takes.
#[test]
fn a_slow_duty_delays_an_item_by_its_own_reply_at_most() {
    for (requests, _) in DUTIES {
        try_duty(requests, false, SLOW);
    }
}
