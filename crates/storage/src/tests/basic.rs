//! Uses of a folder, on a disk without faults.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

use urlseen_filter::Lifetimes;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_fingerprint::Fingerprint;

use super::super::{Change, Folder, Journal, OpenError, Record, RecoveryError, Retention, Target};
use super::filter::{Exact, Key, batch, head, spec, write_all};
use super::testing::SimDisk;
use crate::head::{Head, Position};

pub(super) const DIR: &str = super::testing::DIR;

pub(super) fn open(disk: &SimDisk) -> Folder {
    Folder::open_on(disk.dir()).unwrap()
}

pub(super) fn begun(disk: &SimDisk, at: Head) -> Folder {
    let mut folder = open(disk);
    folder.begin(&spec(), RandomId::new(99), at).unwrap();
    folder
}

/// Begins a folder, and opens its log.
pub(super) fn started(fsync: Fsync) -> (SimDisk, Folder, Journal) {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    let journal = folder.journal(Position::START, fsync).unwrap();
    (disk, folder, journal)
}

/// Methods that write one record, as a group of its own.
impl Journal {
    pub(super) fn append(&mut self, added: &[Fingerprint]) -> io::Result<Record> {
        let mut group = self.group();
        group.append(added, &Lifetimes::default(), &[])?;
        Ok(group.finish()?.remove(0))
    }

    pub(super) fn append_adds(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        let mut group = self.group();
        group.change(Change::Add, fingerprints, &Lifetimes::default())?;
        let at = group.logged().at;
        group.finish().map(|_| at)
    }

    pub(super) fn append_forgets(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        let mut group = self.group();
        group.change(Change::Forget, fingerprints, &Lifetimes::default())?;
        let at = group.logged().at;
        group.finish().map(|_| at)
    }
}

pub(super) fn append(journal: &mut Journal, keys: &[Key]) -> Position {
    let base = journal.position().head;
    let logged = journal.append(&batch(keys.iter().copied())).unwrap();
    assert_eq!(logged.base, base);
    logged.logged.at
}

pub(super) fn recover(folder: &mut Folder, target: Target) -> (Position, BTreeSet<Key>) {
    let mut filter = Exact::default();
    let recovered = folder.recover(target, &mut filter).unwrap();
    (recovered.position, filter.keys)
}

pub(super) fn keep_all() -> Retention {
    Retention { horizon: None, horizon_bytes: u64::MAX }
}

#[test]
fn a_new_folder_recovers_to_where_it_was_begun() {
    let disk = SimDisk::default();
    let at = head(7, 70);
    drop(begun(&disk, at));
    let mut folder = open(&disk);
    for target in [Target::At(at), Target::Last] {
        let expected = (Position { number: 0, head: at }, BTreeSet::new());
        assert_eq!(recover(&mut folder, target), expected);
    }
    let mut recover_at = |at| folder.recover(Target::At(at), &mut Exact::default()).unwrap_err();
    assert!(matches!(
        recover_at(head(9, 90)),
        RecoveryError::Behind { missing: 2, end, best: Some(best), .. } if end == at && best == at
    ));
    let beyond = recover_at(head(6, 60));
    assert!(beyond.to_string().contains("goes no further back than batch 7"), "{beyond}");
    assert!(matches!(beyond, RecoveryError::Beyond { oldest, .. } if oldest == at));
    assert!(matches!(
        recover_at(head(7, 71)),
        RecoveryError::OtherHistory { ours, .. } if ours == at
    ));
    let fresh = open(&SimDisk::default()).recover(Target::Last, &mut Exact::default());
    assert!(matches!(fresh, Err(RecoveryError::Fresh)));
}

