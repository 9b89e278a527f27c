//! Damaged files: flipped bits in every byte of every file, and every length of the last file.

use std::collections::BTreeSet;
use std::path::Path;

use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::{Lifetimes, ShardId};

use super::super::inspect::look_on;
use super::super::record::{HEAD, RecordHead, encoded_len};
use super::super::{
    AtRest, Change, Damage, Folder, OpenError, RecoveryError, Target, segment, snapshot,
};
use super::basic::{DIR, append, keep_all, started};
use super::filter::{Exact, Key, shard_of, write_all};
use super::fixture::{ADDS, LATE_ADDS, expected, heads, write};
use super::testing::SimDisk;
use crate::Moment;
use crate::head::{Head, Position};

/// Number of changed counts in a batch: its bytes.
const COUNTED: usize = 4;

fn open(disk: &SimDisk) -> Result<Folder, OpenError> {
    Folder::open_on(disk.dir())
}

/// Recovers on a copy, and returns the head and the keys.
fn recover(disk: &SimDisk, target: Target) -> Result<(Head, BTreeSet<Key>), RecoveryError> {
    let mut filter = Exact::default();
    let recovered = open(&disk.after_kill()).unwrap().recover(target, &mut filter)?;
    Ok((recovered.position.head, filter.keys))
}

/// Checks the keys of a filter that is recovered to the batch `head` with a torn log. Keys of adds
/// that were logged after the batch may be missing.
fn is_right(head: Head, keys: &BTreeSet<Key>) -> bool {
    let all = expected(head.seq);
    let is_behind = |key| LATE_ADDS.contains(key) || head.seq <= 2 && ADDS.contains(key);
    keys.is_subset(&all) && all.difference(keys).all(is_behind)
}

/// Step 11 of the proof in ARCHITECTURE.md: damage is refused.
#[test]
fn no_flipped_bit_is_loaded() {
    let disk = write();
    let heads = heads();
    let (last, middle) = (heads[8], heads[5]);
    for (name, bytes) in disk.files() {
        let follows = segment::follows(&name);
        // In a snapshot, flips a bit of nearly every byte, and recovers to a head for which the
        // snapshot is the newest usable one. In the log, flips two or three bits of each byte.
        let (targets, step) = match snapshot::seq(&name) {
            Some(seq) => (vec![heads[usize::try_from(seq).unwrap() + 1]], 9),
            None if follows.is_some() => (vec![last, middle], 3),
            None => (vec![], 1),
        };
        for bit in (0..8 * bytes.len()).step_by(step) {
            let flipped = disk.after_kill();
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            flipped.put(&Path::new(DIR).join(&name), &bytes);
            if name == "header" {
                let refused = open(&flipped).unwrap_err();
                assert!(matches!(refused, OpenError::Header(_)), "bit {bit}: {refused}");
                continue;
            }
            if name == "notes" {
                assert_eq!(open(&flipped).unwrap().notes.runs, [], "bit {bit}");
                let damages = look_on(&flipped.dir()).unwrap().damages;
                assert_eq!((damages.len(), &damages[0].file), (1, &name), "bit {bit}");
                let mut folder = open(&flipped).unwrap();
                let recovered = folder.recover(Target::Last, &mut Exact::default()).unwrap();
                assert_eq!(recovered.damaged, damages, "bit {bit}");
                continue;
            }
            for &target in &targets {
                match recover(&flipped, Target::At(target)) {
                    Ok((head, keys)) => {
                        assert_eq!(
                            (head, keys),
                            (target, expected(target.seq)),
                            "{name} bit {bit}"
                        );
                    }
                    // The log is damaged after the target, where it may have adds.
                    Err(RecoveryError::Damaged { damage, .. }) => {
                        assert_eq!(damage.file, name);
                        assert!(damage.offset <= bit as u64 / 8);
                    }
                    // The newest snapshot before the target needs the log from there to the target.
                    Err(RecoveryError::Behind {
                        end, missing, damage: Some(damage), best, ..
                    }) => {
                        let needed = if target == last { [7].as_slice() } else { &[4, 5] };
                        assert!(needed.contains(&follows.expect("a snapshot is not needed")));
                        assert_eq!(damage.file, name);
                        assert!(damage.offset <= bit as u64 / 8);
                        assert_eq!((best, end.seq + missing), (Some(end), target.seq));
                    }
                    // There is no older snapshot.
                    Err(RecoveryError::Beyond { damage: Some(damage), .. }) => {
                        assert_eq!((snapshot::seq(&name), &damage.file), (Some(0), &name));
                        assert!(damage.offset <= bit as u64 / 8);
                    }
                    Err(other) => panic!("{name} bit {bit}: {other}"),
                }
            }
        }
    }
}

