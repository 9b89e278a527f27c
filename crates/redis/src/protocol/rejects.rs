//! Rejects list: unreadable items, kept in Redis for people.
//!
//! The daemon appends at the right end of the list. With `rejects.when_full = "drop-oldest"` the
//! daemon also drops from the left end. [`RejectsList::sort`] first sets the rejects aside: it
//! renames the list to a key of urlseen's own. So it sorts exactly the rejects of that moment, even
//! if the daemon adds more meanwhile. Then it puts the kept rejects on the list again, before newer
//! ones. If the process is killed, rejects stay under that key, and the next sort puts them on the
//! list again.

use redis::cmd;
use sha1::{Digest, Sha1};
use urlseen_fingerprint::Fingerprint;

use super::{Keys, Script, Source};
use crate::RedisAddress;
use crate::connect::connect;
use crate::error::LinkError;
use crate::link::Link;
use crate::reject::{Reject, RejectedItem};

/// Number of rejects in the first read, when their sizes are not known.
const FIRST: usize = 16;
const MOST: usize = 1000;

/// Maximum number of bytes in one read, estimated from the sizes of earlier rejects.
const BYTES: usize = 8 << 20;

/// Maximum number of rejects that one script puts back. Meanwhile Redis serves no other client, for
/// about a microsecond per reject.
const GIVE_BACK: usize = 10_000;

/// Connection to the rejects of a crawl.
pub struct RejectsList {
    connection: Link,
    /// Names of the crawl's keys in Redis.
    pub keys: Keys,
    source: Source,
    /// Number of rejects in the next read.
    window: usize,
}

/// One pass over the rejects, from the oldest to the newest.
#[derive(Debug, Clone, Copy)]
pub struct Scan {
    /// Numbers of rejects to read: those that an interrupted sort has set aside, and those on the
    /// list.
    lengths: [u64; 2],
    at: u64,
}

/// Fate of the rejects that do not stay on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The items of the rejects go back to the source, after all items that wait there.
    Requeue,
    /// The rejects and their items are dropped.
    Drop,
}

/// Counts of a sort that may not be finished.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sorted {
    /// Number of rejects at the start of the sort.
    pub found: u64,
    /// Number of rejects that were requeued or dropped so far.
    pub gone: u64,
    /// Number of rejects that stay because the caller did not choose them.
    pub kept: u64,
    /// Number of rejects that stay because they are not of urlseen, or have no whole item to
    /// requeue.
    pub foreign: u64,
}

impl Sorted {
    /// Returns the number of rejects that were sorted so far.
    pub fn seen(&self) -> u64 {
        self.gone + self.kept + self.foreign
    }
}

/// Rejects of one step, and their fates.
struct Chunk<'a> {
    rejects: &'a [Vec<u8>],
    /// One digit for each reject: `1` if it is requeued or dropped, `0` if it stays.
    fates: String,
    items: Vec<Vec<u8>>,
    foreign: Vec<&'a [u8]>,
}

impl RejectsList {
    /// Connects to the Redis of the crawl with these keys.
    pub async fn open(
        address: &RedisAddress,
        keys: Keys,
        source: Source,
    ) -> Result<Self, LinkError> {
        Ok(Self { connection: connect(address).await?, keys, source, window: FIRST })
    }

