//! Snapshot: the filter, shard by shard, and the position of each shard.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenS"
//!  8      4  format of the folder, 7
//! 12      8  id of the filter
//! 20      4  CRC-32C of bytes 0 to 19
//! 24         sections: for each a body, and the CRC-32C of the body (4 bytes)
//!
//! the bodies, in this order
//! shards      256, or 1 if the filter is in one piece: the shard as its kind saves it
//! counts      the counts of limits: for each group its hash (16 bytes) and its count (8 bytes)
//! tombstones  forgotten fingerprints: for each the shard (1 byte) and its key hash (16 bytes)
//!
//! the end, after the sections: an entry for each section, in the same order
//!  0     24  number, seq and commit_id of the last record in the section
//! 24      8  keys of the shard, or number of the counts or tombstones
//! 32      8  bytes of the body; 0 if the shard is empty
//! and then
//!  0      8  time at which the snapshot was begun, in milliseconds since 1970
//!  8      8  time at which it was finished, likewise
//! 16     16  moment by which the filter had reached its last position: id of the boot of the
//!            machine, and milliseconds since the boot
//! 32      1  1 if a history begins with it, and nothing older counts; else 0
//! 33      4  CRC-32C of the end, up to here
//! ```
//!
//! A replay of the log starts after the lowest position of any section.
//!
//! A kind saves a shard as
//!
//! ```text
//! native       its bits as little endian words of 64, bit b of the shard being bit b % 64 of word
//!              b / 64
//! redisbloom   all of the filter, as `redisbloom::dump` writes it
//! ```
//!
//! The name of the file is `snapshot-` and the seq of the last position in 20 digits. The file has
//! another name until it is complete. So a file with this name is complete, unless it was damaged.

use std::cmp::Reverse;
use std::io::{self, Read};

use urlseen_filter::limit::Counted;
use urlseen_filter::{SHARDS, ShardId};

use super::clock::Moment;
use super::disk::{DiskFile, read_exact_at};
use super::encoding::{FORMAT, Fields, POSITION, agree, checked};
use super::error::{Damage, ReadError};
use super::header::{Begun, Header};
use super::restore::{Restore, Section};
use crate::head::Position;

pub(super) const MAGIC: &[u8; 8] = b"urlseenS";
const PREFIX: &str = "snapshot-";

/// Bytes before the sections.
const HEADER: usize = 24;
/// Number of bytes of a section after its body.
const SECTION_END: usize = 4;
/// Bytes of the end for each section.
const ENTRY: usize = POSITION + 16;
/// Bytes of the end after the entries.
const TRAILER: usize = 37;
/// Number of bytes of a tombstone.
const TOMBSTONE: usize = 17;
/// Number of bytes of each element in the two sections after the shards.
pub(super) const EXTRA: [usize; 2] = [Counted::BYTES, TOMBSTONE];
/// Bytes of a snapshot of an empty filter, with many shards and with one.
pub(super) const EMPTY: [u64; 2] = [empty_size(SHARDS), empty_size(1)];

/// Maximum number of keys in a section, so that sums of these numbers are exact. No filter has so
/// many keys.
const KEYS_MAX: u64 = 1 << 48;

const fn empty_size(shards: usize) -> u64 {
    (HEADER + (shards + EXTRA.len()) * SECTION_END + end_size(shards)) as u64
}

const fn end_size(shards: usize) -> usize {
    (shards + EXTRA.len()) * ENTRY + TRAILER
}

/// Returns the name of the snapshot whose last position has this seq.
pub(super) fn name(seq: u64) -> String {
    format!("{PREFIX}{seq:020}")
}

/// Returns the seq in the name of a snapshot. `None` for the name of any other file.
pub(super) fn seq(name: &str) -> Option<u64> {
    let seq = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(seq) == name).then_some(seq)
}

/// A snapshot in a folder: the end of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// The lowest position of any shard: replay starts there.
    pub first: Position,
    /// The highest position of any shard.
    pub last: Position,
    /// Time at which the snapshot was begun, in milliseconds since 1970.
    pub begun: u64,
    /// Time at which the snapshot was finished, in milliseconds since 1970.
    pub finished: u64,
    /// Moment at which the filter had reached `last`.
    moment: Moment,
    /// True if the history begins with this snapshot: nothing older counts.
    is_origin: bool,
    /// Sections of the shards, of the counts and of the tombstones.
    sections: Vec<Section>,
}

