//! Tests of a folder with a filter of RedisBloom, which is one shard.

use std::io::{self, Read};

use urlseen_filter::Generation;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_filter::redisbloom::{Filter, Reservation, dump};
use urlseen_filter::{FilterKind, FilterSpec, KeyHasher, Parameters, ShardId, Verdict};
use urlseen_fingerprint::Fingerprint;

use super::super::restore::{Restore, Section};
use super::super::{AtRest, Journal, StorageSpec, Target};
use super::basic::{append, keep_all, open};
use super::filter::{Key, fingerprint, fingerprints};
use super::testing::SimDisk;
use crate::Moment;
use crate::head::{Head, Position};

const LIMIT: u64 = 1 << 20;
const START: Position = Position { number: 0, head: Head::START };

fn reservation() -> Reservation {
    Reservation {
        capacity: "20".parse().unwrap(),
        error_rate: "1e-3".parse().unwrap(),
        expansion: 2,
    }
}

fn spec(parameters: Parameters) -> StorageSpec {
    let StorageSpec { crawl, filter } = super::filter::spec();
    StorageSpec { crawl, filter: FilterSpec { parameters, ..filter } }
}

/// A filter after a recovery.
struct Brought {
    filter: Filter,
    hasher: KeyHasher,
}

impl Default for Brought {
    fn default() -> Self {
        let parameters = Parameters::reserved(reservation());
        let filter = Filter::build(Some(reservation())).unwrap();
        Self { filter, hasher: parameters.hasher() }
    }
}

impl Brought {
    fn filter(self) -> Filter {
        self.filter
    }
}

fn add(filter: &mut Filter, fingerprints: &[Fingerprint]) {
    for fingerprint in fingerprints {
        filter.add(fingerprint.text(&mut [0; 64])).unwrap();
    }
}

impl Restore for Brought {
    fn clear(&mut self) {
        self.filter.clear();
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        self.filter.load(section.shard, section.keys, section.len, body)
    }

    fn load_tombstone(&mut self, _: ShardId, _: u128) {
        panic!("nothing was forgotten");
    }

    fn forget(&mut self, _: Vec<Fingerprint>, _: Position) {
        panic!("nothing was forgotten");
    }

    fn begin_generation(&mut self, _: Generation) {
        panic!("the fingerprints do not expire");
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, _: Generation, at: Position) {
        assert!(at.number > 0);
        let key_hashes = fingerprints.iter().map(|it| self.hasher.key_hash(it));
        self.filter.insert(&key_hashes.collect::<Vec<_>>()).unwrap();
    }
}

fn bytes(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    dump::write(filter, &mut bytes).unwrap();
    bytes
}

fn recover(disk: &SimDisk, target: Target) -> Filter {
    let mut brought = Brought::default();
    open(disk).recover(target, &mut brought).unwrap();
    brought.filter()
}

fn at_rest(disk: &SimDisk) -> AtRest {
    AtRest::open_on(&disk.dir()).unwrap()
}

/// Returns the filter of a folder at rest.
fn rest_of(folder: &AtRest) -> Filter {
    let mut filter = Filter::build(None).unwrap();
    folder.read(Target::Last, |_| true, &mut filter).unwrap();
    filter
}

fn keys(batch: u8) -> Vec<Key> {
    (0..10).map(|bit| (batch, bit)).collect()
}

fn take_snapshot(journal: &mut Journal, filter: &Filter) {
    journal.roll().unwrap();
    let mut writer = journal.snapshot_writer().unwrap();
    writer.sections.write(ShardId::WHOLE, journal.position(), filter, &mut || Ok(())).unwrap();
    writer.finish(&keep_all(), Moment::now()).unwrap();
}

/// Writes batches 0 to 9 to the log. Takes snapshots after the batches 2 and 6, and logs adds after
/// batch 4. Returns the end of each batch, and the filter at this end. Each filter includes the
/// adds, because adds always count.
fn crawled(disk: &SimDisk) -> Vec<(Position, Filter)> {
    let mut folder = open(disk);
    folder
        .begin(&spec(Parameters::reserved(reservation())), RandomId::new(7), Head::START)
        .unwrap();
    let mut journal = folder.journal(START, Fsync::Never).unwrap();
    let late = fingerprints([(200, 3), (201, 3)]);
    let (mut filter, mut steps) = (Filter::reserve(reservation(), LIMIT).unwrap(), Vec::new());
    for batch in 0..10 {
        let at = append(&mut journal, &keys(batch));
        add(&mut filter, &fingerprints(keys(batch)));
        let mut with_adds = filter.clone();
        if batch < 4 {
            add(&mut with_adds, &late);
        }
        steps.push((at, with_adds));
        match batch {
            2 | 6 => take_snapshot(&mut journal, &filter),
            4 => {
                journal.append_adds(&late).unwrap();
                add(&mut filter, &late);
                let (_, step) = steps.last_mut().unwrap();
                *step = filter.clone();
            }
            _ => {}
        }
    }
    steps
}

#[test]
fn recovery_to_each_batch_restores_the_same_bytes() {
    let disk = SimDisk::default();
    let steps = crawled(&disk);
    assert!(steps.last().unwrap().1.layers() > 2);
    for (at, filter) in &steps {
        let disk = disk.after_kill();
        assert!(bytes(&recover(&disk, Target::At(at.head))) == bytes(filter), "{at:?}");
    }
    let (_, filter) = steps.last().unwrap();
    assert!(bytes(&recover(&disk.after_kill(), Target::Last)) == bytes(filter));
    let rest = at_rest(&disk);
    assert!(bytes(&rest_of(&rest)) == bytes(filter));
    let (middle, filter) = &steps[5];
    let asked: Vec<_> = (0..=255).map(|shard| fingerprint((shard, 3))).collect();
    let verdicts = rest.verdicts(&asked, Target::At(middle.head)).unwrap();
    let due = asked.iter().map(|each| Verdict::of(filter.contains(each.text(&mut [0; 64]))));
    assert_eq!(verdicts, due.collect::<Vec<_>>());
    assert!(verdicts.contains(&Verdict::Unseen) && verdicts.contains(&Verdict::Seen));
}

#[test]
fn an_imported_filter_is_read_back() {
    let mut filter = Filter::reserve(reservation(), LIMIT).unwrap();
    add(&mut filter, &fingerprints(keys(1)));
    let disk = SimDisk::default();
    let mut folder = open(&disk);
    folder.begin(&spec(Parameters::imported()), RandomId::new(5), Head::START).unwrap();
    let mut rebase = folder.rebase(Head::START).unwrap();
    rebase.write(ShardId::WHOLE, &filter).unwrap();
    rebase.finish().unwrap();
    drop(folder);
    assert!(bytes(&recover(&disk.after_kill(), Target::At(Head::START))) == bytes(&filter));
    assert!(bytes(&rest_of(&at_rest(&disk))) == bytes(&filter));
}
