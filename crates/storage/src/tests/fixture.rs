//! A folder with every kind of content. The tests write the folder again, and compare it with the
//! copy in `tests/data/storage-7`. Only the times may differ. Every later version must be able to
//! read that copy.
//!
//! `WRITE_FIXTURE=1 cargo test --lib fixture` writes that copy anew. Do so only for a new format,
//! into a new folder.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::{Lifetimes, ShardId};

use super::super::inspect::look_on;
use super::super::record::RecordKind;
use super::super::{Journal, RecoveryError, Retention, Target, snapshot};
use super::basic::{DIR, open, recover};
use super::filter::{Exact, Key, fingerprints, head, spec, write_all};
use super::testing::SimDisk;
use crate::Moment;
use crate::head::{Head, Position};

/// Head at the start of the history; the batches follow it.
const BASE: Head = Head::START;

fn batch_head(seq: u64) -> Head {
    if seq == 0 { BASE } else { head(seq, 0x1111_1111_1111_1111 * seq) }
}

/// Returns the keys of a batch, of all kinds of fingerprints. Batch 4 has none.
fn batch_keys(seq: u64) -> BTreeSet<Key> {
    let shard = u8::try_from(seq).unwrap();
    if seq == 4 { BTreeSet::new() } else { (0..6).map(|bit| (shard, bit)).collect() }
}

pub(super) const ADDS: [Key; 4] = [(100, 3), (101, 0), (102, 1), (103, 2)];
pub(super) const LATE_ADDS: [Key; 1] = [(255, 500)];

/// Tombstones of the last snapshot. The second of these keys passes again in batch 7. The key in
/// `LATE_TOMBSTONES` is forgotten after batch 8.
const FORGOTTEN: [Key; 2] = [(3, 1), (7, 2)];
const LATE_TOMBSTONES: [Key; 1] = [(2, 1)];

const RUNS: [u64; 2] = [2, 0xfedc_ba98_7654_3210];

/// Returns the keys of the filter at a batch. They include the keys of all adds, because adds
/// always count.
pub(super) fn expected(seq: u64) -> BTreeSet<Key> {
    (1..=seq).flat_map(batch_keys).chain(ADDS).chain(LATE_ADDS).collect()
}

/// Returns the heads that the folder leads to, oldest first.
pub(super) fn heads() -> Vec<Head> {
    (0..=8).map(batch_head).collect()
}

fn append(journal: &mut Journal, seq: u64) {
    let position = Position { number: journal.position().number + 1, head: batch_head(seq) };
    let keys = fingerprints(batch_keys(seq));
    journal.write(RecordKind::Batch, position, &keys, &Lifetimes::default(), &[]).unwrap();
}

fn take_snapshot(journal: &mut Journal, keys: &BTreeSet<Key>) {
    journal.roll().unwrap();
    let mut writer = journal.snapshot_writer().unwrap();
    write_all(&mut writer, keys, journal.position()).unwrap();
    if journal.position().head.seq == 6 {
        for (shard, id) in FORGOTTEN {
            writer.sections.tombstones(ShardId(shard), &[u128::from(id)]);
        }
    }
    let retention = Retention { horizon: None, horizon_bytes: u64::MAX };
    writer.finish(&retention, Moment::now()).unwrap();
}

/// Writes batches 1 to 8 in four files. Adds follow batch 2, and adds and forgets follow batch 8.
/// There are snapshots at 0, 3 and 6. Redis may know any of the last three batches.
pub(super) fn write() -> SimDisk {
    let disk = SimDisk::default();
    let mut folder = open(&disk);
    folder.begin(&spec(), RandomId::new(0x0123_4567_89ab_cdef), BASE).unwrap();
    for run in RUNS {
        folder.announce(RandomId::new(run)).unwrap();
    }
    let start = Position { number: 0, head: BASE };
    let mut journal = folder.journal(start, Fsync::Never).unwrap();
    let mut keys = BTreeSet::new();
    for seq in 1..=8 {
        append(&mut journal, seq);
        keys.extend(batch_keys(seq));
        match seq {
            2 => {
                journal.append_adds(&fingerprints(ADDS)).unwrap();
                keys.extend(ADDS);
            }
            3 | 6 => take_snapshot(&mut journal, &keys),
            4 => journal.roll().unwrap(),
            _ => {}
        }
    }
    journal.append_adds(&fingerprints(LATE_ADDS)).unwrap();
    journal.append_forgets(&fingerprints(LATE_TOMBSTONES)).unwrap();
    disk
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/storage-7")
}

/// Returns the files of a fixture.
fn committed() -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(fixture()).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

/// Returns a snapshot without its times and the CRCs over them.
fn without_times(name: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    if snapshot::seq(name).is_some() {
        let end = bytes.len();
        bytes[end - 37..end - 5].fill(0);
        bytes[end - 4..].fill(0);
    }
    bytes
}

#[test]
fn this_version_writes_the_same_bytes_as_the_fixture() {
    let now = write().files();
    let own = |name: &String| !["lock", "notes"].contains(&name.as_str());
    if env::var_os("WRITE_FIXTURE").is_some() {
        fs::create_dir_all(fixture()).unwrap();
        for (name, bytes) in now.iter().filter(|(name, _)| own(name)) {
            fs::write(fixture().join(name), bytes).unwrap();
        }
    }
    let then = committed();
    assert!(then.keys().eq(now.keys().filter(|name| own(name))), "{:?}", then.keys());
    for (name, then) in then {
        let now = without_times(&name, now[&name].clone());
        assert!(without_times(&name, then) == now, "{name} is written otherwise");
    }
}

#[test]
fn the_fixture_is_read_with_all_its_content() {
    let last = 11;
    let disk = SimDisk::default();
    for (name, bytes) in committed() {
        disk.put(&Path::new(DIR).join(name), &bytes);
    }
    let look = look_on(&disk.dir()).unwrap();
    let header = look.header.unwrap();
    assert_eq!((header.filter.get(), &header.spec), (0x0123_4567_89ab_cdef, &spec()));
    assert_eq!(header.differences(&spec()), []);
    assert_eq!(look.damages, []);
    assert_eq!(look.last, Some(Position { number: last, head: batch_head(8) }));
    let segments = look.segments.iter().map(|each| (each.follows.number, each.records));
    assert_eq!(segments.collect::<Vec<_>>(), [(0, 4), (4, 1), (5, 2), (7, last - 7)]);
    let snapshots = look.snapshots.iter().map(|each| (each.last.number, each.keys() / 2));
    assert_eq!(snapshots.collect::<Vec<_>>(), [(0, 0), (4, 22), (7, 34)]);
    assert!(look.snapshots.iter().all(|it| it.begun <= it.finished && it.begun > 1 << 40));
    for seq in 0..=8 {
        let mut folder = open(&disk.after_kill());
        let (position, keys) = recover(&mut folder, Target::At(batch_head(seq)));
        assert_eq!(position.head, batch_head(seq));
        assert_eq!(keys, expected(seq), "batch {seq}");
    }
    let mut filter = Exact::default();
    let recovered = open(&disk.after_kill()).recover(Target::Last, &mut filter).unwrap();
    assert_eq!((recovered.position.number, filter.keys), (last, expected(8)));
    assert!(filter.tombstones.into_iter().eq([LATE_TOMBSTONES[0], FORGOTTEN[0]]));
    let other = open(&disk).recover(Target::At(head(5, 1)), &mut Exact::default());
    assert!(
        matches!(other, Err(RecoveryError::OtherHistory { ours, .. }) if ours == batch_head(5))
    );
}
