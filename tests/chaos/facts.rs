//! Facts that Redis holds about the crawl at one moment.

use anyhow::Result;
use redis::Connection;

use crate::daemon::{PROCESSING, SOURCE, STATE};

/// Lengths of source and processing list, then `seq` and `commit_id`.
type Reply = (u64, u64, (Option<u64>, Option<String>));

/// State of the crawl in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Number of items that are not committed, in the source or claimed.
    pub(crate) waiting: u64,
    /// Number and id of the last committed batch.
    pub(crate) head: Option<(u64, String)>,
}

impl Facts {
    /// Reads all facts at one moment.
    pub(crate) fn read(connection: &mut Connection) -> Result<Self> {
        let mut pipe = redis::pipe();
        pipe.atomic()
            .llen(SOURCE)
            .llen(PROCESSING)
            .cmd("HMGET")
            .arg(STATE)
            .arg(&["seq", "commit_id"]);
        let (source, processing, (seq, commit_id)): Reply = pipe.query(connection)?;
        Ok(Self { waiting: source + processing, head: seq.zip(commit_id) })
    }

    pub(crate) fn seq(&self) -> u64 {
        self.head.as_ref().map_or(0, |(seq, _)| *seq)
    }
}
