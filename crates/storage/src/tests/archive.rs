//! The archive has all fingerprints of the filter, also after faults.

use std::collections::BTreeSet;
use std::path::Path;

use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::{Lifetimes, Saved, ShardId};

use super::super::{ArchiveState, AtRest, Folder, Journal, RecoveryError, Retention, Target};
use super::basic::{DIR, open, recover};
use super::filter::{Key, fingerprints, head, key, spec, write_all};
use super::testing::{Fault, SimDisk};
use crate::Moment;
use crate::head::{Head, Position};

/// A folder with an archive, and its log.
struct Crawl {
    disk: SimDisk,
    folder: Folder,
    journal: Journal,
    keys: BTreeSet<Key>,
}

impl Crawl {
    fn new() -> Self {
        let disk = SimDisk::default();
        let mut folder = open(&disk);
        folder.begin(&spec(), RandomId::new(7), Head::START).unwrap();
        folder.keep_archive(true).unwrap();
        let start = Position { number: 0, head: Head::START };
        let journal = folder.journal(start, Fsync::Never).unwrap();
        Self { disk, folder, journal, keys: BTreeSet::new() }
    }

    fn add(&mut self, keys: impl IntoIterator<Item = Key> + Clone) {
        self.journal.append_adds(&fingerprints(keys.clone())).unwrap();
        self.keys.extend(keys);
    }

    fn forget(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.journal.append_forgets(&fingerprints(keys)).unwrap();
    }

    /// Takes as many snapshots as the folder keeps, so that all earlier files of the log are
    /// pruned.
    fn prune(&mut self) {
        for _ in 0..3 {
            self.snapshot();
        }
    }

    fn snapshot(&mut self) {
        // Each snapshot is named after the seq of a batch.
        let Position { number, head: Head { seq, .. } } = self.journal.position();
        let next = Position { number: number + 1, head: head(seq + 1, number) };
        self.journal
            .write(super::super::record::RecordKind::Batch, next, &[], &Lifetimes::default(), &[])
            .unwrap();
        self.journal.roll().unwrap();
        let mut writer = self.journal.snapshot_writer().unwrap();
        write_all(&mut writer, &self.keys, self.journal.position()).unwrap();
        let retention = Retention { horizon: None, horizon_bytes: 1 };
        writer.finish(&retention, Moment::now()).unwrap();
    }

    /// Returns the exported fingerprints, each once, and the position after which the export is
    /// complete.
    fn exported(&self) -> (Vec<Key>, Option<u64>) {
        let disk = self.disk.after_kill();
        let folder = AtRest::open_on(&disk.dir()).unwrap();
        let archive = folder.archive(Target::Last).unwrap();
        assert_eq!(archive.damaged, []);
        let lacks = archive.lacks_before.map(|from| from.number);
        let mut keys = Vec::new();
        let visited = archive.each(|fingerprint| {
            keys.push(key(fingerprint));
            Ok::<_, RecoveryError>(())
        });
        visited.unwrap();
        keys.sort_unstable();
        (keys, lacks)
    }

    fn parts(&self) -> usize {
        let files = self.disk.files();
        files.keys().filter(|name| name.starts_with("archive-")).count()
    }

    fn standing(&self) -> ArchiveState {
        self.folder.archive().unwrap()
    }
}

#[test]
fn fingerprints_of_all_widths_go_from_the_log_to_the_archive() {
    let mut crawl = Crawl::new();
    crawl.add((0..16).map(|bit| (1, bit)));
    crawl.prune();
    assert!(crawl.parts() > 0);
    crawl.add((0..16).map(|bit| (2, bit)));
    let all: Vec<Key> = (1..=2).flat_map(|shard| (0..16).map(move |bit| (shard, bit))).collect();
    assert_eq!(crawl.exported(), (all, None));
}

#[test]
fn a_forgotten_fingerprint_is_exported_once_if_it_passed_again() {
    let mut crawl = Crawl::new();
    crawl.add([(1, 0), (1, 1), (1, 2), (1, 3)]);
    crawl.prune();
    crawl.forget([(1, 1), (1, 2), (1, 3)]);
    crawl.add([(1, 2)]);
    crawl.prune();
    crawl.add([(1, 3)]);
    assert_eq!(crawl.exported(), (vec![(1, 0), (1, 2), (1, 3)], None));
}

