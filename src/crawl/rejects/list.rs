//! Reader of the rejects list in Redis.

use redis::{Script, cmd};

use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::script::COMMON;
use urlseen_engine::config::Config;
use urlseen_engine::flow::source::Source;

/// Number of rejects in the first read, when their sizes are not known.
const FIRST: usize = 16;
const MOST: usize = 1000;

/// Maximum number of bytes in one read, estimated from the sizes of earlier rejects.
const BYTES: usize = 8 << 20;

/// Connection to the rejects of a crawl.
pub struct RejectsList {
    pub(super) connection: Link,
    pub(super) keys: Keys,
    source: Source,
    /// Number of rejects in the next read.
    window: usize,
}

/// One pass over the rejects, from the oldest to the newest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// Numbers of rejects to read: those that an interrupted sort has set aside, and those on the
    /// list.
    lengths: [u64; 2],
    at: u64,
}

impl RejectsList {
    /// Connects to the crawl's Redis.
    pub async fn open(config: &Config) -> Result<Self, LinkError> {
        let connection = connect(&config.redis.url, Timeouts::default()).await?;
        Ok(Self {
            connection,
            keys: config.keys(),
            source: Source::new(config.source.take_from),
            window: FIRST,
        })
    }

    /// Builds a script that changes the lists.
    pub(super) fn script(&self, text: &str) -> Script {
        const SHARED: &str = include_str!("../protocol/lua/shared.lua");
        const REQUEUE: &str = include_str!("../protocol/lua/requeue.lua");
        Script::new(&[COMMON, SHARED, &self.source.lua(), REQUEUE, text].join("\n"))
    }

    /// Returns the names of the source and of the list.
    pub(crate) fn names(&self) -> (&str, &str) {
        (&self.keys.source, &self.keys.rejected)
    }

    /// Begins a pass over the rejects that are in Redis now.
    pub(crate) async fn scan(&mut self) -> Result<Scan, LinkError> {
        let lengths: [u64; 2] = redis::pipe()
            .atomic()
            .llen(&self.keys.rejects_aside)
            .llen(&self.keys.rejected)
            .query_async(&mut self.connection)
            .await?;
        Ok(Scan { lengths, at: 0 })
    }

    /// Reads the next rejects as JSON. Returns no rejects at the end of the pass. If the daemon
    /// adds or drops rejects meanwhile, the pass may miss rejects or return them twice.
    pub(crate) async fn next(&mut self, scan: &mut Scan) -> Result<Vec<Vec<u8>>, LinkError> {
        let [aside, listed] = scan.lengths;
        while scan.at < aside + listed {
            let (key, from, end) = if scan.at < aside {
                (self.keys.rejects_aside.clone(), scan.at, aside)
            } else {
                (self.keys.rejected.clone(), scan.at - aside, listed)
            };
            let rejects = self.read(&key, from, end - from).await?;
            if !rejects.is_empty() {
                scan.at += rejects.len() as u64;
                return Ok(rejects);
            }
            // The list has become shorter since the start of the pass.
            scan.at += end - from;
        }
        Ok(Vec::new())
    }

    /// Drops the oldest rejects in one step: as many as `scan` has found. Returns the number of
    /// dropped rejects.
    pub(crate) async fn drop_found(&mut self, scan: Scan) -> Result<u64, LinkError> {
        let script = self.script(include_str!("lua/drop_first.lua"));
        let mut call = script.prepare_invoke();
        call.key(&self.keys.rejects_aside).key(&self.keys.rejected).arg(scan.len());
        Ok(call.invoke_async(&mut self.connection).await?)
    }

    /// Reads rejects from the index `from` on: as many as the window permits, but at most `most`.
    pub(super) async fn read(
        &mut self,
        key: &str,
        from: u64,
        most: u64,
    ) -> Result<Vec<Vec<u8>>, LinkError> {
        let count = most.min(self.window as u64);
        let mut range = cmd("LRANGE");
        range.arg(key).arg(from).arg(from + count - 1);
        let rejects: Vec<Vec<u8>> = range.query_async(&mut self.connection).await?;
        if let Some(largest) = rejects.iter().map(Vec::len).max() {
            self.window = (BYTES / largest.max(1)).clamp(1, MOST.min(self.window * 2));
        }
        Ok(rejects)
    }
}

impl Scan {
    /// Returns the number of rejects that the pass found at its start.
    pub(crate) fn len(&self) -> u64 {
        self.lengths.iter().sum()
    }

    /// Skips the next `count` rejects.
    pub(crate) fn skip(&mut self, count: u64) {
        self.at += count;
    }
}
