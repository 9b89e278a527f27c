//! The same on the file system of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use super::super::{AtRest, Folder, Log as _, OpenError, Target, look};
use super::basic::{append, keep_all, recover};
use super::filter::{batch, fingerprints, pins, shard_of, write_all};
use crate::filter::ShardId;
use crate::filter::choice::Fsync;
use crate::storage::head::{Head, Position};

const START: Position = Position { number: 0, head: Head::START };

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_folder_lives_on_a_real_disk() {
    for fsync in [Fsync::Always, Fsync::Interval, Fsync::Never] {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("storage/demo");
        let mut folder = Folder::open(&dir).unwrap();
        folder.begin(&pins(), 5, Head::START).unwrap();
        folder.record_runs(&[1, 2]).unwrap();
        assert_eq!(folder.runs(), [1, 2]);
        let mut journal = folder.journal(START, fsync).unwrap();
        let first = append(&mut journal, &[(1, 1)]);
        journal.append_adds(&fingerprints([(2, 2)])).unwrap();
        let mut writer = folder.snapshot_writer().unwrap();
        write_all(&mut writer, &BTreeSet::from([(1, 1), (2, 2)]), first).unwrap();
        writer.finish(&journal.handle(), &keep_all()).unwrap();
        journal.roll().unwrap();
        append(&mut journal, &[(3, 3)]);
        journal.append_adds(&fingerprints([(4, 4)])).unwrap();
        let position = journal.close(first.head).unwrap();
        assert_eq!(position, Position { number: 3, head: first.head });

        assert!(matches!(Folder::open(&dir), Err(OpenError::Locked { holder: Some(_), .. })));
        assert!(matches!(AtRest::open(&dir), Err(OpenError::Locked { holder: Some(_), .. })));
        assert!(look(&dir).unwrap().is_held);
        drop(folder);
        assert_eq!(mode(&dir), 0o700);
        for file in fs::read_dir(&dir).unwrap() {
            let file = file.unwrap();
            assert_eq!(mode(&file.path()), 0o600, "{file:?}");
        }
        fs::write(dir.join("snapshot.tmp"), "half").unwrap();
        assert_eq!(AtRest::open(&dir).unwrap().header().unwrap().filter(), 5);
        let mut folder = Folder::open(&dir).unwrap();
        assert!(!dir.join("snapshot.tmp").exists());
        assert_eq!(folder.runs(), [1, 2]);
        let expected = BTreeSet::from([(1, 1), (2, 2), (4, 4)]);
        assert_eq!(recover(&mut folder, Target::At(first.head)), (position, expected));
        assert!(look(&dir).unwrap().damages.is_empty());
    }
}

#[test]
fn a_copy_of_a_folder_has_its_memory_and_not_its_lease() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    let mut folder = Folder::open(&one).unwrap();
    folder.begin(&pins(), 5, Head::START).unwrap();
    folder.record_runs(&[1]).unwrap();
    fs::create_dir(&two).unwrap();
    for file in fs::read_dir(&one).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), two.join(file.file_name())).unwrap();
    }
    let mut copy = Folder::open(&two).unwrap();
    assert_eq!(copy.runs(), [0; 0]);
    assert_eq!(recover(&mut copy, Target::Last).0, START);
}

#[test]
fn a_snapshot_is_taken_by_another_thread_while_the_log_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(scratch.path()).unwrap();
    folder.begin(&pins(), 5, Head::START).unwrap();
    let mut journal = folder.journal(START, Fsync::Interval).unwrap();
    let mut keys = BTreeSet::new();
    for bit in 0..20 {
        journal.roll().unwrap();
        let mut writer = folder.snapshot_writer().unwrap();
        let handle = journal.handle();
        let (tell, told) = mpsc::channel::<(BTreeSet<_>, Position)>();
        let work = thread::spawn(move || {
            for shard in ShardId::all() {
                let (keys, at) = told.recv().unwrap();
                let (count, bytes) = shard_of(&keys, shard);
                writer.write(shard, count, at, &bytes).unwrap();
            }
            writer.finish(&handle, &keep_all()).unwrap()
        });
        for shard in 0..=u8::MAX {
            let base = journal.position().head;
            journal.append(base, &batch([(shard, bit)])).unwrap();
            keys.insert((shard, bit));
            tell.send((keys.clone(), journal.position())).unwrap();
        }
        assert_eq!(
            work.join().unwrap().name,
            format!("snapshot-{:020}", 256 * (u64::from(bit) + 1))
        );
    }
    let last = journal.position();
    drop((journal, folder));
    assert_eq!(recover(&mut Folder::open(scratch.path()).unwrap(), Target::Last), (last, keys));
}
