//! A crawl on a simulated disk, and the content that must survive every fault.
//!
//! Every record adds keys of its own, so that the content of a filter shows which records it
//! received.

use std::collections::BTreeSet;
use std::time::Duration;

use urlseen_filter::ShardId;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;

use super::super::{AtRest, Folder, Journal, Moment, RecoveryError, Retention, Target, snapshot};
use super::filter::{Exact, Key, batch, fingerprints, key, shard_of, spec};
use super::random::Random;
use super::testing::SimDisk;
use crate::head::{Head, Position};

/// Next step of a simulated crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// Writes a batch with new keys to the log.
    Append,
    /// Makes Redis commit the logged batches: either all of them, or all but the last.
    Commit,
    CommitButOne,
    /// Writes adds with new keys to the log.
    Adds,
    Roll,
    /// Takes a snapshot. If `split` is true, logs and commits a batch while the snapshot is half
    /// written.
    Snapshot {
        split: bool,
    },
    /// Drops the batches that are not committed.
    Cut,
    /// Closes the log and opens the folder again.
    Close,
    /// Ends the process without a close; the next one recovers to Redis's head.
    Reopen,
    /// Sets Redis back by some batches.
    RollBack(usize),
    /// Replaces the folder's content with the present filter, at a new head.
    Rebase,
}

/// A call to the folder failed: the process cannot continue.
#[derive(Debug)]
pub struct Stopped;

/// A logged batch, and the keys that it added.
#[derive(Debug, Clone)]
struct Logged {
    head: Head,
    number: u64,
    keys: BTreeSet<Key>,
}

/// A crawl, its folder, and the state that must survive.
#[derive(Debug)]
pub(super) struct World {
    pub(super) disk: SimDisk,
    folder: Option<Folder>,
    journal: Option<Journal>,
    fsync: Fsync,
    retention: Retention,
    /// Head and keys at the start of the history.
    base: Logged,
    /// Batches after the start whose logging was confirmed.
    chain: Vec<Logged>,
    /// Number of batches in `chain` that Redis has committed.
    committed: usize,
    /// Added keys that every recovered filter must have: the log confirmed their records.
    adds: BTreeSet<Key>,
    /// Added keys that a recovered filter may have or lack: the log did not confirm their records,
    /// or a loss of power followed.
    maybe_adds: BTreeSet<Key>,
    /// Added keys that the filter may have after a recovery to one head, and lack after a recovery
    /// to another head.
    shaky_adds: BTreeSet<Key>,
    /// Head and keys of a rebase that may have happened.
    rebase: Option<Logged>,
    /// True if unsynced data may have been lost.
    is_lossy: bool,
    /// True if the folder has an archive, which must have all keys of the filter.
    is_archived: bool,
    next_key: u16,
    random: Random,
}

impl World {
    pub(super) fn new(fsync: Fsync, keeps_all: bool, seed: u64) -> Self {
        let horizon = (!keeps_all).then(|| Moment::new("boot", Duration::from_secs(100)));
        Self {
            disk: SimDisk::default(),
            folder: None,
            journal: None,
            fsync,
            retention: Retention { horizon, horizon_bytes: u64::MAX },
            base: Logged { head: Head { seq: 3, ..Head::START }, number: 0, keys: BTreeSet::new() },
            chain: Vec::new(),
            committed: 0,
            adds: BTreeSet::new(),
            maybe_adds: BTreeSet::new(),
            shaky_adds: BTreeSet::new(),
            rebase: None,
            is_lossy: false,
            is_archived: false,
            next_key: 0,
            random: Random::new(seed),
        }
    }

    /// Gives the folder an archive.
    pub(super) fn archived(mut self) -> Self {
        self.is_archived = true;
        self
    }

