//! Times: since boot, which nothing can set, and of the generations of a filter.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use urlseen_filter::Generation;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::id;

use super::disk;

/// Time since the boot of the machine (`CLOCK_BOOTTIME`), including the time in which the machine
/// slept. Setting the time of day does not change it. Only moments of the same boot can be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Id of the boot of the machine.
    boot: u64,
    /// Time since the machine was started.
    pub since_boot: Duration,
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

    /// Returns the moment that is `time` earlier; `None` if the machine was not running then.
    pub fn before(self, time: Duration) -> Option<Self> {
        Some(Self { since_boot: self.since_boot.checked_sub(time)?, ..self })
    }

    /// Returns the moment that is `time` later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self { since_boot: self.since_boot.saturating_add(time), ..self }
    }

    /// Returns true if this moment is known to be earlier than `other`.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.boot == other.boot && self.since_boot < other.since_boot
    }
}

fn boot_id(name: &str) -> u64 {
    mur3::murmurhash3_x64_128(name.as_bytes(), 0).0
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
    /// Time of the generations.
    pub time: Duration,
    /// Times that the clocks showed; `None` if the clocks were wrong.
    pub shown: Option<TimesOfDay>,
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

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

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
