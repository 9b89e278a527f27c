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

/// Returns the milliseconds since 1970, by the system's clock.
pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
