//! Reader of the files of snapshots.

use std::cmp::Reverse;
use std::io::{self, Read};

use super::super::begun::Begun;
use super::super::damage::{Damage, ReadError, sound};
use super::super::disk::{ReadFile, read_exact_at};
use super::super::encoding::{Fields, agree, checked};
use super::super::header::FORMAT;
use super::super::restore::{Restore, Section};
use super::{
    COUNTS, EMPTY, HEADER, MAGIC, SECTION, SECTION_END, TOMBSTONE, TOMBSTONES_END, TRAILER,
    extended, name, seq,
};
use crate::filter::ShardId;
use crate::limit::Counted;
use crate::storage::head::Position;

/// Header and trailer of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// Offset at which the shards end.
    end: u64,
    /// The lowest position of any shard: replay starts there.
    pub first: Position,
    /// The highest position of any shard.
    pub last: Position,
    /// Time at which the snapshot was begun, in milliseconds since 1970.
    pub begun: u64,
    /// Time at which the snapshot was finished, in milliseconds since 1970.
    pub finished: u64,
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
    pub(in crate::storage) fn read(begun: &Begun, file_name: &str) -> Result<Self, ReadError> {
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
        let (finished, is_origin) = (back.u64(), back.u8() == 1);
        if name(last.head.seq) != file_name {
            return damage(trailer_at, "the file was renamed");
        }
        let mut count = [0; 8];
        let count_at = trailer_at.checked_sub(TOMBSTONES_END as u64);
        if let Some(count_at) = count_at {
            read_exact_at(&*file, &mut count, count_at)?;
        }
        let size = u64::from_le_bytes(count).checked_mul(TOMBSTONE as u64);
        let end = size.and_then(|size| count_at?.checked_sub(size));
        let Some(end) = end.filter(|&end| end >= HEADER as u64) else {
            return damage(count_at.unwrap_or(0), "the tombstones are damaged");
        };
        let name = file_name.to_owned();
        Ok(Self { name, bytes, end, first, last, begun: begun_at, finished, is_origin })
    }

    /// Returns true if a history begins with this snapshot, and the filter in it is empty.
    pub(in crate::storage) fn is_empty(&self, begun: &Begun) -> io::Result<bool> {
        if !self.is_origin || EMPTY.contains(&self.bytes) {
            return Ok(self.is_origin);
        }
        // An imported filter has layers even if it is empty, so its size is not in `EMPTY`.
        let mut keys = 0;
        let read = self.sections(begun, |section, _| {
            keys += section.keys;
            Ok(())
        });
        Ok(sound(read)?.is_some() && keys == 0)
    }

    /// Loads every shard into `filter`, which is empty. If the snapshot is damaged, returns an
    /// error; the filter may then have a part of the snapshot.
    pub(in crate::storage) fn load(
        &self,
        begun: &Begun,
        filter: &mut dyn Restore,
    ) -> Result<(), ReadError> {
        self.check_import(begun)?;
        self.sections(begun, |section, body| body.read_by(|body| filter.load(section, body)))?;
        for (shard, id) in self.tombstones(begun)? {
            filter.load_tombstone(shard, id);
        }
        if let Some((counts, at)) = self.counts(begun)? {
            filter.load_counts(&counts, at);
        }
        Ok(())
    }

    /// Checks every part of the snapshot.
    pub(in crate::storage) fn check(&self, begun: &Begun) -> Result<(), ReadError> {
        self.check_import(begun)?;
        self.sections(begun, |_, body| body.check())?;
        self.counts(begun)?;
        self.tombstones(begun).map(drop)
    }

    /// Refuses the empty snapshot of an interrupted import.
    fn check_import(&self, begun: &Begun) -> Result<(), Damage> {
        if begun.header.spec().filter.parameters.is_imported() && EMPTY.contains(&self.bytes) {
            let what = "the import of the filter was interrupted; give the same command again";
            return Err(Damage::new(&self.name, HEADER as u64, what));
        }
        Ok(())
    }

    /// Reads the tombstones: fingerprints that were forgotten and have not passed again.
    pub(in crate::storage) fn tombstones(
        &self,
        begun: &Begun,
    ) -> Result<Vec<(ShardId, u128)>, ReadError> {
        let length = self.bytes - TRAILER as u64 - self.end;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        read_exact_at(&*begun.dir.open(&self.name)?, &mut bytes, self.end)?;
        let read = checked(&bytes).map(|checked| {
            let each = checked[..checked.len() - size_of::<u64>()].chunks_exact(TOMBSTONE);
            each.map(|each| {
                let mut fields = Fields(each);
                let shard = ShardId::kept(fields.u8());
                (shard, u128::from_le_bytes(fields.array()))
            })
            .collect()
        });
        let damage = || Damage::new(&self.name, self.end, "the tombstones are damaged");
        Ok(read.ok_or_else(damage)?)
    }

    /// Reads the counts of limits, if there are any, and the position of the last record whose
    /// changes they have.
    fn counts(&self, begun: &Begun) -> Result<Option<(Vec<Counted>, Position)>, ReadError> {
        let mut found = None;
        self.parts(begun, |part, body| {
            let Part::Counts(at) = part else { return Ok(()) };
            let (begin, mut bytes) = (body.begin, Vec::new());
            body.read_by(|body| body.read_to_end(&mut bytes).map(drop))?;
            let damage = || Damage::new(&self.name, begin, "the counts are damaged");
            found = Some((Counted::decode_all(&bytes).ok_or_else(damage)?, at));
            Ok(())
        })?;
        Ok(found)
    }

    /// Checks the head of every section, and calls `visit` with the head and the body of each
    /// shard. `visit` need not read the body.
    pub(in crate::storage) fn sections(
        &self,
        begun: &Begun,
        mut visit: impl FnMut(Section, Body<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.parts(begun, |part, body| match part {
            Part::Shard(section) => visit(section, body),
            Part::Counts(_) => Ok(()),
        })
    }

    /// Checks the head of every section, and calls `visit` with each section.
    fn parts(
        &self,
        begun: &Begun,
        mut visit: impl FnMut(Part, Body<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let file = begun.dir.open(&self.name)?;
        let damage = |offset, what| Err(Damage::new(&self.name, offset, what).into());
        let (mut offset, end, mut span) = (HEADER as u64, self.end, None);
        let shards = ShardId::all().take(begun.header.shards()).map(ShardId::byte);
        // Counts come after the shards. They may be missing.
        for (number, is_shard) in shards.map(|it| (it, true)).chain([(COUNTS, false)]) {
            if !is_shard && offset == end {
                break;
            }
            if end - offset < (SECTION + SECTION_END) as u64 {
                return damage(offset, "the file is incomplete");
            }
            let mut head = [0; SECTION];
            read_exact_at(&*file, &mut head, offset)?;
            let Some(section) = decode(&head, number) else {
                return damage(offset, "the head of a section is damaged");
            };
            offset += SECTION as u64;
            if end - offset - (SECTION_END as u64) < section.len {
                return damage(offset, "the file is incomplete");
            }
            let body = Body::new(&self.name, &*file, offset, section.len);
            visit(if is_shard { Part::Shard(section) } else { Part::Counts(section.at) }, body)?;
            offset += section.len + SECTION_END as u64;
            span = Some(extended(span, section.at));
        }
        if offset != end {
            return damage(offset, "there is data after the last section");
        }
        if span != Some((self.first, self.last)) {
            return damage(end, "the end of the file does not match its shards");
        }
        Ok(())
    }
}

/// Section of a snapshot.
enum Part {
    /// One of the shards of the filter.
    Shard(Section),
    /// The counts of limits, with the position of the last record whose changes they have.
    Counts(Position),
}

/// Reads the head of a section. Returns `None` if it is damaged or has another number than
/// `number`.
fn decode(bytes: &[u8; SECTION], number: u8) -> Option<Section> {
    let mut fields = Fields(checked(bytes)?);
    let is_due = fields.u8() == number;
    let shard = ShardId::kept(number);
    let section = Section { shard, at: fields.position()?, keys: fields.u64(), len: fields.u64() };
    is_due.then_some(section)
}

/// Body of a section, read from front to back.
pub(in crate::storage) struct Body<'a> {
    name: &'a str,
    file: &'a dyn ReadFile,
    /// Offset of the body in the file.
    pub(in crate::storage) begin: u64,
    len: u64,
    read: u64,
    crc: u32,
    /// Error of the disk, kept for the caller.
    failed: Option<io::Error>,
}

