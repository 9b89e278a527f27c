//! Checkpoints of imports in a folder.

use super::super::Checkpoint;
use super::super::header::{CHECKPOINTS_MAX, NOTES};
use super::basic::{begun, open};
use super::filter::spec;
use super::testing::{Fault, SimDisk};
use crate::head::Head;
use urlseen_filter::id::RandomId;

fn checkpoint(source: &str, at: u64) -> Checkpoint {
    Checkpoint { source: source.to_owned(), version: "1".to_owned(), at, count: at / 22 }
}

#[test]
fn the_next_run_reads_the_last_checkpoint_of_each_source() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    assert_eq!(folder.notes.checkpoints, []);
    folder.note(|notes| notes.add(&[checkpoint("a", 22), checkpoint("b\n\"", 44)])).unwrap();
    folder.note(|notes| notes.add(&[checkpoint("a", 66)])).unwrap();
    drop(folder);
    assert_eq!(open(&disk).notes.checkpoints, [checkpoint("b\n\"", 44), checkpoint("a", 66)]);
    let many: Vec<_> =
        (0..CHECKPOINTS_MAX as u64).map(|at| checkpoint(&at.to_string(), at)).collect();
    open(&disk).note(|notes| notes.add(&many)).unwrap();
    assert_eq!(open(&disk).notes.checkpoints, many);
    open(&disk).note(|notes| notes.checkpoints.clear()).unwrap();
    assert_eq!(open(&disk).notes.checkpoints, []);
    open(&disk).note(|notes| notes.checkpoints.clear()).unwrap();
}

#[test]
fn checkpoints_of_another_filter_are_ignored() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    folder.note(|notes| notes.add(&[checkpoint("a", 22)])).unwrap();
    let file = folder.dir.read(NOTES).unwrap().unwrap();
    folder.erase().unwrap();
    assert_eq!(folder.dir.read(NOTES).unwrap(), None);
    folder.begin(&spec(), RandomId::new(100), Head::START).unwrap();
    // Happens if a copy of the folder is restored in parts.
    folder.dir.write_aside(NOTES, &file).unwrap();
    folder.dir.replace(NOTES).unwrap();
    drop(folder);
    assert_eq!(open(&disk).notes.checkpoints, []);
}

#[test]
fn a_failed_write_changes_no_note() {
    for step in 0..2 {
        let disk = SimDisk::default();
        let mut folder = begun(&disk, Head::START);
        folder.note(|notes| notes.add(&[checkpoint("a", 22)])).unwrap();
        disk.fault_at(step, Fault::Full);
        folder.note(|notes| notes.add(&[checkpoint("a", 66)])).unwrap_err();
        disk.mend();
        drop(folder);
        assert!(disk.files().keys().all(|name| !name.contains(".tmp")), "no room is taken");
        assert_eq!(open(&disk).notes.checkpoints, [checkpoint("a", 22)]);
    }
}