#[test]
fn an_archive_that_was_turned_on_late_says_where_it_begins() {
    let mut crawl = Crawl::new();
    crawl.folder.keep_archive(false).unwrap();
    crawl.add([(1, 3)]);
    crawl.prune();
    let begin = crawl.disk.files().into_keys().find(|name| name.starts_with("log-")).unwrap();
    let follows = super::super::segment::follows(&begin).unwrap();
    crawl.folder.keep_archive(true).unwrap();
    crawl.add([(1, 4)]);
    crawl.prune();
    assert_eq!(crawl.exported(), (vec![(1, 4)], Some(follows)));
    let lacks = crawl.standing().lacks_before.map(|from| from.number);
    assert_eq!(lacks, Some(follows));
}

#[test]
fn a_gap_in_the_archive_is_noticed() {
    let mut crawl = Crawl::new();
    crawl.add([(1, 3)]);
    crawl.prune();
    crawl.folder.keep_archive(false).unwrap();
    crawl.add([(1, 4)]);
    crawl.prune();
    crawl.folder.keep_archive(true).unwrap();
    crawl.add([(1, 5)]);
    crawl.prune();
    let (keys, lacks) = crawl.exported();
    assert_eq!(keys, [(1, 3), (1, 5)]);
    assert!(lacks.is_some());
    assert_eq!(lacks, crawl.standing().lacks_before.map(|from| from.number));
}

/// Emptying the filter starts a new history without fingerprints, so the archive is complete again.
#[test]
fn emptying_the_filter_empties_the_archive() {
    let mut crawl = Crawl::new();
    crawl.add([(1, 3)]);
    crawl.prune();
    crawl.add([(1, 4)]);
    let Crawl { disk, mut folder, journal, .. } = crawl;
    let head = journal.position().head;
    drop(journal);
    let mut rebase = folder.rebase(head).unwrap();
    for shard in ShardId::all() {
        rebase.write(shard, &Saved::default()).unwrap();
    }
    let position = rebase.finish().unwrap();
    let journal = folder.journal(position, Fsync::Never).unwrap();
    let mut crawl = Crawl { disk, folder, journal, keys: BTreeSet::new() };
    assert_eq!((crawl.parts(), crawl.exported()), (0, (vec![], None)));
    crawl.add([(1, 5)]);
    crawl.prune();
    crawl.prune();
    assert!(crawl.parts() > 0);
    assert_eq!(crawl.exported(), (vec![(1, 5)], None));
    assert_eq!(crawl.standing().lacks_before, None);
}

/// If the process is killed at any step of emptying, no earlier fingerprint counts once the filter
/// is empty.
#[test]
fn after_a_kill_while_the_filter_is_emptied_no_old_part_counts() {
    for step in 0.. {
        let mut crawl = Crawl::new();
        crawl.add([(1, 3)]);
        crawl.prune();
        crawl.add([(1, 4)]);
        let Crawl { disk, mut folder, journal, .. } = crawl;
        let head = journal.position().head;
        drop(journal);
        disk.fault_at(step, Fault::Killed);
        let mut empty = || -> std::io::Result<()> {
            let mut rebase = folder.rebase(head)?;
            for shard in ShardId::all() {
                rebase.write(shard, &Saved::default())?;
            }
            rebase.finish().map(drop)
        };
        let emptied = empty();
        let disk = disk.after_kill();
        let mut folder = open(&disk);
        let (position, keys) = recover(&mut folder, Target::Last);
        let journal = folder.journal(position, Fsync::Never).unwrap();
        let mut again = Crawl { disk, folder, journal, keys: keys.clone() };
        let (exported, lacks) = again.exported();
        assert!(lacks.is_some() || exported.iter().eq(&keys), "step {step}: {exported:?}");
        again.add([(1, 5)]);
        again.prune();
        let (exported, _) = again.exported();
        let of_before = exported.iter().any(|key| !again.keys.contains(key));
        assert!(!of_before, "step {step}: {exported:?}");
        if emptied.is_ok() {
            return;
        }
    }
}

#[test]
fn every_flipped_bit_of_a_part_is_found() {
    let mut crawl = Crawl::new();
    crawl.add([(1, 0), (1, 1), (1, 2), (1, 3)]);
    crawl.forget([(1, 2)]);
    crawl.prune();
    let files = crawl.disk.files();
    let (name, good) = files.iter().find(|(name, _)| name.starts_with("archive-")).unwrap();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let disk = crawl.disk.after_kill();
        disk.put(&Path::new(DIR).join(name), &bytes);
        let folder = AtRest::open_on(&disk.dir()).unwrap();
        let archive = folder.archive(Target::Last).unwrap();
        assert!(archive.damaged.len() == 1 && archive.lacks_before.is_some(), "bit {bit}");
    }
}
