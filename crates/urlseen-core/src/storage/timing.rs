//! Times that the clocks showed when a run began generations: the file `clock`.
//!
//! ```text
//! {"time":1795600000000,"shown":{"local":1795600000000,"redis":1795600000012}}
//! 89abcdef
//! ```
//!
//! Times are in milliseconds since 1970. The last line is the CRC-32C of all before it. Without the
//! file, it is unknown how much time has passed since the last run.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::note;
use crate::filter::expire_after::ExpireAfter;
use crate::filter::generation::Generation;

/// Name of the file in the folder.
pub(super) const NAME: &str = "clock";

/// Time of the generations at some moment, and what the clocks showed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    pub(super) time: u64,
    /// `None` if the clocks were wrong.
    pub(super) shown: Option<Shown>,
}

impl Timing {
    /// Returns the timing after a time that no clock has shown.
    #[must_use]
    pub fn later(self, by: Duration) -> Self {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
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
        let local = UNIX_EPOCH.checked_add(Duration::from_millis(self.shown?.local))?;
        let (begin, time) = (expire_after.begin_of(generation), Duration::from_millis(self.time));
        let begin = match begin.checked_sub(time) {
            Some(left) => local.checked_add(left),
            None => local.checked_sub(time.abs_diff(begin)),
        };
        begin.filter(|_| local <= now)
    }
}

/// Times of day, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shown {
    /// Time by the clock of this machine.
    pub(super) local: u64,
    /// Time by the clock of Redis, if there is one.
    pub(super) redis: Option<u64>,
}

/// Returns the recorded timing.
pub(super) fn read(dir: &Dir) -> Option<Timing> {
    note::read(dir, NAME)
}

/// Records a timing. It is on the disk when the function returns.
pub(super) fn write(dir: &Dir, timing: &Timing) -> io::Result<()> {
    note::write(dir, NAME, timing)?;
    dir.sync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_begins_when_the_missing_time_has_passed_by_the_clock_of_this_machine() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let shown = Some(Shown { local: 10_000_000, redis: None });
        // The clock of the generations is 4000 s behind that of the machine.
        let timing = Timing { time: 6_000_000, shown };
        let minute: ExpireAfter = "5m".parse().unwrap();
        let begin =
            |timing: Timing, number, now| timing.begin_of(Generation::new(number), minute, at(now));
        assert_eq!(begin(timing, 101, 10_000), Some(at(10_060)));
        assert_eq!(begin(timing, 99, 20_000), Some(at(9_940)));
        assert_eq!(begin(timing, 101, 9_999), None);
        assert_eq!(begin(Timing { shown: None, ..timing }, 101, 10_000), None);
    }
}
