//! Generations of a filter at work, and their clock.
//!
//! The clock reads the time of day only at the start of a run, to learn the time since the start of
//! the last run. After that, it counts the time since boot.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use super::Engine;
use super::store::{Storage, Write};
use urlseen_filter::Generation;
use urlseen_filter::expire_after::{ExpireAfter, shown};
use urlseen_storage::{Moment, TimesOfDay, Timing};

/// Reads the clocks of a machine: the time since boot, and the time of day.
pub(super) type Clocks = fn() -> (Moment, SystemTime);

/// Clocks count as equal if they differ by at most this part of a generation, or by
/// [`DIFFERENCE_LEAST`].
const DIFFERENCE_PART: u32 = 10;

const DIFFERENCE_LEAST: Duration = Duration::from_secs(5);

/// Clock of the generations of a filter.
///
/// It reads the time of day only once, when a run begins, to learn how much time has passed since
/// the last run. During the run it counts the time since boot. So a clock that is set to another
/// time begins no generation. What it counts need not be the time of day: a URL expires
/// when enough time has passed, and no other time matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GenerationClock {
    expire_after: ExpireAfter,
    /// Time at the moment `since`.
    time: Duration,
    since: Moment,
}

/// Reason why it is unknown how much time has passed since the last run. Then this time does not
/// count, and URLs pass later, but never too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The clocks of this machine and of Redis disagree by this time.
    #[error("the clock of this machine or that of Redis was set by {}{UNCOUNTED}", shown(*.0))]
    Disagree(Duration),
    /// By a clock, it is earlier than at the start of the last run, by this time.
    #[error("a clock shows {} less than at the start of the last run{UNCOUNTED}", shown(*.0))]
    Earlier(Duration),
}

/// Effect of a doubt, and its remedy.
const UNCOUNTED: &str = ". So the time since then does not count: URLs that were let through \
    before pass again later than filter.expire_after says. `urlseen storage catch-up` counts it";

impl GenerationClock {
    /// Makes a clock at `now`, for a filter that is in the generation `recorded`. Returns the
    /// timing that the next run needs, and the reason if the time since the last run does not
    /// count.
    pub(crate) fn new(
        expire_after: ExpireAfter,
        recorded: Generation,
        last: Option<Timing>,
        times: TimesOfDay,
        now: Moment,
    ) -> (Self, Timing, Option<Doubt>) {
        let (time, doubt) = match last {
            // Nothing can expire too early in a new filter.
            None if recorded == Generation::default() => {
                (times.local.duration_since(UNIX_EPOCH).unwrap_or_default(), None)
            }
            None => (Duration::ZERO, None),
            Some(Timing { time, shown: None }) => (time, None),
            Some(Timing { time, shown: Some(before) }) => {
                let passed = passed(before, times, expire_after);
                (time.saturating_add(passed.unwrap_or_default()), passed.err())
            }
        };
        let time = time.max(expire_after.begin_of(recorded));
        let timing = Timing { time, shown: doubt.is_none().then_some(times) };
        (Self { expire_after, time, since: now }, timing, doubt)
    }

    /// Returns the generation at a moment of the same boot.
    pub(crate) fn generation_at(&self, now: Moment) -> Generation {
        let passed = now.since_boot.saturating_sub(self.since.since_boot);
        self.expire_after.generation_at(self.time.saturating_add(passed))
    }

    /// Returns the moment of the same boot at which a later generation begins.
    pub(crate) fn begin_of(&self, generation: Generation) -> Moment {
        let left = self.expire_after.begin_of(generation).saturating_sub(self.time);
        self.since.after(left)
    }
}

/// Returns the time that has passed by both clocks. If they agree nearly, it is the shorter time.
fn passed(
    before: TimesOfDay,
    now: TimesOfDay,
    expire_after: ExpireAfter,
) -> Result<Duration, Doubt> {
    let since = |before: SystemTime, now: SystemTime| {
        now.duration_since(before).map_err(|error| Doubt::Earlier(error.duration()))
    };
    let local = since(before.local, now.local)?;
    let Some((before, now)) = before.redis.zip(now.redis) else { return Ok(local) };
    let redis = since(before, now)?;
    let difference = local.abs_diff(redis);
    if difference > DIFFERENCE_LEAST.max(expire_after.step() / DIFFERENCE_PART) {
        return Err(Doubt::Disagree(difference));
    }
    Ok(local.min(redis))
}

/// Time between two looks at the clock. After each one, the judge frees some slots.
const LOOK: Duration = Duration::from_millis(100);

/// Generations of a filter at work.
#[derive(Debug)]
pub(super) struct Generating {
    pub(super) clock: GenerationClock,
    /// Generation that began last, or whose begin is being logged.
    begun: Generation,
    looks: Interval,
    clocks: Clocks,
}