    /// Opens the folder, begins it if it is new, and recovers to Redis's head.
    pub(super) fn start(&mut self) -> Result<(), Stopped> {
        self.stop();
        let mut folder = Folder::open_on(self.disk.dir()).map_err(|_| Stopped)?;
        if folder.header().is_none() {
            assert!(self.chain.is_empty() && self.adds.is_empty(), "the header is gone");
            folder.begin(&spec(), RandomId::new(99), self.base.head).map_err(|_| Stopped)?;
        }
        folder.keep_archive(self.is_archived).map_err(|_| Stopped)?;
        self.folder = Some(folder);
        let target = self.head(self.committed);
        self.recover(target)
    }

    /// Closes the folder and its journal.
    pub(super) fn stop(&mut self) {
        self.journal = None;
        self.folder = None;
    }

    /// Continues with `disk`: the state in which the next process finds the disk. `is_lossy` is
    /// true if unsynced data may be gone.
    pub(super) fn put_disk(&mut self, disk: SimDisk, is_lossy: bool) {
        self.stop();
        self.disk = disk;
        if is_lossy {
            self.is_lossy = true;
            self.maybe_adds.append(&mut self.adds);
        }
    }

    fn head(&self, batches: usize) -> Head {
        batches.checked_sub(1).map_or(self.base.head, |last| self.chain[last].head)
    }

    fn some_keys(&mut self) -> BTreeSet<Key> {
        let count = [0, 1, 2, 40][self.random.below(4)];
        let mut key = || {
            let n = self.next_key;
            self.next_key += 1;
            (u8::try_from(n % 256).unwrap(), n / 256)
        };
        (0..count).map(|_| key()).collect()
    }

    /// Returns the keys of the first `batches` batches.
    fn keys(&self, batches: usize) -> BTreeSet<Key> {
        let batches = self.chain[..batches].iter().flat_map(|batch| &batch.keys);
        self.base.keys.iter().chain(batches).copied().collect()
    }

    pub(super) fn apply(&mut self, op: Op) -> Result<(), Stopped> {
        let done = match op {
            Op::Append => self.append(),
            Op::Commit => {
                self.committed = self.chain.len();
                Ok(())
            }
            Op::CommitButOne => {
                self.committed = self.committed.max(self.chain.len().saturating_sub(1));
                Ok(())
            }
            Op::Adds => self.append_adds(),
            Op::Roll => self.journal_mut().roll(),
            Op::Snapshot { split } => self.snapshot(split),
            Op::Cut => {
                let head = self.head(self.committed);
                self.chain.truncate(self.committed);
                self.journal_mut().cut(head).map(|position| assert_eq!(position.head, head))
            }
            Op::Close => {
                let head = self.head(self.committed);
                self.chain.truncate(self.committed);
                let closed = self.journal.take().expect("a journal").close(head);
                closed.map_err(|_| Stopped)?;
                return self.start();
            }
            Op::Reopen => return self.start(),
            Op::RollBack(batches) => {
                self.committed = self.committed.saturating_sub(batches);
                let target = self.head(self.committed);
                self.journal = None;
                return self.recover(target);
            }
            Op::Rebase => self.rebase(),
        };
        done.map_err(|_| Stopped)
    }

    fn journal_mut(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("a journal")
    }

    fn append(&mut self) -> std::io::Result<()> {
        let keys = self.some_keys();
        let journal = self.journal_mut();
        let logged = journal.append(&batch(keys.iter().copied()))?;
        let Position { number, head } = logged.logged.at;
        self.chain.push(Logged { head, number, keys });
        Ok(())
    }

