//! Counts of limits in the log and in snapshots.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use urlseen_filter::Generation;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::limit::{Counted, Counts, Group};
use urlseen_filter::{Lifetimes, ShardId};
use urlseen_fingerprint::Fingerprint;

use super::super::{Journal, Retention, Section, Target};
use super::basic::{DIR, open};
use super::filter::{fingerprints, spec, write_all};
use super::testing::SimDisk;
use crate::Moment;
use crate::Restore;
use crate::head::{Head, Position};

/// Filter that only restores counts.
#[derive(Default)]
struct OnlyCounts(Counts);

impl Restore for OnlyCounts {
    fn clear(&mut self) {
        self.0 = Counts::default();
    }

    fn load(&mut self, _: Section, body: &mut dyn Read) -> std::io::Result<()> {
        std::io::copy(body, &mut std::io::sink()).map(drop)
    }

    fn load_tombstone(&mut self, _: ShardId, _: u128) {}

    fn add(&mut self, _: Vec<Fingerprint>, _: Generation, _: Position) {}

    fn forget(&mut self, _: Vec<Fingerprint>, _: Position) {}

    fn load_counts(&mut self, counts: &[Counted], at: Position) {
        self.0.load(counts, at.number);
    }

    fn count(&mut self, changes: &[Counted], at: Position) {
        self.0.replay(changes, at.number);
    }

    fn begin_generation(&mut self, _: Generation) {}
}

fn group() -> Group {
    Group::of("a.x")
}

/// Writes a batch that counts this number of items.
fn append(journal: &mut Journal, items: u64) {
    let mut log = journal.group();
    let counted = [Counted { group: group(), items }];
    log.append(&fingerprints([(1, 2)]), &Lifetimes::default(), &counted).unwrap();
    log.finish().unwrap();
}

/// Returns the count after a recovery to a head.
fn recovered(disk: &SimDisk, head: Head) -> Option<u64> {
    let mut counts = OnlyCounts::default();
    open(disk).recover(Target::At(head), &mut counts).unwrap();
    counts.0.of(group())
}

/// A snapshot is not of one moment: the log completes each of its parts.
#[test]
fn counts_are_those_of_the_head_whichever_snapshot_is_loaded() {
    for snapshot_after in 0..=4u64 {
        let disk = SimDisk::default();
        let mut folder = open(&disk);
        folder.begin(&spec(), RandomId::new(1), Head::START).unwrap();
        let start = Position { number: 0, head: Head::START };
        let mut journal = folder.journal(start, Fsync::Never).unwrap();
        let mut heads = vec![(Head::START, None)];
        let mut shards_at = journal.position();
        for batch in 1..=4 {
            if batch == snapshot_after {
                shards_at = journal.position();
                journal.roll().unwrap();
            }
            append(&mut journal, batch);
            let before = heads.last().and_then(|(_, count)| *count).unwrap_or(0);
            heads.push((journal.position().head, Some(before + batch)));
            if batch == snapshot_after {
                // The shards were copied before this batch, and the counts after it.
                let mut writer = journal.snapshot_writer().unwrap();
                write_all(&mut writer, &BTreeSet::new(), shards_at).unwrap();
                let counted = Counted { group: group(), items: before + batch };
                writer.sections.counts(&[counted], journal.position());
                let retention = Retention { horizon: None, horizon_bytes: u64::MAX };
                writer.finish(&retention, Moment::now()).unwrap();
            }
        }
        drop(journal);
        drop(folder);
        while let Some((head, count)) = heads.pop() {
            assert_eq!(recovered(&disk, head), count, "snapshot after {snapshot_after}");
        }
    }
}

#[test]
fn damage_of_the_counts_is_noticed() {
    let disk = SimDisk::default();
    let mut folder = open(&disk);
    folder.begin(&spec(), RandomId::new(1), Head::START).unwrap();
    let start = Position { number: 0, head: Head::START };
    let mut journal = folder.journal(start, Fsync::Never).unwrap();
    append(&mut journal, 3);
    let mut writer = journal.snapshot_writer().unwrap();
    write_all(&mut writer, &BTreeSet::new(), journal.position()).unwrap();
    let counted = [Counted { group: group(), items: 3 }];
    writer.sections.counts(&counted, journal.position());
    let name = writer
        .finish(&Retention { horizon: None, horizon_bytes: u64::MAX }, Moment::now())
        .unwrap()
        .name;
    let head = journal.position().head;
    drop((journal, folder));
    let path = Path::new(DIR).join(name);
    let whole = &disk.files()[path.file_name().unwrap().to_str().unwrap()];
    let mut encoded = Vec::new();
    counted[0].encode(&mut encoded);
    let at = whole.windows(encoded.len()).position(|it| it == encoded).unwrap();
    let mut damaged = whole.clone();
    damaged[at + 20] ^= 1;
    disk.put(&path, &damaged);
    // The older snapshot and the log lead to the same count.
    assert_eq!(recovered(&disk, head), Some(3));
}