    /// Begins a pass over the rejects that are in Redis now.
    pub async fn scan(&mut self) -> Result<Scan, LinkError> {
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
    pub async fn next(&mut self, scan: &mut Scan) -> Result<Vec<Vec<u8>>, LinkError> {
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
    pub async fn drop_found(&mut self, scan: Scan) -> Result<u64, LinkError> {
        let keys = [&*self.keys.rejects_aside, &self.keys.rejected];
        let count = scan.len().to_string().into_bytes();
        let drop = Script::new(include_str!("rejects_drop.lua")).call(&keys, vec![count]);
        self.connection.query(&drop.by_text()).await
    }

    /// Reads rejects from the index `from` on: as many as the window permits, but at most `most`.
    async fn read(&mut self, key: &str, from: u64, most: u64) -> Result<Vec<Vec<u8>>, LinkError> {
        let count = most.min(self.window as u64);
        let mut range = cmd("LRANGE");
        range.arg(key).arg(from).arg(from + count - 1);
        let rejects: Vec<Vec<u8>> = range.query_async(&mut self.connection).await?;
        if let Some(largest) = rejects.iter().map(Vec::len).max() {
            self.window = (BYTES / largest.max(1)).clamp(1, MOST.min(self.window * 2));
        }
        Ok(rejects)
    }

    /// Sorts all rejects that are in Redis now, the oldest first. `fate` applies to the rejects for
    /// which `wanted` returns true. `watch` gets the counts at the start and after each step. It
    /// also gets the rejects of that step that urlseen did not write.
    ///
    /// Each step is one script. If the process is killed or loses the connection between two steps,
    /// no item is lost or repeated: the next process finds the unsorted rejects. In that case, the
    /// rejects that the first process kept come after the unsorted rejects.
    pub async fn sort(
        &mut self,
        fate: Fate,
        wanted: impl Fn(&Reject) -> bool,
        mut watch: impl FnMut(&Sorted, &[&[u8]]),
    ) -> Result<Sorted, LinkError> {
        let mut sorted = Sorted { found: self.set_aside().await?, ..Sorted::default() };
        let (aside, listed) = (self.keys.rejects_aside.clone(), sorted.found);
        watch(&sorted, &[]);
        while sorted.seen() < listed {
            let rejects = self.read(&aside, 0, listed - sorted.seen()).await?;
            // Another process has moved these rejects back to the list.
            if rejects.is_empty() {
                break;
            }
            let chunk = Chunk::new(&rejects, fate, &wanted);
            if !self.carry_out(&chunk).await? {
                continue;
            }
            let (all, foreign) = (rejects.len() as u64, chunk.foreign.len() as u64);
            let gone = chunk.fates.bytes().filter(|&fate| fate == b'1').count() as u64;
            sorted.gone += gone;
            sorted.foreign += foreign;
            sorted.kept += all - gone - foreign;
            watch(&sorted, &chunk.foreign);
        }
        self.give_back().await?;
        Ok(sorted)
    }

    /// Sets all rejects aside. If an interrupted sort has left some, first moves these back to the
    /// list. Returns the number of rejects that were set aside.
    async fn set_aside(&mut self) -> Result<u64, LinkError> {
        loop {
            if let Ok(found) = u64::try_from(self.call_aside("aside").await?) {
                return Ok(found);
            }
        }
    }

    /// Puts the rejects that were set aside back on the list.
    async fn give_back(&mut self) -> Result<(), LinkError> {
        while self.call_aside("back").await? > 0 {}
        Ok(())
    }

    /// Carries out one step. Does nothing and returns false if another process has changed the
    /// rejects that were set aside.
    async fn carry_out(&mut self, chunk: &Chunk<'_>) -> Result<bool, LinkError> {
        let Chunk { rejects, fates, items, .. } = chunk;
        let keys = [&*self.keys.rejects_aside, &self.keys.source];
        let push = self.source.push().to_owned();
        let words = [push, rejects.len().to_string(), digest(rejects), fates.clone()];
        let arguments = words.into_iter().map(String::into_bytes).chain(items.iter().cloned());
        let script = Script::new(include_str!("rejects_sort.lua"));
        self.connection.query(&script.call(&keys, arguments.collect()).by_text()).await
    }

    async fn call_aside(&mut self, wanted: &str) -> Result<i64, LinkError> {
        let keys = [&*self.keys.rejects_aside, &self.keys.rejected];
        let arguments = vec![wanted.into(), GIVE_BACK.to_string().into_bytes()];
        let aside = Script::new(include_str!("rejects_aside.lua")).call(&keys, arguments);
        self.connection.query(&aside.by_text()).await
    }
}

impl Scan {
    /// Returns the number of rejects that the pass found at its start.
    pub fn len(&self) -> u64 {
        self.lengths.iter().sum()
    }

    /// Skips the next `count` rejects.
    pub fn skip(&mut self, count: u64) {
        self.at += count;
    }
}

/// Computes the SHA-1, in hex, of all rejects with a line feed after each.
fn digest(rejects: &[Vec<u8>]) -> String {
    let mut digest = Sha1::new();
    for reject in rejects {
        digest.update(reject);
        digest.update(b"\n");
    }
    Fingerprint::Raw20(digest.finalize().into()).to_string()
}

impl<'a> Chunk<'a> {
    fn new(rejects: &'a [Vec<u8>], fate: Fate, wanted: impl Fn(&Reject) -> bool) -> Self {
        let fates = String::with_capacity(rejects.len());
        let mut chunk = Self { rejects, fates, items: Vec::new(), foreign: Vec::new() };
        for json in rejects {
            let reject = Reject::from_json(json);
            let is_wanted = reject.as_ref().is_some_and(&wanted);
            let goes = match (reject.map(|reject| reject.item), fate) {
                (Some(_), _) if !is_wanted => false,
                (Some(_), Fate::Drop) => true,
                (Some(RejectedItem::Whole(item)), Fate::Requeue) => {
                    chunk.items.push(item);
                    true
                }
                (Some(RejectedItem::Shortened { .. }), Fate::Requeue) | (None, _) => {
                    chunk.foreign.push(json);
                    false
                }
            };
            chunk.fates.push(if goes { '1' } else { '0' });
        }
        chunk
    }
}
