//! Two clocks: the time since boot, which nothing can set, and the time of day.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::disk;
use crate::filter::id;

/// Time since the boot of the machine (`CLOCK_BOOTTIME`), including the time in which the machine
/// slept. Setting the time of day does not change it. Only moments of the same boot can be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Id of the boot of the machine.
    pub(super) boot: &'static str,
    since_boot: Duration,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Self {
        static BOOT: OnceLock<String> = OnceLock::new();
        // Without the id of the boot, this process uses a random id. Then no moment of another
        // process counts as earlier.
        let unknown = |_| format!("{:016x}", id::random());
        let boot = BOOT.get_or_init(|| disk::boot().unwrap_or_else(unknown));
        let time = clock_gettime(ClockId::Boottime);
        let seconds = Duration::from_secs(time.tv_sec.cast_unsigned());
        let since_boot = seconds + Duration::from_nanos(time.tv_nsec.cast_unsigned());
        Self::new(boot, since_boot)
    }

    /// Returns the moment `since_boot` after the boot with the id `boot`.
    pub fn new(boot: &'static str, since_boot: Duration) -> Self {
        Self { boot, since_boot }
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
    pub fn after(self, time: Duration) -> Self {
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

/// Returns the milliseconds since 1970, by the system's clock.
pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
