//! Files that stay and files that are removed after a snapshot or a rebase.

use std::collections::BTreeSet;
use std::time::Duration;

use urlseen_filter::ShardId;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;

use super::super::{Finished, Journal, Moment, RecoveryError, Retention, Target};
use super::basic::{append, begun, keep_all, open, recover, started};
use super::filter::{Exact, Key, head, shard_of, write_all};
use super::testing::SimDisk;
use crate::head::{Head, Position};

const START: Position = Position { number: 0, head: Head::START };

/// Returns the moment this number of seconds after the boot.
fn at(boot: &'static str, seconds: u64) -> Moment {
    Moment::new(boot, Duration::from_secs(seconds))
}

fn snapshot(journal: &mut Journal, keys: &BTreeSet<Key>, retention: &Retention) -> Finished {
    snapshot_at(journal, keys, retention, at("boot", 0))
}

fn snapshot_at(
    journal: &mut Journal,
    keys: &BTreeSet<Key>,
    retention: &Retention,
    now: Moment,
) -> Finished {
    journal.roll().unwrap();
    let mut writer = journal.snapshot_writer().unwrap();
    write_all(&mut writer, keys, journal.position()).unwrap();
    writer.finish(retention, now).unwrap()
}

/// Runs a crawl of some batches, with a snapshot after each batch. Returns the result of each
/// snapshot, and the heads.
fn crawl(disk: &SimDisk, batches: u8, retention: &Retention) -> (Vec<Finished>, Vec<Head>) {
    let mut folder = begun(disk, Head::START);
    let mut journal = folder.journal(START, Fsync::Never).unwrap();
    let (mut keys, mut heads) = (BTreeSet::new(), vec![Head::START]);
    let finished = (0..batches).map(|n| {
        keys.insert((n, 5));
        heads.push(append(&mut journal, &[(n, 5)]).head);
        snapshot(&mut journal, &keys, retention)
    });
    let finished = finished.collect();
    (finished, heads)
}

fn can_go_back_to(disk: &SimDisk, heads: &[Head]) -> Vec<bool> {
    let recovers = |head: &Head| {
        let mut filter = Exact::default();
        let result = open(&disk.after_kill()).recover(Target::At(*head), &mut filter);
        let expected = (0..head.seq).map(|n| (u8::try_from(n).unwrap(), 5)).collect();
        assert!(result.is_err() || filter.keys == expected, "{head}");
        result.is_ok()
    };
    heads.iter().map(recovers).collect()
}

/// Returns the names of the files, without leading zeros.
fn names(disk: &SimDisk) -> String {
    let files = disk.files().into_keys();
    let short = |name: String| match name.split_once('-') {
        Some((kind, number)) => format!("{kind}-{}", number.trim_start_matches('0')),
        None => name,
    };
    files.map(short).collect::<Vec<_>>().join(" ")
}

#[test]
fn horizon_bytes_limits_the_kept_snapshots() {
    for horizon_bytes in [0, 30_000, 42_000, 1_000_000] {
        let disk = SimDisk::default();
        let (finished, heads) = crawl(&disk, 6, &Retention { horizon_bytes, ..keep_all() });
        let total: usize = disk.files().values().map(Vec::len).sum();
        let (snapshots, cut) = match horizon_bytes {
            0 => (1, true),
            30_000 => (2, true),
            42_000 => (3, true),
            _ => (4, false),
        };
        let kept = names(&disk).matches("snapshot").count();
        assert_eq!((kept, finished[5].cut_by_bytes), (snapshots, cut), "{horizon_bytes}");
        assert!(total as u64 <= horizon_bytes || snapshots == 1, "{total} bytes");
        let back = can_go_back_to(&disk, &heads);
        assert_eq!(back.iter().filter(|&&can| can).count(), if cut { snapshots } else { 7 });
        assert_eq!(back.last(), Some(&true), "the newest stays");
    }
}

#[test]
fn a_damaged_snapshot_is_not_kept() {
    let (disk, folder, mut journal) = started(Fsync::Never);
    let far = Some(at("boot", 1_000_000));
    let retention = Retention { horizon: far, horizon_bytes: u64::MAX };
    let mut keys = BTreeSet::new();
    for n in 0..4 {
        keys.insert((n, 5));
        append(&mut journal, &[(n, 5)]);
        let finished = snapshot(&mut journal, &keys, &retention);
        if n == 2 {
            let mut bytes = disk.files()[&finished.name].clone();
            *bytes.last_mut().unwrap() ^= 1;
            disk.put(&folder.dir().join(&finished.name), &bytes);
        }
    }
    assert!(names(&disk).ends_with(" snapshot-1 snapshot-2 snapshot-4"), "{}", names(&disk));
}