/// Step 11 of the proof in ARCHITECTURE.md: a torn log is cut.
#[test]
fn a_log_torn_at_any_byte_counts_up_to_its_last_whole_record() {
    let disk = write();
    let heads = heads();
    let name = segment::name(7);
    let whole = disk.files()[&name].clone();
    // Bytes of batches 7 and 8. Each has 6 keys: two are text, and two have other lengths.
    let body = |seq: u64| -> usize {
        let keys = super::filter::fingerprints((0..6).map(|bit| (u8::try_from(seq).unwrap(), bit)));
        HEAD + keys.iter().map(encoded_len).sum::<usize>() + COUNTED
    };
    let ends = [56 + body(7), 56 + body(7) + body(8)];
    assert!(whole.len() > ends[1] + HEAD, "adds come last");
    for len in 0..whole.len() {
        // A loss of power can leave zeros from a block or a record on.
        let is_start = len % 64 == 0 || len == 56 || ends.contains(&len);
        for zeros in [0, if is_start { 200 } else { 0 }] {
            let torn = disk.after_kill();
            let mut bytes = whole[..len].to_vec();
            bytes.resize(len + zeros, 0);
            torn.put(&Path::new(DIR).join(&name), &bytes);
            let last = heads[6 + ends.iter().filter(|&&end| len >= end).count()];
            for &target in &heads[6..] {
                let result = recover(&torn, Target::At(target));
                if target.seq <= last.seq {
                    let (head, keys) = result.unwrap();
                    assert!(head == target && is_right(head, &keys), "{len} bytes");
                } else {
                    let Err(RecoveryError::Behind { end, missing, best, .. }) = result else {
                        panic!("{len} bytes: {result:?}")
                    };
                    assert_eq!((end, best, end.seq + missing), (last, Some(last), target.seq));
                }
            }
            let (head, keys) = recover(&torn, Target::Last).unwrap();
            assert!(head == last && is_right(head, &keys), "{len} bytes");
        }
    }
}

#[test]
fn missing_files_are_noticed() {
    let disk = write();
    let heads = heads();
    for (name, _) in disk.files() {
        let without = disk.after_kill();
        without.take(&Path::new(DIR).join(&name));
        if name == "header" {
            let refused = open(&without).unwrap_err();
            assert!(matches!(refused, OpenError::HeaderMissing { .. }), "{refused}");
            let rest = AtRest::open_on(&without.dir());
            assert!(matches!(rest, Err(OpenError::HeaderMissing { .. })));
            continue;
        }
        for &target in &heads {
            match recover(&without, Target::At(target)) {
                Ok((head, keys)) => assert!(head == target && is_right(head, &keys), "{name}"),
                Err(RecoveryError::Behind { best: Some(best), .. }) => {
                    let follows = segment::follows(&name).expect("older snapshots are there");
                    assert!(best.seq < target.seq && follows < target.seq + 1, "{name}");
                }
                Err(RecoveryError::Beyond { oldest, .. }) => {
                    assert!(snapshot::seq(&name) == Some(0) && oldest == heads[3]);
                }
                Err(other) => panic!("{name}: {other}"),
            }
        }
    }
}

#[test]
fn a_file_of_another_folder_is_refused() {
    // The same crawl under another id: whole files with correct checksums.
    let (own, other) = (write(), SimDisk::default());
    let mut folder = super::basic::open(&other);
    folder.begin(&super::filter::spec(), RandomId::new(77), heads()[0]).unwrap();
    drop(folder);
    for (name, bytes) in own.files() {
        if name != "header" && name != "lock" {
            other.put(&Path::new(DIR).join(name), &bytes);
        }
    }
    let refused = recover(&other, Target::Last).unwrap_err();
    let RecoveryError::NoSnapshot { damage: Some(damage) } = refused else { panic!("{refused}") };
    assert_eq!(damage.what, "the file belongs to another filter");
    // Files of the log of another crawl do not follow a snapshot of this one.
    let mut folder = super::basic::open(&other);
    folder.erase().unwrap();
    folder.begin(&super::filter::spec(), RandomId::new(77), heads()[0]).unwrap();
    drop(folder);
    other.put(&Path::new(DIR).join(segment::name(0)), &own.files()[&segment::name(0)]);
    let refused = recover(&other, Target::Last).unwrap_err();
    let RecoveryError::Damaged { damage, .. } = refused else { panic!("{refused}") };
    assert_eq!(damage.what, "the file belongs to another filter");
    // A renamed file is refused.
    for (name, bytes) in own.files() {
        let renamed = own.after_kill();
        renamed.take(&Path::new(DIR).join(&name));
        let new = match (segment::follows(&name), snapshot::seq(&name)) {
            (Some(follows), _) => segment::name(follows + 1),
            (_, Some(seq)) => snapshot::name(seq + 1),
            _ => continue,
        };
        renamed.put(&Path::new(DIR).join(&new), &bytes);
        let look = look_on(&renamed.dir()).unwrap();
        let is_told = |damage: &Damage| damage.file == new && damage.what == "the file was renamed";
        assert!(look.damages.iter().any(is_told), "{:?}", look.damages);
        for target in heads() {
            if let Ok((head, keys)) = recover(&renamed, Target::At(target)) {
                assert!(head == target && is_right(head, &keys), "{name}");
            }
        }
    }
}

