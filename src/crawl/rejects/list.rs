//! The rejects list in Redis, and its readers.

use redis::{Script, cmd};

use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::script::COMMON;
use urlseen_engine::config::Config;
use urlseen_engine::flow::source;

/// Rejects to read at first, because their sizes are not yet known.
const FIRST: usize = 16;
const MOST: usize = 1000;

/// Maximum number of bytes to read together, estimated from the sizes read before.
const BYTES: usize = 8 << 20;

/// The rejects of a crawl.
pub struct RejectsList {
    pub(super) connection: Link,
    /// Key of the list that the daemon adds to.
    pub(super) rejected: String,
    /// Key of the rejects that a process is sorting, or had set aside when it was killed.
    pub(super) aside: String,
    /// Key of the rejects that are followed by their items.
    pub(super) oversize: String,
    pub(super) source: String,
    pub(super) scripts: Scripts,
    /// Number of rejects to read next.
    window: usize,
}

/// Scripts that change the lists.
pub(super) struct Scripts {
    pub(super) set_aside: Script,
    pub(super) give_back: Script,
    pub(super) sort: Script,
    pub(super) sort_oversize: Script,
    drop_first: Script,
}

/// A pass over the rejects, from the oldest to the newest. Those that are followed by their items
/// come last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// Rejects to read of each kind: aside, on the list, followed by their items.
    lengths: [u64; 3],
    at: u64,
}

impl RejectsList {
    /// Connects to the crawl's Redis.
    pub async fn open(config: &Config) -> Result<Self, LinkError> {
        let connection = connect(&config.redis.url, Timeouts::default()).await?;
        let keys = config.keys();
        Ok(Self {
            connection,
            rejected: keys.rejected,
            aside: keys.rejects_aside,
            oversize: keys.oversize,
            source: keys.source,
            scripts: Scripts::new(&source::open(&config.source).lua_requeue()),
            window: FIRST,
        })
    }

    /// Returns the names of the source and of the list.
    pub(crate) fn names(&self) -> (&str, &str) {
        (&self.source, &self.rejected)
    }

    /// Begins to read the present rejects.
    pub(crate) async fn scan(&mut self) -> Result<Scan, LinkError> {
        let [aside, listed, oversize]: [u64; 3] = redis::pipe()
            .atomic()
            .llen(&self.aside)
            .llen(&self.rejected)
            .llen(&self.oversize)
            .query_async(&mut self.connection)
            .await?;
        Ok(Scan { lengths: [aside, listed, oversize / 2], at: 0 })
    }

    /// Reads the next rejects, as they are kept; none at the end. If the daemon adds or drops
    /// rejects meanwhile, the others move: the pass may miss some, or return them twice.
    pub(crate) async fn next(&mut self, scan: &mut Scan) -> Result<Vec<Vec<u8>>, LinkError> {
        let [aside, listed, _] = scan.lengths;
        while scan.at < aside + listed {
            let (key, from, end) = if scan.at < aside {
                (self.aside.clone(), scan.at, aside)
            } else {
                (self.rejected.clone(), scan.at - aside, listed)
            };
            let rejects = self.read(&key, from, end - from).await?;
            if !rejects.is_empty() {
                scan.at += rejects.len() as u64;
                return Ok(rejects);
            }
            // The list has become shorter.
            scan.at += end - from;
        }
        // One at a time, because their items must not be read.
        while scan.at < scan.len() {
            let reject = self.oversize(scan.at - aside - listed).await?;
            scan.at += 1;
            if let Some(reject) = reject {
                return Ok(vec![reject]);
            }
        }
        Ok(Vec::new())
    }

    /// Returns how many rejects are followed by their items.
    pub(super) async fn oversize_length(&mut self) -> Result<u64, LinkError> {
        let mut length = cmd("LLEN");
        length.arg(&self.oversize);
        Ok(length.query_async::<u64>(&mut self.connection).await? / 2)
    }

    /// Reads a reject that is followed by its item, by its number from the oldest.
    pub(super) async fn oversize(&mut self, number: u64) -> Result<Option<Vec<u8>>, LinkError> {
        let mut index = cmd("LINDEX");
        index.arg(&self.oversize).arg(2 * number);
        Ok(index.query_async(&mut self.connection).await?)
    }

    /// Drops as many of the oldest rejects as `scan` has found, all at once. Returns how many it
    /// dropped.
    pub(crate) async fn drop_found(&mut self, scan: Scan) -> Result<u64, LinkError> {
        let [aside, listed, oversize] = scan.lengths;
        let mut call = self.scripts.drop_first.prepare_invoke();
        call.key(&self.aside).key(&self.rejected).key(&self.oversize);
        call.arg(aside + listed).arg(oversize);
        Ok(call.invoke_async(&mut self.connection).await?)
    }

    /// Reads as many rejects from `from` on as the window has room for, but at most `most`.
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
    /// Returns how many rejects there are to read.
    pub(crate) fn len(&self) -> u64 {
        self.lengths.iter().sum()
    }

    /// Skips the next `count` rejects.
    pub(crate) fn skip(&mut self, count: u64) {
        self.at += count;
    }
}

impl Scripts {
    fn new(requeue: &str) -> Self {
        const SHARED: &str = include_str!("../protocol/lua/shared.lua");
        let script = |text: &str| Script::new(&format!("{COMMON}\n{SHARED}\n{text}"));
        let sort = |text: &str| script(&format!("{requeue}\n{text}"));
        Self {
            set_aside: script(include_str!("lua/set_aside.lua")),
            give_back: script(include_str!("lua/give_back.lua")),
            sort: sort(include_str!("lua/sort.lua")),
            sort_oversize: sort(include_str!("lua/sort_oversize.lua")),
            drop_first: script(include_str!("lua/drop_first.lua")),
        }
    }
}
