//! Facts that Redis holds about the crawl at one moment.

use anyhow::Result;
use redis::Connection;

use crate::daemon::{PROCESSING, SOURCE, STATE};

/// Script that returns the number of waiting items, `seq` and `commit_id`.
const LOOK: &str = "
    local found = redis.call('HMGET', KEYS[3], 'seq', 'commit_id')
    return {redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[2]), found[1], found[2]}
";

/// State of the crawl in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Number of items that are not committed: they are in the source, or claimed.
    pub(crate) waiting: u64,
    /// Number and id of the last committed batch.
    pub(crate) head: Option<(u64, String)>,
}

impl Facts {
    /// Reads the state of the crawl at one moment.
    pub(crate) fn read(connection: &mut Connection) -> Result<Self> {
        let mut look = redis::cmd("EVAL");
        look.arg(LOOK).arg(3).arg(&[SOURCE, PROCESSING, STATE]);
        let (waiting, seq, commit_id): (u64, Option<u64>, Option<String>) =
            look.query(connection)?;
        Ok(Self { waiting, head: seq.zip(commit_id) })
    }

    pub(crate) fn seq(&self) -> u64 {
        self.head.as_ref().map_or(0, |(seq, _)| *seq)
    }
}