/// Snapshots of a folder.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// Snapshots that count, newest first.
    pub(super) sound: Vec<Snapshot>,
    /// Damage of all other snapshots: their header or end cannot be read.
    pub(super) damaged: Vec<Damage>,
    /// Names of the snapshots that are older than the start of the history.
    pub(super) void: Vec<String>,
}

impl Snapshots {
    pub(super) fn list(begun: &Begun) -> io::Result<Self> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for entry in begun.dir.list()? {
            if seq(&entry.name).is_some() {
                match Snapshot::open(begun, &entry.name) {
                    Ok(snapshot) => sound.push(snapshot),
                    Err(error) => damaged.push(error.damage()?),
                }
            }
        }
        sound.sort_by_key(|snapshot| Reverse((snapshot.last.number, snapshot.last.head.seq)));
        let origin = sound.iter().position(|snapshot| snapshot.is_origin);
        let older = sound.split_off(origin.map_or(sound.len(), |origin| origin + 1));
        let void = older.into_iter().map(|snapshot| snapshot.name).collect();
        Ok(Self { sound, damaged, void })
    }

    /// Returns the position at which the filter was last known to be empty. Earlier records no
    /// longer count.
    pub(super) fn empty_start(&self) -> Option<Position> {
        self.sound.last().filter(|oldest| oldest.is_empty()).map(|oldest| oldest.first)
    }

    /// Returns the names of the snapshots that can never be loaded.
    pub(super) fn useless(&self) -> impl Iterator<Item = &String> {
        self.damaged.iter().map(|damage| &damage.file).chain(&self.void)
    }
}

impl Snapshot {
    /// Reads the header and the end of a file.
    fn open(begun: &Begun, file_name: &str) -> Result<Self, ReadError> {
        let Begun { dir, header } = begun;
        let damage = |offset, what| ReadError::from(Damage::new(file_name, offset, what));
        let file = dir.open(file_name)?;
        let bytes = file.len()?;
        let (mut front, mut end) = ([0; HEADER], vec![0; end_size(header.shards())]);
        let end_at = bytes.checked_sub(end.len() as u64).filter(|&at| at >= HEADER as u64);
        let end_at = end_at.ok_or_else(|| damage(0, "the file is incomplete"))?;
        read_exact_at(&*file, &mut front, 0)?;
        read_exact_at(&*file, &mut end, end_at)?;
        let front = checked(&front).ok_or_else(|| damage(0, "the header is damaged"))?;
        let mut front = Fields(front);
        if (front.array(), front.u32()) != (*MAGIC, FORMAT) {
            return Err(damage(0, "the file is not a snapshot"));
        }
        if front.u64() != header.filter.get() {
            return Err(damage(0, "the file belongs to another filter"));
        }
        let snapshot = checked(&end).and_then(|end| Self::decode(header, file_name, end_at, end));
        let damaged = || damage(end_at, "the end is damaged");
        let snapshot = Self { bytes, ..snapshot.ok_or_else(damaged)? };
        if name(snapshot.last.head.seq) != file_name {
            return Err(damage(end_at, "the file was renamed"));
        }
        Ok(snapshot)
    }

    /// Reads the end of a file, which is at the offset `end_at`. Returns `None` if it is damaged.
    fn decode(header: &Header, name: &str, end_at: u64, end: &[u8]) -> Option<Self> {
        let (mut end, mut begin, mut sections) = (Fields(end), HEADER as u64, Vec::new());
        let shards = ShardId::all().take(header.shards()).map(|shard| (shard, None));
        let extra = EXTRA.map(|bytes| (ShardId::WHOLE, Some(bytes as u64)));
        for (shard, each) in shards.chain(extra) {
            let (at, keys, len) = (end.position()?, end.u64(), end.u64());
            if keys > KEYS_MAX || each.is_some_and(|each| each * keys != len) {
                return None;
            }
            sections.push(Section { shard, at, keys, len, begin });
            begin = begin.checked_add(len)?.checked_add(SECTION_END as u64)?;
        }
        let positions = || sections.iter().map(|section| section.at);
        let snapshot = Self {
            name: name.to_owned(),
            bytes: end_at,
            first: positions().min_by_key(|at| at.number)?,
            last: positions().max_by_key(|at| at.number)?,
            begun: end.u64(),
            finished: end.u64(),
            moment: Moment::decode([end.u64(), end.u64()]),
            is_origin: end.u8() == 1,
            sections,
        };
        (begin == end_at).then_some(snapshot)
    }

