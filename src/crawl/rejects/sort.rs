//! Sorting through the rejects: some go, the others stay.

use std::fmt::Write;

use redis::Script;
use sha1::{Digest, Sha1};

use super::RejectsList;
use super::list::Scripts;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::reject::{Reject, RejectedItem};

/// How many rejects are given back at once. This bounds how long Redis is held up elsewhere, at
/// about a microsecond each.
const GIVE_BACK: usize = 10_000;

/// What becomes of the rejects that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Their items go back to the source, to be taken after all that wait there.
    Requeue,
    /// They are dropped.
    Drop,
}

/// What was done so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sorted {
    /// Rejects that there were at the beginning.
    pub(crate) found: u64,
    /// Of these, the ones that went.
    pub gone: u64,
    /// Those that stay because they were not wanted.
    pub(crate) kept: u64,
    /// Those that stay because they are not as urlseen writes them.
    pub(crate) foreign: u64,
}

impl Sorted {
    /// How many were looked at.
    pub(crate) fn seen(&self) -> u64 {
        self.gone + self.kept + self.foreign
    }
}

/// Rejects read, and what is to become of them.
struct Chunk<'a> {
    rejects: &'a [Vec<u8>],
    /// For each `1` if it goes, or `0`.
    fates: String,
    items: Vec<Vec<u8>>,
    foreign: Vec<&'a [u8]>,
}

impl RejectsList {
    /// Sorts through all rejects that there are now: those that are wanted go the way of `fate`,
    /// the oldest first. `watch` hears what was done so far, at the beginning and after each step,
    /// and which ones of the step are foreign.
    ///
    /// Each step is one script. Whoever is killed or loses the connection in between has lost or
    /// doubled nothing: what was not sorted is found by the next one, though those that had been
    /// kept come behind the rest then.
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
            // Another process gave back what was aside.
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

    /// Sets all rejects aside, after those that were left there, and returns how many there are.
    async fn set_aside(&mut self) -> Result<u64, LinkError> {
        loop {
            let found: i64 = self.call(|scripts| &scripts.set_aside).await?;
            if let Ok(found) = u64::try_from(found) {
                return Ok(found);
            }
            self.give_back().await?;
        }
    }

    /// Puts all that is aside back on the list.
    async fn give_back(&mut self) -> Result<(), LinkError> {
        while self.call::<u64>(|scripts| &scripts.give_back).await? > 0 {}
        Ok(())
    }

    /// Carries out one step, unless others have changed what is aside.
    async fn carry_out(&mut self, chunk: &Chunk<'_>) -> Result<bool, LinkError> {
        let digest = digest(chunk.rejects);
        let mut call = self.scripts.sort.prepare_invoke();
        call.key(&self.aside).key(&self.source);
        call.arg(chunk.rejects.len()).arg(digest).arg(&chunk.fates).arg(&chunk.items);
        Ok(call.invoke_async(&mut self.connection).await?)
    }

    /// Carries out the fate of the oldest reject that has its item beside it, unless that is
    /// another one by now.
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

/// The SHA-1, in hex, of all rejects with a line feed behind each.
fn digest(rejects: &[Vec<u8>]) -> String {
    let mut digest = Sha1::new();
    for reject in rejects {
        digest.update(reject);
        digest.update(b"\n");
    }
    let mut hex = String::with_capacity(40);
    for byte in digest.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
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
                        // Somebody has moved it away from its item.
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