impl<'a> Body<'a> {
    /// Prepares to read the body of `len` bytes at `begin`.
    pub(in crate::storage) fn new(
        name: &'a str,
        file: &'a dyn ReadFile,
        begin: u64,
        len: u64,
    ) -> Self {
        Self { name, file, begin, len, read: 0, crc: 0, failed: None }
    }

    /// Calls `read`, which must read all of the body. Then checks the CRC.
    pub(in crate::storage) fn read_by(
        mut self,
        read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let taken = read(&mut self);
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let is_taken = match taken {
            Ok(()) => self.read == self.len,
            Err(error) if matches!(error.kind(), InvalidData | UnexpectedEof) => false,
            Err(error) => return Err(error.into()),
        };
        let mut crc = [0; SECTION_END];
        if is_taken {
            read_exact_at(self.file, &mut crc, self.begin + self.len)?;
        }
        if is_taken && agree(self.crc, u32::from_le_bytes(crc)) {
            return Ok(());
        }
        let what = "the body of a shard is damaged";
        Err(Damage::new(self.name, self.begin, what).into())
    }

    /// Reads all of the body, and checks the CRC.
    pub(in crate::storage) fn check(self) -> Result<(), ReadError> {
        self.read_by(|body| io::copy(body, &mut io::sink()).map(drop))
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len - self.read).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.begin + self.read);
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
