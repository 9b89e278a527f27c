//! Damaged storage folders. The input is a byte of options, and changes of 8 bytes each to the
//! files of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use urlseen_filter::Generation;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::limit::Counted;
use urlseen_filter::{FilterSpec, Lifetime, Lifetimes, ShardId};
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::testing::{self, SimDisk};
use urlseen_storage::{
    AtRest, Change, Folder, Head, Journal, Moment, Position, RecoveryError, Restore, Retention,
    Section, StorageSpec, Target,
};

/// Folders before the changes.
static FOLDERS: LazyLock<[Undamaged; 2]> = LazyLock::new(|| {
    [Undamaged::write("native", None), Undamaged::write("two-choice", Some("30d"))]
});

/// Greatest number of changes to a folder.
const CHANGES: usize = 12;

pub fn check(input: &[u8]) {
    let Some((&options, changes)) = input.split_first() else { return };
    let folder = &FOLDERS[usize::from(options & 1)];
    let disk = folder.disk.after_kill();
    let accepts_any_crc = options & 2 != 0;
    for change in changes.as_chunks::<8>().0.iter().take(CHANGES) {
        let Some((name, mut bytes)) = changed(change, &disk.files()) else { continue };
        if accepts_any_crc {
            mend_text(&mut bytes);
        }
        disk.put(&Path::new(testing::DIR).join(name), &bytes);
    }
    if accepts_any_crc {
        testing::with_any_crc(|| {
            read(&disk);
            recover(&disk);
        });
    } else {
        read(&disk);
        let seen = recover(&disk);
        assert!(seen.is_subset(&folder.known), "damaged data counts");
    }
}

/// Changes one file of a folder: file, kind of change, offset, and a value.
fn changed(
    &[file, kind, low, high, value @ ..]: &[u8; 8],
    files: &BTreeMap<String, Vec<u8>>,
) -> Option<(String, Vec<u8>)> {
    let nth = |number: u8| files.iter().nth(usize::from(number) % files.len());
    let (name, bytes) = nth(file)?;
    let mut bytes = bytes.clone();
    let (length, offset) = (bytes.len().max(1), usize::from(u16::from_le_bytes([low, high])));
    // An odd kind counts from the end.
    let at = if kind & 1 == 0 { offset % length } else { length - 1 - offset % length };
    let size = usize::from(value[1]).min(bytes.len() - at);
    match kind / 2 % 8 {
        0 if !bytes.is_empty() => bytes[at] = value[0],
        1 => bytes.truncate(at),
        2 => bytes.extend(value),
        3 => drop(bytes.drain(at..at + size)),
        4 => {
            let copy = bytes[at..at + size].to_vec();
            let to = usize::from(u16::from_le_bytes([value[2], value[3]])) % length;
            bytes.splice(to..to, copy);
        }
        5 => {
            // The largest numbers, and those beside zero.
            let number = i64::from(value[0].cast_signed()).to_le_bytes();
            let number = &number[..number.len().min(bytes.len() - at)];
            bytes[at..at + number.len()].copy_from_slice(number);
        }
        6 => {
            let (_, other) = nth(value[0])?;
            bytes.clone_from(other);
        }
        _ => {}
    }
    Some((name.clone(), bytes))
}

/// Writes the right CRC into the last line of a header or a note.
fn mend_text(bytes: &mut Vec<u8>) {
    let Some(content) = bytes.strip_suffix(b"\n").filter(|it| it.is_ascii()) else { return };
    let end = content.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let crc = format!("{:08x}", crc32c::crc32c(&bytes[..end]));
    bytes.truncate(end);
    bytes.extend((crc + "\n").into_bytes());
}

/// Reads a folder in all ways that change nothing.
fn read(disk: &SimDisk) {
    if let Ok(folder) = Folder::open_simulated(&disk.after_kill()) {
        let _ = folder.look();
    }
    let Ok(folder) = AtRest::open_simulated(&disk.after_kill()) else { return };
    let _ = folder.verdicts(&fingerprints(1), Target::Last);
    if let Ok(archive) = folder.archive(Target::Last) {
        let _ = archive.each(|_| Ok::<_, RecoveryError>(()));
    }
    // Each shard takes its own memory from the system, so all of them would take long.
    let _ = folder.filter(Target::Last, |shard| shard.index().is_multiple_of(16));
}

/// Recovers the filter, continues the log, and checks that the new records are found. Returns what
/// the first recovery restored.
fn recover(disk: &SimDisk) -> BTreeSet<u64> {
    let mut seen = Restored::default();
    let Ok(mut folder) = Folder::open_simulated(disk) else { return BTreeSet::new() };
    let Ok(recovered) = folder.recover(Target::Last, &mut seen) else { return BTreeSet::new() };
    let begins = folder
        .header()
        .is_some_and(|header| header.spec.filter.parameters.expire_after().is_some());
    let mut journal = folder.journal(recovered.position, Fsync::Never).expect("a sound disk");
    let mut group = journal.group();
    if begins {
        group.begin_generation(Generation::new(20)).expect("a sound disk");
    }
    group.append(&fingerprints(99), &Lifetimes::default(), &[]).expect("a sound disk");
    group.finish().expect("a sound disk");
    let end = journal.position();
    journal.close(end.head).expect("a sound disk");
    let again = folder.recover(Target::Last, &mut Restored::default());
    assert_eq!(again.expect("a recovered folder").position, end);
    seen.0
}

