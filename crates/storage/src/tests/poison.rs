//! Failures of the disk while the log is written. The log then refuses all records, and names the
//! first failure.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use urlseen_filter::choice::Fsync;

use super::super::{Journal, Target};
use super::basic::{append, keep_all, open, recover, started};
use super::filter::{Exact, batch, fingerprints, write_all};
use super::testing::Fault;
use crate::Moment;
use crate::head::Head;

/// Checks that the log refuses every call, for this reason.
fn refuses(journal: &mut Journal, reason: &str) {
    for refused in [
        journal.append(&batch([(9, 9)])).unwrap_err(),
        journal.append_adds(&fingerprints([(9, 9)])).unwrap_err(),
        journal.roll().unwrap_err(),
        journal.cut(Head::START).unwrap_err(),
        journal.sync().unwrap_err(),
        journal.unsynced.sync_to(1).unwrap_err(),
    ] {
        let refused = refused.to_string();
        assert!(refused.contains(reason) && refused.contains("start again"), "{refused}");
    }
}

#[test]
fn after_a_failed_write_the_log_refuses_records_and_is_unchanged() {
    for (fault, reason) in [(Fault::Failing, "input/output error"), (Fault::Full, "no storage")] {
        let (disk, folder, mut journal) = started(Fsync::Never);
        let first = append(&mut journal, &[(1, 1)]);
        let files = disk.files();
        disk.fault_at(0, fault);
        assert!(journal.append(&batch([(2, 2)])).is_err());
        disk.mend();
        refuses(&mut journal, reason);
        assert_eq!(disk.files(), files, "a half-written record is cut off again");
        drop((journal, folder));
        assert_eq!(recover(&mut open(&disk), Target::Last), (first, BTreeSet::from([(1, 1)])));
    }
}

#[test]
fn after_a_failed_sync_the_log_refuses_records() {
    let (disk, _folder, mut journal) = started(Fsync::Always);
    disk.fault_at(1, Fault::Failing);
    assert!(journal.append(&batch([(1, 1)])).is_err());
    refuses(&mut journal, "input/output error");
}

#[test]
fn after_a_failed_sync_at_intervals_the_log_refuses_records() {
    let (disk, _folder, mut journal) = started(Fsync::Interval);
    append(&mut journal, &[(1, 1)]);
    disk.fault_at(0, Fault::Failing);
    journal.start_syncing(Duration::from_millis(1)).unwrap();
    let deadline = SystemTime::now() + Duration::from_secs(20);
    while journal.append(&batch([])).is_ok() {
        assert!(SystemTime::now() < deadline, "the failure went unnoticed");
    }
    refuses(&mut journal, "error");
}

#[test]
fn after_a_failed_snapshot_the_log_continues() {
    let count = |fault: Option<usize>| {
        let (disk, folder, mut journal) = started(Fsync::Always);
        let at = append(&mut journal, &[(1, 1)]);
        let before = disk.steps();
        if let Some(step) = fault {
            disk.fault_at(step, Fault::Full);
        }
        let write = || {
            let mut writer = journal.snapshot_writer()?;
            write_all(&mut writer, &BTreeSet::from([(1, 1)]), at)?;
            writer.finish(&keep_all(), Moment::now())
        };
        let is_written = write().is_ok();
        let steps = disk.steps() - before;
        disk.mend();
        assert!(
            disk.files().keys().all(|name| !name.contains(".tmp")),
            "the unfinished file was removed"
        );
        let last = append(&mut journal, &[(2, 2)]);
        assert!(journal.snapshot_writer().is_ok(), "another may be tried");
        drop((journal, folder));
        let expected = (last, BTreeSet::from([(1, 1), (2, 2)]));
        assert_eq!(recover(&mut open(&disk), Target::Last), expected);
        (is_written, steps)
    };
    let (is_written, steps) = count(None);
    assert!(is_written && steps > 3);
    let written: Vec<_> = (0..steps).map(|step| count(Some(step)).0).collect();
    assert!(!written[0] && !written[1], "a full disk stops the first steps");
}

#[test]
fn the_log_continues_in_the_old_file_if_no_new_one_can_be_made() {
    for step in 0..2 {
        let (disk, folder, mut journal) = started(Fsync::Always);
        append(&mut journal, &[(1, 1)]);
        disk.fault_at(step, Fault::Full);
        assert!(journal.roll().is_err());
        disk.mend();
        let at = append(&mut journal, &[(2, 2)]);
        // The half-made file does not mislead a replay that starts after it.
        let mut writer = journal.snapshot_writer().unwrap();
        write_all(&mut writer, &BTreeSet::from([(1, 1), (2, 2)]), at).unwrap();
        let snapshot = writer.finish(&keep_all(), Moment::now()).unwrap().name;
        append(&mut journal, &[(3, 3)]);
        journal.roll().unwrap();
        let last = append(&mut journal, &[(4, 4)]);
        drop((journal, folder));
        let mut filter = Exact::default();
        let recovered = open(&disk).recover(Target::At(last.head), &mut filter).unwrap();
        assert_eq!((recovered.position, recovered.snapshot), (last, snapshot), "step {step}");
        assert_eq!(filter.keys, BTreeSet::from([(1, 1), (2, 2), (3, 3), (4, 4)]));
    }
}
