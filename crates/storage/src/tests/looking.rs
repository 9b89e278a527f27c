//! Inspection of a folder and verdicts of its filter. Neither changes the folder.

use std::collections::BTreeSet;
use std::path::Path;

use urlseen_filter::choice::Fsync;
use urlseen_filter::{FilterKind, KeyHash, ShardId, Verdict};

use super::super::inspect::look_on;
use super::super::{AtRest, Folder, OpenError, Target};
use super::basic::{DIR, append, begun, keep_all, started};
use super::filter::{Key, batch, fingerprint, fingerprints, spec};
use super::testing::SimDisk;
use crate::Moment;
use crate::head::{Head, Position};

fn at_rest(disk: &SimDisk) -> Result<AtRest, OpenError> {
    AtRest::open_on(&disk.dir())
}

/// A folder with a real filter: a snapshot of some keys, and a log after it.
fn crawled(disk: &SimDisk) -> (Folder, super::super::Journal, Vec<Key>) {
    let mut folder = begun(disk, Head::START);
    let start = Position { number: 0, head: Head::START };
    let mut journal = folder.journal(start, Fsync::Never).unwrap();
    let keys: Vec<Key> = (0..60).map(|n| (n, 8 * u16::from(n))).collect();
    append(&mut journal, &keys[..20]);
    journal.append_adds(&fingerprints(keys[20..30].iter().copied())).unwrap();
    let at = append(&mut journal, &keys[30..40]);
    journal.roll().unwrap();
    let filter = filter_of(&folder, &keys[..40]);
    let mut writer = journal.snapshot_writer().unwrap();
    for shard in ShardId::all() {
        writer.sections.write(shard, at, &*filter.save(shard, Vec::new()), &mut || Ok(())).unwrap();
    }
    writer.finish(&keep_all(), Moment::now()).unwrap();
    append(&mut journal, &keys[40..50]);
    append(&mut journal, &keys[50..]);
    (folder, journal, keys)
}

/// Returns the folder's filter with these keys.
fn filter_of(folder: &Folder, keys: &[Key]) -> Box<dyn FilterKind> {
    let mut filter = folder.header().unwrap().spec.filter.parameters.build().unwrap();
    filter.insert(&key_hashes(folder, keys)).unwrap();
    filter
}

fn key_hashes(folder: &Folder, keys: &[Key]) -> Vec<KeyHash> {
    let hasher = folder.header().unwrap().spec.filter.parameters.hasher();
    keys.iter().map(|&key| hasher.key_hash(&fingerprint(key))).collect()
}

#[test]
fn a_look_shows_the_content_of_the_folder() {
    let disk = SimDisk::default();
    let new = look_on(&disk.dir()).unwrap();
    assert_eq!((new.header, new.is_held, new.last, new.bytes), (None, false, None, 0));
    let (folder, journal, _) = crawled(&disk);
    let files = disk.files();
    let held = look_on(&disk.dir()).unwrap();
    assert_eq!(held.holder.unwrap().pid, std::process::id());
    let last = journal.position();
    drop((folder, journal));
    let look = look_on(&disk.dir()).unwrap();
    assert!(!look.is_held);
    assert_eq!(look.header.unwrap().spec, spec());
    assert_eq!(look.last, Some(last));
    assert_eq!(look.bytes, files.values().map(|file| file.len() as u64).sum::<u64>());
    assert_eq!(look.damages, []);
    let snapshots: Vec<_> =
        look.snapshots.iter().map(|each| (each.last.number, each.keys())).collect();
    assert_eq!(snapshots, [(0, 0), (3, 40)]);
    let segments: Vec<_> = look
        .segments
        .iter()
        .map(|each| (each.follows.number, each.last.number, each.records, each.fingerprints))
        .collect();
    assert_eq!(segments, [(0, 3, 3, 40), (3, 5, 2, 20)]);
    assert_eq!(disk.files(), files, "nothing was written");
}

#[test]
fn a_look_names_the_damaged_file() {
    let disk = SimDisk::default();
    drop(crawled(&disk));
    let files = disk.files();
    for (name, bytes) in files.iter().filter(|(name, _)| name.contains('-')) {
        let broken = disk.after_kill();
        let mut bytes = bytes.clone();
        let middle = bytes.len() - 30;
        bytes[middle] ^= 1;
        broken.put(&Path::new(DIR).join(name), &bytes);
        let look = look_on(&broken.dir()).unwrap();
        assert_eq!(look.damages[0].file, *name, "{:?}", look.damages);
    }
}

#[test]
fn a_folder_at_rest_gives_the_verdicts_of_its_filter() {
    let disk = SimDisk::default();
    let (folder, journal, keys) = crawled(&disk);
    let Err(OpenError::Locked { holder: Some(_), .. }) = at_rest(&disk) else {
        panic!("a journal writes to it")
    };
    let last = journal.position().head;
    drop(journal);
    let all: Vec<Key> = (0..=255).flat_map(|n| [(n, 8 * u16::from(n)), (n, 3)]).collect();
    let mut due = Vec::new();
    filter_of(&folder, &keys).test(&key_hashes(&folder, &all), &mut due);
    drop(folder);
    let files = disk.files();
    let rest = at_rest(&disk).unwrap();
    let read = Folder::open_on(disk.dir());
    assert!(matches!(read, Err(OpenError::Locked { holder: None, .. })), "no journal writes to it");
    at_rest(&disk).unwrap();
    let known: BTreeSet<_> = keys.iter().copied().collect();
    let asked = fingerprints(all.iter().copied());
    for target in [Target::At(last), Target::Last] {
        let verdicts = rest.verdicts(&asked, target).unwrap();
        assert_eq!(verdicts, due, "{target:?}");
        for (key, verdict) in all.iter().zip(verdicts) {
            assert!(verdict == Verdict::Seen || !known.contains(key));
        }
    }
    assert_eq!(rest.verdicts(&[], Target::Last).unwrap(), []);
    assert_eq!(disk.files(), files, "nothing was written");
}

#[test]
fn batches_beyond_the_target_are_unseen_at_rest() {
    let (disk, folder, mut journal) = started(Fsync::Never);
    let first = append(&mut journal, &[(1, 1)]);
    append(&mut journal, &[(2, 2)]);
    journal.append_adds(&fingerprints([(3, 3)])).unwrap();
    journal.append(&batch([(4, 4)])).unwrap();
    drop((journal, folder));
    let asked = fingerprints([(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
    let rest = at_rest(&disk).unwrap();
    let verdicts = |target| {
        let verdicts = rest.verdicts(&asked, target).unwrap();
        verdicts.iter().map(|&verdict| verdict == Verdict::Seen).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(Target::At(first.head)), [true, false, true, false, false]);
    assert_eq!(verdicts(Target::Last), [true, true, true, true, false]);
}
