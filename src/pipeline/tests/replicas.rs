//! Replicas of the simulated server, and crawls that wait for them.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use super::events::Kind;
use super::run_calm;
use super::state::State;
use super::wire::{Words, integer};
use super::world::World;
use crate::report::{Backpressure, Phase};
use urlseen_filter::choice::Fsync;

/// Number of replicas that the crawls of these tests wait for.
const WANTED: u64 = 2;

/// Maximum number of commits that a daemon sends without an acknowledgement.
const IN_FLIGHT: u64 = 3;

/// Replicas of the server. All of them have the same data.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    /// Data that the replicas last acknowledged. `None` if the server has come back with other data
    /// since.
    pub(super) state: Option<State>,
    /// Number of replicas that acknowledge nothing.
    missing: usize,
}

impl World {
    /// Answers `WAIT`. Either the replicas get all data now, or the time-out passes.
    pub(super) async fn wait_for_replicas(&self, words: &Words) -> Vec<u8> {
        let number = |word: &[u8]| -> usize { String::from_utf8_lossy(word).parse().unwrap() };
        let (wanted, timeout) = (number(&words[1]), number(&words[2]));
        let missing = {
            let data = &mut *self.data();
            data.replicas.missing.max(usize::from(data.may(Kind::LagReplicas, 4)))
        };
        if missing > 0 {
            sleep(Duration::from_millis(timeout as u64)).await;
            return integer(wanted - missing);
        }
        let data = &mut *self.data();
        let head = data.state.head.clone();
        data.note(|| format!("the replicas have {head:?}"));
        data.replicas.state = Some(data.state.clone());
        integer(wanted)
    }

    /// Makes a replica take over, with the data that it last acknowledged.
    pub(super) fn fail_over(&self) {
        {
            let data = &mut *self.data();
            let replica = data.replicas.state.take();
            // Without a head, no batch was committed yet.
            let is_certain = |state: &State| state.head.is_none() || data.is_certain(state);
            let Some(state) = replica.filter(is_certain) else { return };
            data.load(state);
        }
        self.cut();
    }

    fn set_missing(&self, missing: usize) {
        self.data().replicas.missing = missing;
    }

    /// Returns the number of the last commit of the server and of the replicas.
    fn commits(&self) -> (u64, u64) {
        let seq = |state: &State| state.head.as_ref().map_or(0, |(seq, _)| seq.parse().unwrap());
        let data = self.data();
        (seq(&data.state), data.replicas.state.as_ref().map_or(0, seq))
    }
}

/// Runs crawls that wait for replicas in a world without faults.
fn run<F: Future<Output = Infallible>>(events: impl Fn(World) -> F) {
    run_calm(|crawl| crawl.with(4, Fsync::Never, WANTED), events);
}

/// Fails if a commit counts before the replicas have it, if a lease ends during the wait, or if
/// commits are sent without a bound.
#[test]
fn a_commit_counts_only_after_enough_replicas_have_it() {
    run(|world| async move {
        world.feed(0..60);
        world.wait_until(|world| world.commits().0 >= 3).await;
        world.set_missing(1);
        sleep(Duration::from_mins(1)).await;
        let (server, replicas) = world.commits();
        assert_eq!(server, replicas + IN_FLIGHT);
        let live = world.live();
        assert_eq!(live.status.head.map(|head| head.seq), Some(replicas));
        assert_eq!(live.status.counts.batches, replicas);
        assert_eq!(live.status.phase, Phase::Backpressure { by: Backpressure::Replicas });

        world.fail_over();
        world.set_missing(0);
        world.wait_until(World::is_done).await;
        world.wait_until(|world| world.live().status.counts.items() >= 60).await;
        let counts = world.live().status.counts;
        assert_eq!((counts.rollbacks, counts.recoveries, counts.batches_aborted), (0, 1, 0));
        world.wind_up().await
    });
}

/// Fails if the daemon claims items while a commit waits. The position of the crawl would be wrong
/// after that claim.
#[test]
fn items_that_arrive_while_a_commit_waits_are_claimed_later() {
    run(|world| async move {
        world.feed(0..4);
        world.wait_until(|world| world.commits().0 > 0).await;
        world.set_missing(1);
        world.feed(4..20);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(world.data().state.processing, [""; 0]);
        let live = world.data().live.clone().expect("a daemon");
        world.set_missing(0);
        world.wait_until(World::is_done).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(live.borrow().status.counts.batches_aborted, 0);
        world.wind_up().await
    });
}

/// Fails if a commit is sent before the replicas have the lease.
#[test]
fn nothing_is_committed_before_enough_replicas_have_the_lease() {
    run(|world| async move {
        world.set_missing(2);
        world.feed(0..60);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(world.data().state.head, None);
        let Phase::ReplicasAway { trouble } = world.live().status.phase else { panic!("no wait") };
        assert!(trouble.starts_with("0 of 2 replicas (redis.wait_replicas)"), "{trouble}");
        world.set_missing(0);
        world.wind_up().await
    });
}

/// Fails if a commit is sent before the replicas have the first position of the crawl. After a
/// failover without this position, the daemon could not go on.
#[test]
fn nothing_is_committed_before_enough_replicas_have_the_beginning_of_a_crawl() {
    run(|world| async move {
        world.feed(0..60);
        world.wait_until(|world| world.data().replicas.state.is_some()).await;
        world.set_missing(1);
        assert_eq!(world.data().state.head, None);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(world.data().state.sink, [""; 0]);
        world.fail_over();
        world.set_missing(0);
        world.wind_up().await
    });
}

/// Fails if a daemon never ends without the replicas, or if its next start repeats the last
/// commits.
#[test]
fn a_daemon_that_waits_for_replicas_can_be_stopped() {
    run(|world| async move {
        world.feed(0..60);
        world.wait_until(|world| world.commits().0 >= 3).await;
        world.set_missing(1);
        sleep(Duration::from_secs(10)).await;
        world.ask_to_stop(true);
        sleep(Duration::from_secs(5)).await;
        {
            let (server, _) = world.commits();
            let State { source, processing, .. } = &world.data().state;
            assert_eq!((source.len() as u64, processing.len()), (60 - 4 * server, 0));
        }
        world.ask_to_stop(false);
        world.set_missing(0);
        world.wind_up().await
    });
}
