//! Clocks: the time since boot, which nothing can set, the time of day, and the clock of the
//! generations of a filter.
//!
//! The clock of the generations reads the time of day only at the start of a run, to learn the time
//! since the start of the last run. After that, it counts the time since boot.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use urlseen_filter::expire_after::{ExpireAfter, shown};
use urlseen_filter::generation::Generation;
use urlseen_filter::id;

use super::disk;

/// Time since the boot of the machine (`CLOCK_BOOTTIME`), including the time in which the machine
/// slept. Setting the time of day does not change it. Only moments of the same boot can be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Id of the boot of the machine.
    boot: u64,
    since_boot: Duration,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Self {
        static BOOT: OnceLock<u64> = OnceLock::new();
        // Without the id of the boot, this process uses a random id. Then no moment of another
        // process counts as earlier.
        let boot = || disk::boot().map_or_else(|_| id::random(), |name| boot_id(&name));
        let time = clock_gettime(ClockId::Boottime);
        let seconds = Duration::from_secs(time.tv_sec.cast_unsigned());
        let since_boot = seconds + Duration::from_nanos(time.tv_nsec.cast_unsigned());
        Self { boot: *BOOT.get_or_init(boot), since_boot }
    }

    /// Returns the moment `since_boot` after the boot with this name.
    pub fn new(boot: &str, since_boot: Duration) -> Self {
        Self { boot: boot_id(boot), since_boot }
    }

    /// Returns the numbers of a moment for a file, in milliseconds.
    pub(super) fn encode(self) -> [u64; 2] {
        [self.boot, u64::try_from(self.since_boot.as_millis()).unwrap_or(u64::MAX)]
    }

    /// Reads the numbers of a moment.
    pub(super) fn decode([boot, since_boot]: [u64; 2]) -> Self {
        Self { boot, since_boot: Duration::from_millis(since_boot) }
    }

    /// Returns the time since the machine was started.
    pub fn since_boot(self) -> Duration {
        self.since_boot
    }

    /// Returns the moment that is `time` earlier; `None` if the machine was not running then.
    pub fn before(self, time: Duration) -> Option<Self> {
        Some(Self { since_boot: self.since_boot.checked_sub(time)?, ..self })
    }

    /// Returns the moment that is `time` later.
    #[must_use]
    pub(crate) fn after(self, time: Duration) -> Self {
        Self { since_boot: self.since_boot.saturating_add(time), ..self }
    }

    /// Returns true if this moment is known to be earlier than `other`.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.boot == other.boot && self.since_boot < other.since_boot
    }
}

/// Times that the clocks of this machine show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Time since the machine was started.
    pub moment: Moment,
    /// Time of day that this machine shows.
    pub local: SystemTime,
}

impl Clocks {
    /// Reads both clocks of this machine.
    pub fn now() -> Self {
        Self { moment: Moment::now(), local: SystemTime::now() }
    }
}

fn boot_id(name: &str) -> u64 {
    mur3::murmurhash3_x64_128(name.as_bytes(), 0).0
}

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
pub struct GenerationClock {
    expire_after: ExpireAfter,
    /// Time at the moment `since`.
    time: Duration,
    since: Moment,
}

/// Times of day at the start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimesOfDay {
    /// Time by the clock of this machine.
    pub local: SystemTime,
    /// Time by the clock of Redis, if it is known.
    pub redis: Option<SystemTime>,
}

/// Time of the generations at some moment, and what the clocks showed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    time: Duration,
    /// `None` if the clocks were wrong.
    shown: Option<TimesOfDay>,
}

impl Timing {
    /// Returns the timing after a time that no clock has shown.
    #[must_use]
    pub fn later(self, by: Duration) -> Self {
        Self { time: self.time.saturating_add(by), ..self }
    }

    /// Returns the time of day at which a generation begins, by the clock of this machine. `None`
    /// if this clock was wrong, or if it now shows a time before that of the last run.
    pub fn begin_of(
        &self,
        generation: Generation,
        expire_after: ExpireAfter,
        now: SystemTime,
    ) -> Option<SystemTime> {
        let (local, begin) = (self.shown?.local, expire_after.begin_of(generation));
        let begin = match begin.checked_sub(self.time) {
            Some(left) => local.checked_add(left),
            None => local.checked_sub(self.time.abs_diff(begin)),
        };
        begin.filter(|_| local <= now)
    }
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
    pub fn new(
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
    pub fn generation_at(&self, now: Moment) -> Generation {
        let passed = now.since_boot().saturating_sub(self.since.since_boot());
        self.expire_after.generation_at(self.time.saturating_add(passed))
    }

    /// Returns the moment of the same boot at which a later generation begins.
    pub fn begin_of(&self, generation: Generation) -> Moment {
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
        let begin = |number| clock.begin_of(Generation::new(number)).since_boot().as_secs();
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

    #[test]
    fn a_generation_begins_when_the_missing_time_has_passed_by_the_clock_of_this_machine() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let shown = Some(TimesOfDay { local: at(10_000), redis: None });
        // The clock of the generations is 4000 s behind that of the machine.
        let timing = Timing { time: Duration::from_mins(100), shown };
        let minute: ExpireAfter = "5m".parse().unwrap();
        let begin =
            |timing: Timing, number, now| timing.begin_of(Generation::new(number), minute, at(now));
        assert_eq!(begin(timing, 101, 10_000), Some(at(10_060)));
        assert_eq!(begin(timing, 99, 20_000), Some(at(9_940)));
        assert_eq!(begin(timing, 101, 9_999), None);
        assert_eq!(begin(Timing { shown: None, ..timing }, 101, 10_000), None);
    }
}
