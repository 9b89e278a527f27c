//! Time limits: renewals of the lease with a slow server and with a hanging disk, and the commands
//! of an idle crawl.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::run_calm;
use super::world::World;
use crate::report::Phase;
use urlseen_filter::choice::Fsync;
use urlseen_redis::protocol::{LEASE, RENEWAL};

impl World {
    /// Makes the server answer nothing for a while.
    fn silence(&self, time: Duration) {
        self.data().silent_until = Some(Instant::now() + time);
    }

    /// Makes the disk answer nothing for a while.
    fn hang(&self, time: Duration) {
        self.data().disk.hangs_until = Some(Instant::now() + time);
    }

    /// Returns true while the server has a lease of a daemon that has not ended.
    fn is_leased(&self) -> bool {
        self.data().state.lease().is_some()
    }
}

/// Fails if a daemon that waits for further items before each claim does not renew its lease.
#[test]
fn a_daemon_that_lingers_renews_its_lease() {
    let adapt = |crawl: &super::Crawl| {
        let mut crawl = crawl.with(4, Fsync::Never, 0);
        crawl.config.source.linger = Some(Duration::from_secs(1));
        crawl
    };
    run_calm(adapt, |world| async move {
        for number in 0..20 {
            world.feed(std::iter::once(number));
            world.all_done().await;
        }
        assert_eq!(world.data().sessions, 1);
        world.wind_up().await
    });
}

/// Fails if a daemon goes on working although Redis may already have ended its lease.
#[test]
fn a_lease_that_cannot_be_renewed_stops_the_work_before_it_ends() {
    run_calm(
        |crawl| crawl.with(4, Fsync::Never, 0),
        |world| async move {
            world.feed(0..20);
            world.all_done().await;
            world.silence(Duration::from_secs(30));
            while matches!(world.live().status.phase, Phase::Working) {
                sleep(Duration::from_millis(10)).await;
            }
            let phase = world.live().status.phase;
            let Phase::RedisAway { trouble } = phase else { panic!("{phase:?}") };
            assert!(trouble.starts_with("the lease could not be renewed"), "{trouble}");
            assert!(world.is_leased());
            world.feed(20..40);
            world.wind_up().await
        },
    );
}

/// Fails if requests to a silent server pile up, or if the daemon gives up a lease that it can
/// still renew.
#[test]
fn a_server_that_is_silent_for_a_while_ends_no_session() {
    run_calm(
        |crawl| crawl.with(4, Fsync::Never, 0),
        |world| async move {
            world.feed(0..20);
            world.all_done().await;
            // The lease counts as lost 13 s after its last renewal, which is at most 5 s ago.
            world.silence(Duration::from_secs(7));
            world.feed(20..40);
            world.all_done().await;
            assert_eq!(world.data().sessions, 1);
            world.wind_up().await
        },
    );
}

/// Fails if a daemon whose disk hangs keeps its lease, so that no standby can take over, or if it
/// commits anything after another program has the lease. With `Fsync::Always`, the session waits
/// for the disk before each commit.
#[test]
fn a_daemon_with_a_hanging_disk_loses_its_lease_and_commits_nothing_afterwards() {
    for fsync in [Fsync::Never, Fsync::Always] {
        run_calm(
            |crawl| crawl.with(4, fsync, 0),
            |world| async move {
                if world.data().is_shared {
                    return world.wind_up().await;
                }
                world.feed(0..20);
                world.all_done().await;
                world.hang(Duration::from_hours(1));
                world.feed(20..40);
                sleep(RENEWAL + LEASE).await;
                assert!(!world.is_leased());
                let (head, later) = {
                    let mut data = world.data();
                    let later = Instant::now() + Duration::from_secs(20);
                    data.state.lease = Some(("f".repeat(32), later));
                    (data.state.head.clone(), later)
                };
                world.hang(Duration::ZERO);
                sleep(Duration::from_secs(15)).await;
                assert_eq!(world.data().state.head, head);
                assert_eq!(world.data().state.lease, Some(("f".repeat(32), later)));
                world.wind_up().await
            },
        );
    }
}

/// Fails if an item waits for a timer. A command takes the simulated server up to 2 ms.
#[test]
fn an_item_pushed_into_an_idle_crawl_passes_at_once() {
    run_calm(
        |crawl| crawl.with(4, Fsync::Never, 0),
        |world| async move {
            for number in 0..20 {
                sleep(Duration::from_millis(700)).await;
                let pushed = Instant::now();
                world.feed(std::iter::once(number));
                world.wait_until(World::is_done).await;
                let took = pushed.elapsed();
                assert!(took < Duration::from_millis(100), "{took:?}");
            }
            world.wind_up().await
        },
    );
}

/// Fails if an idle daemon sends a command a second. The command that waits for items is not
/// counted. A filter in Redis is checked several times a second, so the test does not run these
/// crawls.
#[test]
fn an_idle_crawl_sends_few_commands() {
    run_calm(
        |crawl| crawl.with(4, Fsync::Never, 0),
        |world| async move {
            if world.data().is_shared {
                return world.wind_up().await;
            }
            world.feed(0..20);
            world.all_done().await;
            sleep(Duration::from_secs(1)).await;
            let before = world.interleavings();
            sleep(Duration::from_mins(1)).await;
            let sent = world.interleavings() - before;
            assert!(sent < 60, "{sent} commands in a minute");
            world.wind_up().await
        },
    );
}