#[test]
fn a_rebase_removes_all_older_files() {
    for at in [head(0, 0), head(2, 99), head(3, 5), head(50, 1)] {
        let disk = SimDisk::default();
        let (_, heads) = crawl(&disk, 5, &keep_all());
        let mut folder = open(&disk);
        folder.recover(Target::Last, &mut Exact::default()).unwrap();
        let mut rebase = folder.rebase(at).unwrap();
        let keys = BTreeSet::from([(7, 7), (8, 8)]);
        for shard in ShardId::all() {
            rebase.write(shard, &shard_of(&keys, shard)).unwrap();
        }
        let position = rebase.finish().unwrap();
        assert_eq!(position.head, at);
        assert!(position.number > 5);
        let mut journal = folder.journal(position, Fsync::Never).unwrap();
        let last = append(&mut journal, &[(9, 9)]);
        drop((journal, folder));

        let mut folder = open(&disk);
        for head in &heads[1..] {
            let refused = folder.recover(Target::At(*head), &mut Exact::default());
            assert!(refused.is_err(), "{head} is gone");
        }
        let both = BTreeSet::from([(7, 7), (8, 8), (9, 9)]);
        assert_eq!(recover(&mut folder, Target::Last), (last, both));
        assert_eq!(recover(&mut folder, Target::At(at)), (position, keys));
    }
}

#[test]
fn the_error_names_the_best_head_that_can_be_loaded() {
    let disk = SimDisk::default();
    let (_, heads) = crawl(&disk, 3, &keep_all());
    let mut folder = open(&disk);
    let ahead = head(9, 9);
    let refused = folder.recover(Target::At(ahead), &mut Exact::default()).unwrap_err();
    assert!(matches!(refused, RecoveryError::Behind { missing: 6, .. }), "{refused}");
    assert_eq!(refused.best(), Some(heads[3]));
    let refused = folder.recover(Target::At(head(2, 1)), &mut Exact::default()).unwrap_err();
    assert_eq!(refused.best(), None, "another history");
}

#[test]
fn an_erased_folder_is_new() {
    let disk = SimDisk::default();
    crawl(&disk, 3, &keep_all());
    let mut folder = open(&disk);
    folder.announce(RandomId::new(1)).unwrap();
    folder.erase().unwrap();
    assert_eq!(names(&disk), "lock");
    assert!(folder.header().is_none() && folder.notes.runs.is_empty());
    folder.begin(&super::filter::spec(), RandomId::new(100), head(1, 1)).unwrap();
    assert_eq!(recover(&mut folder, Target::Last).0.head, head(1, 1));
}

/// Logs a batch and takes a snapshot at each of these moments, in a new run each time. The horizon
/// is 100 s before each moment. Returns the number of heads that the folder still leads to.
fn runs(moments: &[Moment]) -> usize {
    let disk = SimDisk::default();
    drop(begun(&disk, Head::START));
    let (mut keys, mut heads) = (BTreeSet::new(), vec![Head::START]);
    for (n, &now) in (0..).zip(moments) {
        let mut folder = open(&disk);
        let (last, _) = recover(&mut folder, Target::Last);
        let mut journal = folder.journal(last, Fsync::Never).unwrap();
        keys.insert((n, 5));
        heads.push(append(&mut journal, &[(n, 5)]).head);
        let horizon = now.before(Duration::from_secs(100));
        let retention = Retention { horizon, horizon_bytes: u64::MAX };
        snapshot_at(&mut journal, &keys, &retention, now);
    }
    can_go_back_to(&disk, &heads).into_iter().filter(|can| *can).count()
}

/// Ages of snapshots continue from run to run, until the machine restarts (step 7 of the proof in
/// ARCHITECTURE.md).
#[test]
fn snapshots_of_earlier_runs_keep_their_ages() {
    let moments: Vec<_> = (1..=8).map(|n| at("boot", 50 * n)).collect();
    // The snapshot at 250 s is 150 s old; the newest three are younger.
    assert_eq!(runs(&moments), 4);
}

#[test]
fn snapshots_from_before_a_restart_are_as_old_as_the_uptime_proves() {
    let before = (1..=4).map(|n| at("boot", 1000 * n));
    let after = |last| (1..=last).map(|n| at("another boot", 60 * n));
    let moments: Vec<_> = before.clone().chain(after(2)).collect();
    // Only 60 s are known, so all snapshots stay.
    assert_eq!(runs(&moments), 5);
    let moments: Vec<_> = before.chain(after(5)).collect();
    assert_eq!(runs(&moments), 3);
}

#[test]
fn a_clock_before_the_recorded_moments_makes_no_snapshot_older() {
    let moments = [1000, 2000, 3000, 10, 20, 30].map(|seconds| at("boot", seconds));
    assert_eq!(runs(&moments), 6);
}

#[test]
fn snapshots_of_one_boot_are_as_old_as_they_are() {
    let moments: Vec<_> = (1..=8).map(|n| at("boot", 1000 * n)).collect();
    assert_eq!(runs(&moments), 3);
}