    fn append_adds(&mut self) -> std::io::Result<()> {
        let mut keys = self.some_keys();
        let all = fingerprints(keys.iter().copied());
        match self.journal_mut().append_adds(&all) {
            Ok(_) => self.adds.append(&mut keys),
            Err(error) => {
                self.maybe_adds.append(&mut keys);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the keys of the filter and its position: the last committed batch. The keys include
    /// adds that were logged after that batch. Recovery applies these adds again.
    fn filter(&self) -> (BTreeSet<Key>, Position) {
        let keys = self.keys(self.committed).union(&self.adds).copied().collect();
        let last = self.committed.checked_sub(1).map_or(&self.base, |last| &self.chain[last]);
        (keys, Position { number: last.number, head: last.head })
    }

    fn snapshot(&mut self, split: bool) -> std::io::Result<()> {
        self.journal_mut().roll()?;
        let mut writer = self.journal_mut().snapshot_writer()?;
        let (mut keys, mut at) = self.filter();
        for shard in ShardId::all() {
            if split && shard.index() == 100 {
                self.append()?;
                self.committed = self.chain.len();
                (keys, at) = self.filter();
            }
            writer.sections.write(shard, at, &shard_of(&keys, shard), &mut || Ok(()))?;
        }
        writer.finish(&self.retention, Moment::new("boot", Duration::ZERO)).map(drop)
    }

    fn rebase(&mut self) -> std::io::Result<()> {
        let keys: BTreeSet<Key> = self.filter().0;
        let head = self.head(self.committed);
        // A seq before, at or after the present one.
        let seq = (head.seq + self.random.below(7) as u64).saturating_sub(3);
        let at = Head { seq, ..head.next() };
        if self.is_archived {
            // A rebase moves the whole log to the archive. So the batches that are not committed
            // are cut off first. The commands that rebase a folder do the same.
            self.chain.truncate(self.committed);
            self.journal_mut().cut(head)?;
        }
        self.journal = None;
        let folder = self.folder.as_mut().expect("a folder");
        let mut rebase = folder.rebase(at)?;
        for shard in ShardId::all() {
            rebase.write(shard, &shard_of(&keys, shard))?;
        }
        self.rebase = Some(Logged { head: at, number: rebase.position.number, keys });
        let position = rebase.finish()?;
        self.rebased();
        self.journal = Some(self.folder.as_mut().expect("a folder").journal(position, self.fsync)?);
        Ok(())
    }

    /// Notes that the rebase has happened.
    fn rebased(&mut self) {
        self.base = self.rebase.take().expect("a rebase");
        self.chain.clear();
        self.committed = 0;
        self.adds.clear();
        self.maybe_adds.clear();
        self.shaky_adds.clear();
    }

    /// Recovers the filter to `target`, checks its content, and continues the log there.
    fn recover(&mut self, target: Head) -> Result<(), Stopped> {
        let mut filter = Exact::default();
        let folder = self.folder.as_mut().expect("a folder");
        if let Some(at) = self.rebase.as_ref().map(|rebase| rebase.head) {
            match folder.recover(Target::At(at), &mut filter) {
                Ok(_) => {
                    self.rebased();
                    return self.resume(at, &filter);
                }
                Err(RecoveryError::Io(_)) => return Err(Stopped),
                Err(_) => self.rebase = None,
            }
        }
        let mut folder = self.folder.take().expect("a folder");
        let result = folder.recover(Target::At(target), &mut filter);
        let folder = self.folder.insert(folder);
        match result {
            Ok(_) => self.resume(target, &filter),
            Err(RecoveryError::Io(_)) => {
                // The failed recovery may have begun to drop later batches.
                self.chain.truncate(self.committed);
                Err(Stopped)
            }
            Err(RecoveryError::Behind { missing, best, .. }) if self.is_lossy => {
                let best = best.expect("what is synced is there");
                assert_eq!(best.seq + missing, target.seq);
                let chain = self.chain.iter().position(|batch| batch.head == best);
                assert!(chain.is_some() || best == self.base.head, "{best} was a batch");
                self.committed = chain.map_or(0, |chain| chain + 1);
                self.chain.truncate(self.committed);
                folder.recover(Target::At(best), &mut filter).map_err(|_| Stopped)?;
                self.resume(best, &filter)
            }
            Err(RecoveryError::Beyond { target, oldest, .. }) => {
                // The target was pruned. Redis comes back with a later head instead.
                assert!(oldest.seq > target.seq, "{oldest} to {target}");
                let chain = self.chain.iter().position(|batch| batch.head == oldest);
                self.committed = chain.map_or(0, |chain| chain + 1);
                self.chain.truncate(self.committed);
                folder.recover(Target::At(oldest), &mut filter).map_err(|_| Stopped)?;
                self.resume(oldest, &filter)
            }
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Returns the lowest seq that a snapshot leads to.
    fn oldest(&self) -> u64 {
        let files = self.disk.files();
        files.keys().filter_map(|name| snapshot::seq(name)).min().expect("a snapshot")
    }

    /// Continues from `target`, to which `filter` was recovered.
    fn resume(&mut self, target: Head, filter: &Exact) -> Result<(), Stopped> {
        self.check(self.committed, filter);
        self.chain.truncate(self.committed);
        let all = self.adds.union(&self.maybe_adds).copied().collect::<BTreeSet<_>>();
        self.adds = all.intersection(&filter.keys).copied().collect();
        if self.is_lossy {
            // The log may have lost adds that the newest snapshot still has. A recovery from an
            // older snapshot then lacks these adds.
            self.shaky_adds.extend(all);
        }
        self.maybe_adds.clear();
        self.is_lossy = false;
        let folder = self.folder.as_mut().expect("a folder");
        let look = super::super::inspect::look_on(&self.disk.dir());
        let last = look.map_err(|_| Stopped)?.last.expect("it has a snapshot");
        assert_eq!(last.head, target, "nothing is left beyond");
        self.journal = Some(folder.journal(last, self.fsync).map_err(|_| Stopped)?);
        Ok(())
    }

    fn check(&self, batches: usize, filter: &Exact) {
        let batches = self.keys(batches);
        let sure = self.adds.difference(&self.shaky_adds);
        let least: BTreeSet<_> = batches.iter().chain(sure).copied().collect();
        let maybe = self.maybe_adds.union(&self.shaky_adds);
        let most: BTreeSet<_> = least.iter().chain(maybe).copied().collect();
        let missing: Vec<_> = least.difference(&filter.keys).collect();
        let invented: Vec<_> = filter.keys.difference(&most).collect();
        assert!(missing.is_empty(), "unseen again: {missing:?}");
        assert!(invented.is_empty(), "seen without a record: {invented:?}");
    }

    /// Recovers to every head that Redis may come back with, each on a copy of the disk. Pruned
    /// heads are refused.
    pub(super) fn check_all(&self) {
        let reach = if self.folder_is_begun() && self.rebase.is_none() {
            self.oldest()
        } else {
            return;
        };
        for batches in 0..=self.chain.len() {
            let head = self.head(batches);
            let disk = self.disk.after_kill();
            let mut folder = Folder::open_on(disk.dir()).unwrap();
            let mut filter = Exact::default();
            self.check_archive(batches);
            match folder.recover(Target::At(head), &mut filter) {
                Ok(_) => self.check(batches, &filter),
                Err(RecoveryError::Beyond { .. }) if head.seq < reach => {}
                Err(RecoveryError::Behind { .. }) if self.is_lossy => {}
                Err(refused) => panic!("{head}: {refused}"),
            }
        }
    }

    /// Checks that archive and log have the keys of the filter, at any head.
    fn check_archive(&self, batches: usize) {
        if !self.is_archived {
            return;
        }
        let disk = self.disk.after_kill();
        let folder = AtRest::open_on(&disk.dir()).unwrap();
        let Ok(archive) = folder.archive(Target::At(self.head(batches))) else { return };
        let mut filter = Exact::default();
        filter.keys.clear();
        let is_complete = archive.lacks_before.is_none();
        archive
            .each(|fingerprint| {
                assert!(filter.keys.insert(key(fingerprint)), "{fingerprint} comes twice");
                Ok::<_, RecoveryError>(())
            })
            .unwrap();
        if !is_complete {
            // A gap is reported: keys before it may be missing.
            filter.keys.extend(self.keys(batches).into_iter().chain(self.adds.iter().copied()));
        }
        self.check(batches, &filter);
    }

    fn folder_is_begun(&self) -> bool {
        self.disk.files().contains_key("header")
    }
}
