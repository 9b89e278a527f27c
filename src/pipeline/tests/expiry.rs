//! Fingerprints that expire, and the simulated clocks.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep};

use super::items;
use super::oracle::Tally;
use super::world::World;
use urlseen_storage::Moment;

/// Length of a generation, a fifth of the time after which fingerprints pass again.
const STEP: Duration = Duration::from_secs(30);

/// Time of day at the start of a run, a multiple of [`STEP`].
const BEGIN: Duration = Duration::from_hours(480_000);

/// Number of items whose time is checked.
const CHECKED: usize = 8;

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Starts the simulated clocks at the start of a run.
pub(super) fn start() {
    START.set(Some(Instant::now()));
}

/// Reads the clocks of the daemon's machine. Those of the server show the same time of day.
pub(super) fn clocks() -> (Moment, SystemTime) {
    let passed = passed();
    (Moment::new("simulated", passed), UNIX_EPOCH + BEGIN + passed)
}

fn passed() -> Duration {
    START.get().map_or(Duration::ZERO, |start| start.elapsed())
}

/// Counts the generations that have ended since the start.
fn generation() -> u32 {
    u32::try_from(passed().as_secs() / STEP.as_secs()).expect("a few")
}

/// Returns the number of times that an item may have passed again since the start.
pub(super) fn windows() -> usize {
    generation() as usize / 5
}

/// Draws a time of up to eight generations.
pub(super) async fn wait(world: &World) {
    let time = Duration::from_secs(world.draw((8 * STEP).as_secs()));
    world.note(|| format!("{time:?} pass"));
    sleep(time).await;
}

impl World {
    /// If fingerprints expire, waits until this number of generations has begun.
    pub(super) async fn later(&self, generations: u32) {
        if self.data().expire_after.is_some() {
            // The clock of the daemon loses some milliseconds with each start.
            let then = STEP * (generation() + generations) + Duration::from_secs(1);
            sleep(then.saturating_sub(passed())).await;
        }
    }

    /// Checks that items pass again when their time is over, and not before, also if the daemon is
    /// killed meanwhile. Rule G2: this holds, too, when the stamps of old generations are used
    /// again.
    pub(super) async fn expire(&self) {
        if self.data().expire_after.is_none() {
            return;
        }
        loop {
            let mut numbers = items::filtered();
            while numbers.len() > CHECKED {
                numbers.swap_remove(self.number(numbers.len()));
            }
            self.all_done().await;
            let loads = self.data().loads;
            self.later(1).await;
            self.forget(numbers.iter().copied());
            self.all_done().await;
            self.feed(numbers.iter().copied());
            self.all_done().await;
            let before = Tally::of(&self.data().state);
            for (generations, times) in [(5, 0), (1 + self.draw(7), 1)] {
                if self.draw(2) == 0 {
                    self.kill();
                }
                self.later(u32::try_from(generations).expect("a few")).await;
                self.feed(numbers.iter().copied());
                self.all_done().await;
                if self.data().loads != loads {
                    break;
                }
                let after = Tally::of(&self.data().state);
                for &number in &numbers {
                    let passed = after.emitted[number as usize] - before.emitted[number as usize];
                    assert_eq!(passed, times, "{number}, {generations} generations later");
                }
            }
            if self.data().loads == loads {
                return;
            }
        }
    }

    /// Lets items through while a generation begins. Rule G6: the filter at work has the
    /// generations of the log, so a daemon that is killed later judges in the same way.
    pub(super) async fn let_through_at_a_start(&self) {
        if self.data().expire_after.is_none() {
            return;
        }
        self.later(1).await;
        self.forget(items::filtered().into_iter());
        self.all_done().await;
        let loads = self.data().loads;
        // About half of the items come before the generation begins.
        let next = STEP * (generation() + 1);
        sleep(next.saturating_sub(passed() + Duration::from_millis(60))).await;
        for number in items::filtered() {
            self.feed(std::iter::once(number));
            sleep(Duration::from_micros(1600)).await;
        }
        self.all_done().await;
        // Items of the earlier generation pass again, and the others do not yet.
        self.later(5).await;
        let before = Tally::of(&self.data().state);
        self.feed(items::filtered().into_iter());
        self.all_done().await;
        let after = Tally::of(&self.data().state);
        let mut seen = items::filtered();
        seen.retain(|&it| after.emitted[it as usize] == before.emitted[it as usize]);
        self.note(|| format!("still seen: {seen:?}"));
        self.kill();
        self.feed(seen.iter().copied());
        self.all_done().await;
        let last = Tally::of(&self.data().state);
        if self.data().loads == loads {
            for number in seen.into_iter().map(|it| it as usize) {
                let passed = last.emitted[number] - after.emitted[number];
                assert_eq!(passed, 0, "{number} expired because the daemon was killed");
            }
        }
    }
}
