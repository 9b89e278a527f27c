//! Checkpoints of imports in a folder.

use super::super::Checkpoint;
use super::super::imports::{CHECKPOINTS_MAX, NAME};
use super::basic::{begun, open};
use super::filter::spec;
use super::sim::SimDisk;
use crate::storage::head::Head;

fn checkpoint(source: &str, at: u64) -> Checkpoint {
    Checkpoint { source: source.to_owned(), version: "1".to_owned(), at, count: at / 22 }
}

#[test]
fn the_next_run_reads_the_last_checkpoint_of_each_source() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    assert_eq!(folder.checkpoints(), []);
    folder.record_checkpoints(&[checkpoint("a", 22), checkpoint("b\n\"", 44)]).unwrap();
    folder.record_checkpoints(&[checkpoint("a", 66)]).unwrap();
    drop(folder);
    assert_eq!(open(&disk).checkpoints(), [checkpoint("b\n\"", 44), checkpoint("a", 66)]);
    let many: Vec<_> =
        (0..CHECKPOINTS_MAX as u64).map(|at| checkpoint(&at.to_string(), at)).collect();
    open(&disk).record_checkpoints(&many).unwrap();
    assert_eq!(open(&disk).checkpoints(), many);
    open(&disk).drop_checkpoints().unwrap();
    assert_eq!(open(&disk).checkpoints(), []);
    open(&disk).drop_checkpoints().unwrap();
}

#[test]
fn checkpoints_of_another_filter_are_ignored() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    folder.record_checkpoints(&[checkpoint("a", 22)]).unwrap();
    let file = folder.dir.read(NAME).unwrap().unwrap();
    folder.erase().unwrap();
    assert_eq!(folder.dir.read(NAME).unwrap(), None);
    folder.begin(&spec(), 100, Head::START).unwrap();
    // Happens if a copy of the folder is restored in parts.
    folder.dir.write_aside(NAME, &file).unwrap();
    folder.dir.replace(NAME).unwrap();
    assert_eq!(folder.checkpoints(), []);
}

#[test]
fn a_note_with_a_flipped_bit_is_ignored() {
    let disk = SimDisk::default();
    let mut folder = begun(&disk, Head::START);
    folder.record_checkpoints(&[checkpoint("a", 22)]).unwrap();
    let file = folder.dir.read(NAME).unwrap().unwrap();
    for bit in 0..8 * file.len() {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        folder.dir.write_aside(NAME, &damaged).unwrap();
        folder.dir.replace(NAME).unwrap();
        assert_eq!(folder.checkpoints(), [], "bit {bit}");
    }
}
