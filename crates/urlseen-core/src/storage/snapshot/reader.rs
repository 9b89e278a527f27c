//! Reader of the files of snapshots.

use std::cmp::Reverse;
use std::io::{self, Read};

use super::super::clock::Moment;
use super::super::disk::{DiskFile, read_exact_at};
use super::super::encoding::{Fields, agree, checked};
use super::super::error::{Damage, ReadError, sound};
use super::super::header::{Begun, FORMAT};
use super::super::restore::{Restore, Section};
use super::{
    EMPTY, EXTRA, HEADER, MAGIC, SECTION, SECTION_END, TOMBSTONE, TRAILER, extended, name, seq,
};
use crate::filter::ShardId;
use crate::limit::Counted;
use crate::storage::head::Position;

/// Maximum number of keys in a section, so that sums of these numbers are exact. No filter has so
/// many keys.
const KEYS_MAX: u64 = 1 << 48;

/// Header and trailer of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
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
    pub is_origin: bool,
}

/// Snapshots of a folder, by their headers and trailers.
#[derive(Debug)]
pub(in crate::storage) struct Snapshots {
    /// Snapshots that count, newest first.
    pub(in crate::storage) sound: Vec<Summary>,
    /// Damage of all other snapshots: their header or trailer cannot be read.
    pub(in crate::storage) damaged: Vec<Damage>,
    /// Names of the snapshots that are older than the start of the history.
    pub(in crate::storage) void: Vec<String>,
}

impl Snapshots {
    pub(in crate::storage) fn list(begun: &Begun) -> io::Result<Self> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for entry in begun.dir.list()? {
            if seq(&entry.name).is_some() {
                match Summary::read(begun, &entry.name) {
                    Ok(summary) => sound.push(summary),
                    Err(error) => damaged.push(error.damage()?),
                }
            }
        }
        sound.sort_by_key(|summary| Reverse((summary.last.number, summary.last.head.seq)));
        let origin = sound.iter().position(|summary| summary.is_origin);
        let older = sound.split_off(origin.map_or(sound.len(), |origin| origin + 1));
        let void = older.into_iter().map(|summary| summary.name).collect();
        Ok(Self { sound, damaged, void })
    }

    /// Returns the names of the snapshots that can never be loaded.
    pub(in crate::storage) fn useless(&self) -> impl Iterator<Item = &String> {
        self.damaged.iter().map(|damage| &damage.file).chain(&self.void)
    }
}

impl Summary {
    fn read(begun: &Begun, file_name: &str) -> Result<Self, ReadError> {
        let Begun { dir, header } = begun;
        let damage = |offset, what| Err(Damage::new(file_name, offset, what).into());
        let file = dir.open(file_name)?;
        let bytes = file.len()?;
        let Some(trailer_at) = bytes.checked_sub(TRAILER as u64).filter(|&at| at >= HEADER as u64)
        else {
            return damage(0, "the file is incomplete");
        };
        let (mut front, mut back) = ([0; HEADER], [0; TRAILER]);
        read_exact_at(&*file, &mut front, 0)?;
        read_exact_at(&*file, &mut back, trailer_at)?;
        let Some(front) = checked(&front) else { return damage(0, "the header is damaged") };
        let Some(back) = checked(&back) else { return damage(trailer_at, "the end is damaged") };
        let mut front = Fields(front);
        if (front.array(), front.u32()) != (*MAGIC, FORMAT) {
            return damage(0, "the file is not a snapshot");
        }
        if front.u64() != header.filter() {
            return damage(0, "the file belongs to another filter");
        }
        if front.u64() != header.shards() as u64 {
            return damage(0, "the file has another number of shards than the filter");
        }
        let begun_at = front.u64();
        let mut back = Fields(back);
        let (Some(first), Some(last)) = (back.position(), back.position()) else {
            return damage(trailer_at, "the end is damaged");
        };
        let (finished, moment) = (back.u64(), Moment::decode([back.u64(), back.u64()]));
        let is_origin = back.u8() == 1;
        if name(last.head.seq) != file_name {
            return damage(trailer_at, "the file was renamed");
        }
        let name = file_name.to_owned();
        Ok(Self { name, bytes, first, last, begun: begun_at, finished, moment, is_origin })
    }

    /// Returns a moment at which the snapshot already existed: `now` if no earlier one is known.
    pub(in crate::storage) fn existed(&self, now: Moment) -> Moment {
        if self.moment.is_before(now) { self.moment } else { now }
    }

    /// Returns true if a history begins with this snapshot, and the filter in it is empty.
    pub(in crate::storage) fn is_empty(&self, begun: &Begun) -> io::Result<bool> {
        Ok(self.is_origin && sound(self.open(begun))?.is_some_and(|it| it.keys() == 0))
    }