    /// Returns a moment at which the snapshot already existed: `now` if no earlier one is known.
    pub(super) fn existed(&self, now: Moment) -> Moment {
        if self.moment.is_before(now) { self.moment } else { now }
    }

    /// Returns true if a history begins with this snapshot, and the filter in it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.is_origin && self.keys() == 0
    }

    fn split(&self) -> (&[Section], &[Section; EXTRA.len()]) {
        self.sections.split_last_chunk().expect("every snapshot has them")
    }

    /// Returns the sections of the shards, in order.
    pub(super) fn shards(&self) -> &[Section] {
        self.split().0
    }

    /// Returns the sum of the keys in all shards.
    pub fn keys(&self) -> u64 {
        self.shards().iter().map(|section| section.keys).sum()
    }

    /// Opens the file, and checks all of it, except for the shards that are not `wanted`.
    pub(super) fn check(
        &self,
        begun: &Begun,
        wanted: impl Fn(ShardId) -> bool,
    ) -> Result<Box<dyn DiskFile>, ReadError> {
        let (file, (shards, extra)) = (begun.dir.open(&self.name)?, self.split());
        for section in shards.iter().filter(|section| wanted(section.shard)).chain(extra) {
            self.read(&*file, section, |body| io::copy(body, &mut io::sink()).map(drop))?;
        }
        Ok(file)
    }

    /// Loads all of the snapshot into `filter`, which is empty. If the snapshot is damaged, returns
    /// an error; the filter may then have a part of the snapshot.
    pub(super) fn load(
        &self,
        file: &dyn DiskFile,
        filter: &mut dyn Restore,
    ) -> Result<(), ReadError> {
        let (shards, [counts, _]) = self.split();
        for section in shards {
            self.read(file, section, |body| filter.load(*section, body))?;
        }
        for (shard, id) in self.tombstones(file)? {
            filter.load_tombstone(shard, id);
        }
        if counts.keys > 0 {
            let bytes = self.bytes(file, counts)?;
            let all = Counted::decode_all(&bytes).expect("the length was checked");
            filter.load_counts(&all, counts.at);
        }
        Ok(())
    }

    /// Reads the tombstones: fingerprints that were forgotten and have not passed again.
    pub(super) fn tombstones(
        &self,
        file: &dyn DiskFile,
    ) -> Result<Vec<(ShardId, u128)>, ReadError> {
        let (_, [_, tombstones]) = self.split();
        let bytes = self.bytes(file, tombstones)?;
        let each = bytes.chunks_exact(TOMBSTONE).map(Fields);
        Ok(each.map(|mut it| (ShardId(it.u8()), u128::from_le_bytes(it.array()))).collect())
    }

    fn bytes(&self, file: &dyn DiskFile, section: &Section) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.read(file, section, |body| body.read_to_end(&mut bytes).map(drop))?;
        Ok(bytes)
    }

    /// Calls `read` with the body of a section, which it must read to its end. Then checks the CRC.
    pub(super) fn read(
        &self,
        file: &dyn DiskFile,
        section: &Section,
        read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let mut body = ShardReader { file, section, read: 0, crc: 0, failed: None };
        let taken = read(&mut body);
        if let Some(error) = body.failed {
            return Err(error.into());
        }
        let is_taken = match taken {
            Ok(()) => body.read == section.len,
            Err(error) if matches!(error.kind(), InvalidData | UnexpectedEof) => false,
            Err(error) => return Err(error.into()),
        };
        let mut crc = [0; SECTION_END];
        if is_taken {
            read_exact_at(file, &mut crc, section.begin + section.len)?;
        }
        if is_taken && agree(body.crc, u32::from_le_bytes(crc)) {
            return Ok(());
        }
        Err(Damage::new(&self.name, section.begin, "the body of a shard is damaged").into())
    }
}

/// Body of a section, read from front to back.
struct ShardReader<'a> {
    file: &'a dyn DiskFile,
    section: &'a Section,
    read: u64,
    crc: u32,
    /// Error of the disk, kept for the caller.
    failed: Option<io::Error>,
}

impl Read for ShardReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.section.len - self.read).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.section.begin + self.read);
        match read {
            Ok(read) => {
                self.crc = crc32c::crc32c_append(self.crc, &buffer[..read]);
                self.read += read as u64;
                Ok(read)
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }
}
