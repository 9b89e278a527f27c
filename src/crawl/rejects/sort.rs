//! Sorting of the rejects: some go, the others stay.

use redis::Script;
use sha1::{Digest, Sha1};

use super::RejectsList;
use super::list::Scripts;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::reject::{Reject, RejectedItem};

/// Most rejects that are given back at once. Redis serves no other client for about a microsecond
/// each.
const GIVE_BACK: usize = 10_000;

/// Fate of the rejects that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Their items go back to the source, after all items that wait there.
    Requeue,
    /// The rejects are dropped.
    Drop,
}

/// Counts of a sorting so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sorted {
    /// Rejects found at the start.
    pub(crate) found: u64,
    /// Rejects that went so far.
    pub gone: u64,
    /// Rejects that stay because the caller does not want them.
    pub(crate) kept: u64,
    /// Rejects that stay because urlseen did not write them so.
    pub(crate) foreign: u64,
}

impl Sorted {
    /// Number of rejects that were looked at.
    pub(crate) fn seen(&self) -> u64 {
        self.gone + self.kept + self.foreign
    }
}

/// Rejects of one step, and their fates.
struct Chunk<'a> {
    rejects: &'a [Vec<u8>],
    /// For each reject `1` if it goes, or `0`.
    fates: String,
    items: Vec<Vec<u8>>,
    foreign: Vec<&'a [u8]>,
}

impl RejectsList {
    /// Sorts all present rejects, the oldest first. Those that are `wanted` meet `fate`. `watch`
    /// receives the counts at the start and after each step, with the foreign rejects of that step.
    ///
    /// Each step is one script. If the process is killed or loses the connection between two steps,
    /// no item is lost or doubled: the next process finds the unsorted rejects. Those that were
    /// kept before then come after the others.
    pub async fn sort(
        &mut self,
        fate: Fate,
        wanted: impl Fn(&Reject) -> bool,
        mut watch: impl FnMut(&Sorted, &[&[u8]]),
    ) -> Result<Sorted, LinkError> {
        let mut sorted = Sorted { found: self.set_aside().await?, ..Sorted::default() };
        let (aside, listed) = (self.aside.clone(), sorted.found);
        let oversize = self.oversize_length().await?;
        sorted.found += oversize;
        watch(&sorted, &[]);
        while sorted.seen() < listed {
            let rejects = self.read(&aside, 0, listed - sorted.seen()).await?;
            // Another process gave the rejects back.
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
        let mut left = oversize;
        while left > 0 {
            // Another process has sorted them.
            let Some(json) = self.oversize(0).await? else { break };
            let (fate, is_foreign) = match Reject::from_json(&json) {
                Some(reject) if !wanted(&reject) => ("keep", false),
                Some(_) if fate == Fate::Requeue => ("requeue", false),
                Some(_) => ("drop", false),
                None => ("keep", true),
            };
            if !self.sort_oversize(&json, fate).await? {
                continue;
            }
            left -= 1;
            sorted.gone += u64::from(fate != "keep");
            sorted.foreign += u64::from(is_foreign);
            sorted.kept += u64::from(fate == "keep" && !is_foreign);
            let foreign = [json.as_slice()];
            watch(&sorted, &foreign[..usize::from(is_foreign)]);
        }
        Ok(sorted)
    }

    /// Sets all rejects aside, with those that an earlier sort left aside. Returns how many are
    /// aside.
    async fn set_aside(&mut self) -> Result<u64, LinkError> {
        loop {
            let found: i64 = self.call(|scripts| &scripts.set_aside).await?;
            if let Ok(found) = u64::try_from(found) {
                return Ok(found);
            }
            self.give_back().await?;
        }
    }

    /// Puts the rejects that are aside back on the list.
    async fn give_back(&mut self) -> Result<(), LinkError> {
        while self.call::<u64>(|scripts| &scripts.give_back).await? > 0 {}
        Ok(())
    }

    /// Carries out one step, unless another process has changed the rejects aside.
    async fn carry_out(&mut self, chunk: &Chunk<'_>) -> Result<bool, LinkError> {
        let digest = digest(chunk.rejects);
        let mut call = self.scripts.sort.prepare_invoke();
        call.key(&self.aside).key(&self.source);
        call.arg(chunk.rejects.len()).arg(digest).arg(&chunk.fates).arg(&chunk.items);
        Ok(call.invoke_async(&mut self.connection).await?)
    }

    /// Carries out the fate of the oldest reject that is followed by its item. Does nothing if
    /// another one is the oldest by now.
    async fn sort_oversize(&mut self, reject: &[u8], fate: &str) -> Result<bool, LinkError> {
        let mut call = self.scripts.sort_oversize.prepare_invoke();
        call.key(&self.oversize).key(&self.source).arg(reject).arg(fate);
        Ok(call.invoke_async(&mut self.connection).await?)
    }

    async fn call<T: redis::FromRedisValue>(
        &mut self,
        script: impl Fn(&Scripts) -> &Script,
    ) -> Result<T, LinkError> {
        let mut call = script(&self.scripts).prepare_invoke();
        call.key(&self.aside).key(&self.rejected).arg(GIVE_BACK);
        Ok(call.invoke_async(&mut self.connection).await?)
    }
}

/// Returns the SHA-1, in hex, of all rejects, with a line feed after each.
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
            let goes = match Reject::from_json(json) {
                None => {
                    chunk.foreign.push(json);
                    false
                }
                Some(reject) => {
                    let goes = wanted(&reject);
                    match (reject.item, fate) {
                        (RejectedItem::Whole(item), Fate::Requeue) if goes => {
                            chunk.items.push(item);
                            true
                        }
                        // Another program has separated it from its item.
                        (RejectedItem::Oversize { .. }, Fate::Requeue) if goes => {
                            chunk.foreign.push(json);
                            false
                        }
                        _ => goes,
                    }
                }
            };
            chunk.fates.push(if goes { '1' } else { '0' });
        }
        chunk
    }
}
