//! Two clocks: one that cannot be set, and the time of day.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::disk;
use crate::filter::id;

/// A moment by the time since the machine was started (`CLOCK_BOOTTIME`), sleep included. Setting
/// the time of day does not move it. Only moments of the same boot can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    boot: &'static str,
    since_boot: Duration,
}

impl Moment {
    /// The present.
    pub fn now() -> Self {
        static BOOT: OnceLock<String> = OnceLock::new();
        // An id of this process alone makes no moment of another process older than it is.
        let unknown = |_| format!("{:016x}", id::random());
        let boot = BOOT.get_or_init(|| disk::boot().unwrap_or_else(unknown));
        let time = clock_gettime(ClockId::Boottime);
        let seconds = Duration::from_secs(time.tv_sec.cast_unsigned());
        let since_boot = seconds + Duration::from_nanos(time.tv_nsec.cast_unsigned());
        Self::new(boot, since_boot)
    }

    /// The moment at so long after the start of the machine that `boot` names.
    pub fn new(boot: &'static str, since_boot: Duration) -> Self {
        Self { boot, since_boot }
    }

    /// The id of the boot that it belongs to.
    pub(super) fn boot(self) -> &'static str {
        self.boot
    }

    /// Returns the time since the machine was started.
    pub fn since_boot(self) -> Duration {
        self.since_boot
    }

    /// The moment so long before; `None` if the machine was not running then.
    pub fn before(self, time: Duration) -> Option<Self> {
        Some(Self { since_boot: self.since_boot.checked_sub(time)?, ..self })
    }

    /// Returns true if it is known to be earlier than `other`.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.boot == other.boot && self.since_boot < other.since_boot
    }
}

/// Milliseconds since 1970, by the system's clock.
pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