#[test]
fn damage_before_the_replayed_records_does_not_matter() {
    let (disk, folder, mut journal) = started(Fsync::Never);
    append(&mut journal, &[(1, 1), (1, 2)]);
    let at = append(&mut journal, &[(2, 2)]);
    let mut writer = journal.snapshot_writer().unwrap();
    let keys = BTreeSet::from([(1, 1), (1, 2), (2, 2)]);
    write_all(&mut writer, &keys, at).unwrap();
    writer.finish(&keep_all(), Moment::now()).unwrap();
    let last = append(&mut journal, &[(3, 3)]);
    drop((journal, folder));
    let name = segment::name(0);
    let whole = disk.files()[&name].clone();
    let third = whole.len() - (HEAD + 21 + COUNTED);
    for at in 56..third {
        for len in [1, 8, 40] {
            let broken = disk.after_kill();
            let mut bytes = whole.clone();
            let end = third.min(at + len);
            bytes[at..end].iter_mut().for_each(|byte| *byte = !*byte);
            broken.put(&Path::new(DIR).join(&name), &bytes);
            let (head, found) = recover(&broken, Target::At(last.head)).unwrap();
            assert!(head == last.head && found.len() == 4 && found.is_superset(&keys), "{at}");
        }
    }
}

#[test]
fn a_record_of_a_later_version_is_refused_and_nothing_is_cut() {
    let disk = write();
    let name = segment::name(5);
    let mut bytes = disk.files()[&name].clone();
    bytes[56] = 6;
    let crc = crc32c::crc32c(&bytes[56..56 + HEAD - 4]);
    bytes[56 + HEAD - 4..56 + HEAD].copy_from_slice(&crc.to_le_bytes());
    disk.put(&Path::new(DIR).join(&name), &bytes);
    for target in [Target::Last, Target::At(heads()[5])] {
        let mut filter = Exact::default();
        let before = disk.files();
        // The newest snapshot is after the target.
        let result = open(&disk).unwrap().recover(target, &mut filter);
        if target == Target::Last {
            assert_eq!(filter.keys, expected(8));
            continue;
        }
        let Err(RecoveryError::Behind { damage: Some(damage), .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((&damage.file, damage.offset), (&name, 56));
        assert!(damage.to_string().ends_with("run the version that wrote it"), "{damage}");
        assert_eq!(disk.files().len(), before.len());
    }
}

#[test]
fn a_whole_record_in_the_wrong_place_is_refused() {
    let disk = write();
    let (name, heads) = (segment::name(7), heads());
    let whole = disk.files()[&name].clone();
    // Repeats batch 7 in place of batch 8, and batch 8 in place of batch 7.
    let head = RecordHead::decode(whole[56..].first_chunk().unwrap()).unwrap();
    let end = 56 + HEAD + head.length as usize;
    let (seventh, eighth) = (&whole[56..end], &whole[end..2 * end - 56]);
    for (records, last) in [([seventh, seventh], 7), ([eighth, eighth], 6), ([eighth, seventh], 6)]
    {
        let moved = disk.after_kill();
        let bytes = [&whole[..56], records[0], records[1]].concat();
        moved.put(&Path::new(DIR).join(&name), &bytes);
        assert!(recover(&moved, Target::At(heads[8])).is_err());
        let Err(RecoveryError::Damaged { damage, lost }) = recover(&moved, Target::Last) else {
            panic!("{last}")
        };
        assert_eq!((damage.file, lost.records), (name.clone(), 8 - last as u64));
        // After its end is given up, the log leads to the last batch that follows.
        open(&moved).unwrap().cut_at_damage().unwrap();
        let (head, keys) = recover(&moved, Target::Last).unwrap();
        assert!(head == heads[last] && is_right(head, &keys), "{head}");
    }
}

#[test]
fn a_snapshot_of_another_history_is_passed_over() {
    // Two crawls whose filters have the same id, and that have different batches.
    let crawl = |keys: [Key; 2], from_start: bool| {
        let (disk, folder, mut journal) = started(Fsync::Never);
        let at = append(&mut journal, &keys[..1]);
        let mut writer = journal.snapshot_writer().unwrap();
        for shard in ShardId::all() {
            // The first shard may be at the start of the history, a position that both crawls have.
            let at = if from_start && shard.index() == 0 { Position::START } else { at };
            let saved = shard_of(&BTreeSet::from([keys[0]]), shard);
            writer.sections.write(shard, at, &saved, &mut || Ok(())).unwrap();
        }
        writer.finish(&keep_all(), Moment::now()).unwrap();
        let last = append(&mut journal, &keys[1..]);
        drop((journal, folder));
        (disk, last.head)
    };
    for from_start in [false, true] {
        let (one, last) = crawl([(1, 1), (2, 2)], from_start);
        let (two, _) = crawl([(3, 3), (4, 4)], from_start);
        let name = snapshot::name(1);
        one.put(&Path::new(DIR).join(&name), &two.files()[&name]);
        let expected = (last, BTreeSet::from([(1, 1), (2, 2)]));
        assert_eq!(recover(&one, Target::At(last)).unwrap(), expected);
        assert_eq!(recover(&one, Target::Last).unwrap(), expected);
    }
}

/// Flips bits of a log that has only adds, as an import or the pipe leaves it, and the zeros of a
/// lost block. Only a record that nothing follows, and that the disk never got, is cut off.
#[test]
fn a_damaged_log_of_adds_is_refused_and_stays_on_the_disk() {
    let (disk, mut folder, mut journal) = started(Fsync::Always);
    let adds: Vec<Key> = (0..6).map(|byte| (byte, byte.into())).collect();
    for add in &adds {
        let mut group = journal.group();
        let add = super::filter::fingerprints([*add]);
        group.change(Change::Add, &add, &Lifetimes::default()).unwrap();
        group.finish().unwrap();
    }
    drop((journal, folder));
    let name = segment::name(0);
    let whole = disk.files()[&name].clone();
    let damaged = |at: usize, change: &dyn Fn(&mut [u8])| {
        let damaged = disk.after_kill();
        let mut bytes = whole.clone();
        change(&mut bytes[at..]);
        damaged.put(&Path::new(DIR).join(&name), &bytes);
        (damaged, bytes)
    };
    let lens = adds.iter().map(|&add| HEAD + encoded_len(&super::filter::fingerprints([add])[0]));
    let starts = lens.scan(56, |end, len| Some(std::mem::replace(end, *end + len)));
    let starts = starts.collect::<Vec<usize>>();
    for at in 56..whole.len() {
        let (flipped, bytes) = damaged(at, &|bytes| bytes[0] ^= 1 << (at % 8));
        let Err(RecoveryError::Damaged { damage, lost }) = recover(&flipped, Target::Last) else {
            panic!("{at}")
        };
        let record = starts.iter().rposition(|&start| start <= at).unwrap();
        assert_eq!(damage.offset, starts[record] as u64);
        assert_eq!((damage.file, lost.records), (name.clone(), 6 - record as u64));
        folder = open(&flipped).unwrap();
        assert!(folder.damage().unwrap().is_some());
        folder.cut_at_damage().unwrap();
        drop(folder);
        assert_eq!(flipped.files()[&format!("damaged-1-{name}")], bytes);
        let (_, keys) = recover(&flipped, Target::Last).unwrap();
        assert_eq!(keys, adds[..record].iter().copied().collect(), "{at}");
    }
    // A later record proves that the lost block was once on the disk.
    let (holed, _) = damaged(64, &|bytes| bytes[..64].fill(0));
    assert!(matches!(recover(&holed, Target::Last), Err(RecoveryError::Damaged { .. })));
    let (torn, _) = damaged(starts[5], &|bytes| bytes.fill(0));
    assert_eq!(recover(&torn, Target::Last).unwrap().1, adds[..5].iter().copied().collect());
}