#[test]
fn a_recovery_is_refused_while_the_log_or_a_snapshot_is_written() {
    let (disk, mut folder, mut journal) = started(Fsync::Never);
    let at = append(&mut journal, &[(1, 1)]);
    let mut writer = journal.snapshot_writer().unwrap();
    write_all(&mut writer, &BTreeSet::from([(1, 1)]), at).unwrap();
    let files = disk.files();
    let refuses = |folder: &mut Folder| {
        let mut filter = Exact::default();
        let recovered = folder.recover(Target::At(Head::START), &mut filter).unwrap_err();
        assert!(recovered.to_string().contains("still open"), "{recovered}");
        assert_eq!(filter, Exact::default());
        assert!(folder.rebase(Head::START).is_err() && folder.erase().is_err());
        assert!(folder.cut_at_damage().is_err());
        assert_eq!(disk.files(), files, "nothing is changed");
    };
    refuses(&mut folder);
    drop(journal);
    refuses(&mut folder);
    drop(writer);
    assert!(disk.files().keys().all(|name| !name.contains(".tmp")), "nothing is left of it");
    assert_eq!(recover(&mut folder, Target::Last), (at, BTreeSet::from([(1, 1)])));
}

#[test]
fn a_second_process_cannot_open_the_folder() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    let other = Folder::open_on(disk.dir()).unwrap_err();
    let OpenError::Locked { holder: Some(holder), .. } = &other else { panic!("{other:?}") };
    assert_eq!(holder.pid, std::process::id());
    assert!(other.to_string().contains(&format!("process {}", holder.pid)), "{other}");
    // The journal holds the lock, too.
    let start = Position { number: 0, head: Head::START };
    let journal = folder.journal(start, Fsync::Never).unwrap();
    drop(folder);
    assert!(Folder::open_on(disk.dir()).is_err());
    drop(journal);
    open(&disk);
}

#[test]
fn the_newest_runs_are_recorded() {
    let disk = SimDisk::default();
    let mut folder = open(&disk);
    assert_eq!(folder.notes.runs, []);
    let mut many: Vec<_> = (1..=70).map(RandomId::new).collect();
    for &run in &many {
        let earlier = folder.announce(run).unwrap();
        assert!(!earlier.contains(&run) && earlier.len() <= 64);
        assert_eq!(folder.announce(run).unwrap(), earlier[..earlier.len().min(63)]);
    }
    many.reverse();
    assert_eq!(folder.notes.runs, many[..64]);
    drop(folder);
    assert_eq!(open(&disk).notes.runs, many[..64]);
}

#[test]
fn a_journal_is_opened_only_at_the_end_of_the_log() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    let start = Position { number: 0, head: Head::START };
    let elsewhere = Position { number: 1, head: Head::START };
    assert!(folder.journal(elsewhere, Fsync::Never).is_err());
    let mut journal = folder.journal(start, Fsync::Never).unwrap();
    assert!(folder.journal(start, Fsync::Never).is_err(), "there is one already");
    assert_eq!(append(&mut journal, &[(1, 1)]).number, 1);
}

#[test]
fn a_log_that_is_synced_at_intervals_is_on_the_platter_soon() {
    let (disk, _folder, mut journal) = started(Fsync::Interval);
    journal.start_syncing(Duration::from_millis(1)).unwrap();
    let last = append(&mut journal, &[(1, 1)]);
    let deadline = SystemTime::now() + Duration::from_secs(20);
    let mut random = super::random::Random::new(1);
    let mut lost = || {
        let mut folder = open(&disk.after_power_loss(&mut random.draw()));
        folder.recover(Target::At(last.head), &mut Exact::default()).is_err()
    };
    while (0..20).any(|_| lost()) {
        assert!(SystemTime::now() < deadline, "it was never synced");
    }
}

/// Fails if the daemon would not notice that a sync of the log hangs. The syncs are one before each
/// commit or at an interval, and one in a recovery.
#[test]
fn each_sync_of_the_log_is_a_request_to_the_disk() {
    for fsync in [Fsync::Always, Fsync::Interval] {
        let (disk, folder, mut journal) = started(fsync);
        if fsync == Fsync::Interval {
            journal.start_syncing(Duration::from_millis(1)).unwrap();
        }
        append(&mut journal, &[(1, 1)]);
        let deadline = SystemTime::now() + Duration::from_secs(20);
        while folder.requests().log_syncs().count() == 0 {
            assert!(SystemTime::now() < deadline, "{fsync:?}: no request");
        }
        drop((journal, folder));
        let mut folder = open(&disk.after_kill());
        recover(&mut folder, Target::Last);
        assert!(folder.requests().log_syncs().count() > 0, "{fsync:?}: no request of the recovery");
    }
}