/// Folder without damage.
struct Undamaged {
    disk: SimDisk,
    /// All that recoveries of the folder restore.
    known: BTreeSet<u64>,
}

impl Undamaged {
    /// Writes a folder with snapshots, a log, an archive, and records of all kinds.
    fn write(kind: &str, expire_after: Option<&str>) -> Self {
        let disk = SimDisk::default();
        let mut folder = Folder::open_simulated(&disk).expect("an empty disk");
        let spec = StorageSpec { crawl: "fuzz".to_owned(), filter: spec(kind, expire_after) };
        folder.begin(&spec, RandomId::new(7), Head::START).expect("a sound disk");
        folder.keep_archive(true).expect("a sound disk");
        folder.announce(RandomId::new(1)).expect("a sound disk");
        let start = Position { number: 0, head: Head::START };
        let mut journal = folder.journal(start, Fsync::Never).expect("a sound disk");
        let mut heads = vec![Head::START];
        for batch in 1..=13 {
            log(&mut journal, batch, expire_after.is_some()).expect("a sound disk");
            heads.push(journal.position().head);
            if batch % 3 == 0 {
                snapshot(&disk, &mut journal).expect("a sound disk");
            }
        }
        let mut known = BTreeSet::new();
        for head in heads {
            let mut restored = Restored::default();
            let mut copy = Folder::open_simulated(&disk.after_kill()).expect("a folder");
            if copy.recover(Target::At(head), &mut restored).is_ok() {
                known.extend(restored.0);
            }
        }
        Self { disk, known }
    }
}

fn spec(kind: &str, expire_after: Option<&str>) -> FilterSpec {
    let spec = FilterSpec::read(|name| {
        let value = match name {
            "filter.kind" => kind,
            "filter.capacity" | "filter.grow_to" => "1000",
            "filter.error_rate" => "1e-3",
            "filter.expire_after" => return expire_after.map(str::to_owned),
            "filter.seed" => "7",
            "fingerprint.algorithm" => "scrapy",
            "fingerprint.keep_fragments" => "false",
            "partitions.count" => "1",
            _ => return None,
        };
        Some(value.to_owned())
    });
    spec.expect("a valid spec")
}

/// Writes a batch, adds and forgets to the log.
fn log(journal: &mut Journal, batch: u8, expires: bool) -> io::Result<()> {
    let mut group = journal.group();
    let mut lifetimes = Lifetimes::default();
    if expires {
        group.begin_generation(Generation::new(u32::from(batch)))?;
        lifetimes.push(1, Lifetime::FOREVER);
    }
    let counted = if batch.is_multiple_of(2) { counted() } else { Vec::new() };
    group.append(&fingerprints(batch), &lifetimes, &counted)?;
    group.change(Change::Add, &fingerprints(batch + 100), &Lifetimes::default())?;
    if batch % 4 == 1 {
        group.change(Change::Forget, &fingerprints(batch)[..1], &Lifetimes::default())?;
    }
    group.finish().map(drop)
}

/// Takes a snapshot of what the folder leads to.
fn snapshot(disk: &SimDisk, journal: &mut Journal) -> io::Result<()> {
    journal.roll()?;
    let (mut writer, at) = (journal.snapshot_writer()?, journal.position());
    let folder = AtRest::open_simulated(&disk.after_kill()).map_err(io::Error::other)?;
    let (filter, tombstones) = folder.filter(Target::Last, |_| true).map_err(io::Error::other)?;
    for shard in writer.sections.shards() {
        writer.sections.write(shard, at, &*filter.save(shard, Vec::new()), &mut || Ok(()))?;
    }
    for (shard, id) in tombstones {
        writer.sections.tombstones(shard, &[id]);
    }
    writer.sections.counts(&counted(), at);
    writer.finish(&Retention { horizon: None, horizon_bytes: 1 }, Moment::now()).map(drop)
}

fn counted() -> Vec<Counted> {
    Counted::decode_all(&[3; Counted::BYTES]).expect("one count")
}

/// Returns fingerprints of all kinds.
fn fingerprints(number: u8) -> [Fingerprint; 4] {
    [
        Fingerprint::Raw16([number; 16]),
        Fingerprint::Raw20([number; 20]),
        Fingerprint::Raw32([number; 32]),
        Fingerprint::Text([number; 5][..].into()),
    ]
}

/// Hashes of all that recoveries restored.
#[derive(Default)]
struct Restored(BTreeSet<u64>);

impl Restored {
    fn note(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.0.insert(hasher.finish());
    }
}

impl Restore for Restored {
    fn clear(&mut self) {
        // The earlier content was damaged.
        self.0.clear();
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        self.note((format!("{section:?}"), bytes));
        Ok(())
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        self.note((shard.index(), id));
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, at: Position) {
        for fingerprint in fingerprints {
            self.note(format!("{fingerprint} {generation:?} {at}"));
        }
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, at: Position) {
        for fingerprint in fingerprints {
            self.note(format!("forget {fingerprint} {at}"));
        }
    }

    fn begin_generation(&mut self, generation: Generation) {
        self.note(generation.get());
    }
}
