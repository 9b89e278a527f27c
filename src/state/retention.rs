//! How long snapshots and the log behind them are kept.

use std::time::SystemTime;

/// How far a folder must be able to go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// To the newest snapshot finished before this.
    pub horizon: SystemTime,
    /// But no further than fits into so many bytes, all files together.
    pub horizon_bytes: u64,
}