    /// Opens the snapshot, and checks the head of every section.
    pub(in crate::storage) fn open(&self, begun: &Begun) -> Result<Snapshot, ReadError> {
        let (name, file) = (self.name.clone(), begun.dir.open(&self.name)?);
        let damage = |offset, what| Err(Damage::new(&self.name, offset, what).into());
        let (mut offset, end) = (HEADER as u64, self.bytes - TRAILER as u64);
        let (mut span, mut sections) = (None, Vec::new());
        let shards = ShardId::all().take(begun.header.shards()).map(|shard| (shard, None));
        let extra = EXTRA.map(|bytes| (ShardId::WHOLE, Some(bytes as u64)));
        for (shard, each) in shards.chain(extra) {
            if end - offset < (SECTION + SECTION_END) as u64 {
                return damage(offset, "the file is incomplete");
            }
            let mut head = [0; SECTION];
            read_exact_at(&*file, &mut head, offset)?;
            let is_due = |it: &Section| {
                let len = each.map_or(Some(it.len), |each| each.checked_mul(it.keys));
                (it.shard, Some(it.len)) == (shard, len) && it.keys <= KEYS_MAX
            };
            let begin = offset + SECTION as u64;
            let Some(section) = decode(&head, begin).filter(is_due) else {
                return damage(offset, "the head of a section is damaged");
            };
            if end - begin - (SECTION_END as u64) < section.len {
                return damage(begin, "the file is incomplete");
            }
            offset = begin + section.len + SECTION_END as u64;
            span = Some(extended(span, section.at));
            sections.push(section);
        }
        if offset != end {
            return damage(offset, "there is data after the last section");
        }
        if span != Some((self.first, self.last)) {
            return damage(end, "the end of the file does not match its shards");
        }
        Ok(Snapshot { name, file, sections })
    }

    /// Opens the snapshot, and checks every part of it. Refuses the empty snapshot of an
    /// interrupted import.
    pub(in crate::storage) fn check(&self, begun: &Begun) -> Result<Snapshot, ReadError> {
        if begun.header.spec().filter.parameters.is_imported() && EMPTY.contains(&self.bytes) {
            let what = "the import of the filter was interrupted; give the same command again";
            return Err(Damage::new(&self.name, HEADER as u64, what).into());
        }
        let snapshot = self.open(begun)?;
        snapshot.sections.iter().try_for_each(|section| snapshot.check(section))?;
        Ok(snapshot)
    }
}

/// Reads the head of a section whose body begins at `begin`. Returns `None` if it is damaged.
fn decode(bytes: &[u8; SECTION], begin: u64) -> Option<Section> {
    let mut fields = Fields(checked(bytes)?);
    let (shard, at) = (ShardId::kept(fields.u8()), fields.position()?);
    Some(Section { shard, at, keys: fields.u64(), len: fields.u64(), begin })
}

/// A snapshot that is open to be read, with the heads of its sections.
#[derive(Debug)]
pub(in crate::storage) struct Snapshot {
    name: String,
    file: Box<dyn DiskFile>,
    /// Sections of the shards, of the counts and of the tombstones.
    sections: Vec<Section>,
}

impl Snapshot {
    fn split(&self) -> (&[Section], &[Section; EXTRA.len()]) {
        self.sections.split_last_chunk().expect("every snapshot has them")
    }

    /// Returns the sections of the shards, in order.
    pub(in crate::storage) fn shards(&self) -> &[Section] {
        self.split().0
    }

    /// Returns the number of keys in all shards.
    pub(in crate::storage) fn keys(&self) -> u64 {
        self.shards().iter().map(|section| section.keys).sum()
    }

    /// Loads all of the snapshot into `filter`, which is empty. If the snapshot is damaged, returns
    /// an error; the filter may then have a part of the snapshot.
    pub(in crate::storage) fn load(&self, filter: &mut dyn Restore) -> Result<(), ReadError> {
        let (shards, [counts, _]) = self.split();
        for section in shards {
            self.read(section, |body| filter.load(*section, body))?;
        }
        for (shard, id) in self.tombstones()? {
            filter.load_tombstone(shard, id);
        }
        if counts.keys > 0 {
            let all = Counted::decode_all(&self.bytes(counts)?).expect("the length was checked");
            filter.load_counts(&all, counts.at);
        }
        Ok(())
    }

    /// Reads the tombstones: fingerprints that were forgotten and have not passed again.
    pub(in crate::storage) fn tombstones(&self) -> Result<Vec<(ShardId, u128)>, ReadError> {
        let (_, [_, tombstones]) = self.split();
        let bytes = self.bytes(tombstones)?;
        let each = bytes.chunks_exact(TOMBSTONE).map(Fields);
        Ok(each.map(|mut it| (ShardId::kept(it.u8()), u128::from_le_bytes(it.array()))).collect())
    }

    fn bytes(&self, section: &Section) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.read(section, |body| body.read_to_end(&mut bytes).map(drop))?;
        Ok(bytes)
    }

    /// Checks the body of a section.
    pub(in crate::storage) fn check(&self, section: &Section) -> Result<(), ReadError> {
        self.read(section, |body| io::copy(body, &mut io::sink()).map(drop))
    }

    /// Calls `read` with the body of a section, which it must read to its end. Then checks the CRC.
    pub(in crate::storage) fn read(
        &self,
        section: &Section,
        read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let mut body = Body { file: &*self.file, section, read: 0, crc: 0, failed: None };
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
            read_exact_at(&*self.file, &mut crc, section.begin + section.len)?;
        }
        if is_taken && agree(body.crc, u32::from_le_bytes(crc)) {
            return Ok(());
        }
        Err(Damage::new(&self.name, section.begin, "the body of a shard is damaged").into())
    }
}

/// Body of a section, read from front to back.
struct Body<'a> {
    file: &'a dyn DiskFile,
    section: &'a Section,
    read: u64,
    crc: u32,
    /// Error of the disk, kept for the caller.
    failed: Option<io::Error>,
}

impl Read for Body<'_> {
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
