//! What the clocks showed when a run began generations: the file `clock`.
//!
//! ```text
//! {"time":1795600000000,"shown":{"local":1795600000000,"redis":1795600000012}}
//! 89abcdef
//! ```
//!
//! Times are in milliseconds since 1970. The last line is the CRC-32C of all before it. Without the
//! file, it is unknown how much time has passed since the last run.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::note;

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