impl Generating {
    /// Continues after the start of a generation. `clocks` reads the clocks of this machine.
    pub(super) fn new(clock: GenerationClock, begun: Generation, clocks: Clocks) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { clock, begun, looks, clocks }
    }

    /// Waits until it is time to look at the clock; forever if there are no generations. Nothing is
    /// lost when the future is dropped.
    pub(super) async fn due(generations: Option<&mut Self>) -> &mut Self {
        let Some(generations) = generations else { return std::future::pending().await };
        let next = generations.clock.begin_of(generations.begun.later(1)).since_boot;
        let left = next.saturating_sub((generations.clocks)().0.since_boot);
        tokio::select! {
            _ = generations.looks.tick() => {}
            // A generation that begins late would let URLs pass too early. The clock that begins it
            // need not agree with this timer.
            () = sleep(left), if !left.is_zero() => {}
        }
        generations
    }

    /// Begins a generation that is due. If there is a folder, its log gets the start first. Frees
    /// some slots of expired keys.
    pub(super) fn look(&mut self, storage: Option<&mut Storage>, engine: &mut Engine) {
        if engine.handle.gauge.generations().is_some_and(|it| it.expired > 0) {
            engine.sweep();
        }
        let due = self.clock.generation_at((self.clocks)().0);
        if due <= self.begun {
            return;
        }
        self.begun = due;
        match storage {
            Some(storage) => storage.write(Write::Generation(due)),
            None => engine.begin_generation(due),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "boot";

    /// Makes a clock from the seconds that the clocks showed at the start of the last run and show
    /// now. A generation lasts 100 s.
    fn clock(
        recorded: u32,
        last: Option<Timing>,
        (local, redis): (u64, Option<u64>),
    ) -> (GenerationClock, Timing, Option<Doubt>) {
        let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let times = TimesOfDay { local: time(local), redis: redis.map(time) };
        let now = Moment::new(BOOT, Duration::from_secs(50));
        let expire_after = "500s".parse().unwrap();
        GenerationClock::new(expire_after, Generation::new(recorded), last, times, now)
    }

    fn after(clock: &GenerationClock, seconds: u64) -> u32 {
        clock.generation_at(Moment::new(BOOT, Duration::from_secs(50 + seconds))).get()
    }

    #[test]
    fn generations_begin_as_the_time_since_boot_passes() {
        let (clock, _, doubt) = clock(0, None, (10_030, None));
        assert_eq!(doubt, None);
        assert_eq!((after(&clock, 0), after(&clock, 69), after(&clock, 70)), (100, 100, 101));
        assert_eq!(after(&clock, 10_070), 201);
        let begin = |number| clock.begin_of(Generation::new(number)).since_boot.as_secs();
        assert_eq!((begin(101), begin(102)), (50 + 70, 50 + 170));
    }

    #[test]
    fn the_time_between_two_runs_counts_if_the_clocks_agree() {
        let (_, last, _) = clock(0, None, (10_030, Some(70_030)));
        let (next, last, doubt) = clock(100, Some(last), (10_530, Some(70_531)));
        assert_eq!((after(&next, 0), doubt), (105, None));
        // A folder without Redis: `urlseen filter --storage`.
        let (next, ..) = clock(105, Some(last), (10_730, None));
        assert_eq!(after(&next, 0), 107);
    }

    /// Rule G3: six generations must not begin because one clock jumps a month.
    #[test]
    fn the_time_between_two_runs_does_not_count_if_one_clock_was_set() {
        let month = 2_592_000;
        for (local, redis) in [(10_040 + month, 10_040), (10_040, 10_040 + month)] {
            let (_, last, _) = clock(0, None, (10_030, Some(10_030)));
            let (next, last, doubt) = clock(100, Some(last), (local, Some(redis)));
            assert_eq!(doubt, Some(Doubt::Disagree(Duration::from_secs(month))));
            assert_eq!((after(&next, 0), after(&next, 70)), (100, 101));
            // The run after it does not know either how long the clock was wrong.
            let (next, last, doubt) = clock(101, Some(last), (20_000, Some(20_000)));
            assert_eq!((after(&next, 0), doubt), (101, None));
            let (next, ..) = clock(101, Some(last), (20_100, Some(20_100)));
            assert_eq!(after(&next, 0), 102);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_begins_no_generation() {
        let (_, last, _) = clock(0, None, (10_030, None));
        let (next, _, doubt) = clock(104, Some(last), (9_930, None));
        assert_eq!(doubt, Some(Doubt::Earlier(Duration::from_secs(100))));
        assert_eq!((after(&next, 0), after(&next, 100)), (104, 105));
    }

    #[test]
    fn without_the_file_the_time_before_the_run_does_not_count() {
        let (next, _, doubt) = clock(100, None, (99_000, None));
        assert_eq!((after(&next, 0), after(&next, 100), doubt), (100, 101, None));
    }
}
