//! Reading snapshots.

use std::cmp::Reverse;
use std::io;

use super::super::damage::Damage;
use super::super::dir::Dir;
use super::super::disk::{DiskFile, read_exact_at};
use super::super::encoding::{Fields, checked};
use super::super::header::Header;
use super::super::restore::Restore;
use super::{EMPTY, HEADER, MAGIC, SECTION, TOMBSTONE, TOMBSTONES_END, TRAILER, name, seq};
use crate::filter::{Count, ShardId};
use crate::storage::head::Position;

/// What a snapshot says of itself at its two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage) struct Summary {
    pub(in crate::storage) name: String,
    pub(in crate::storage) bytes: u64,
    /// Where the filter ends.
    pub(super) end: u64,
    /// Fingerprints that were forgotten, which follow there.
    tombstones: u64,
    pub(in crate::storage) first: Position,
    pub(in crate::storage) last: Position,
    pub(in crate::storage) begun: u64,
    pub(in crate::storage) finished: u64,
    /// Whether nothing that is older counts.
    is_origin: bool,
}

/// The snapshots of a folder, by what their two ends say.
#[derive(Debug)]
pub(in crate::storage) struct Snapshots {
    /// Those that count, newest first.
    pub(in crate::storage) sound: Vec<Summary>,
    /// What is wrong with those that say nothing of themselves.
    pub(in crate::storage) damaged: Vec<Damage>,
    /// The names of those that are older than the beginning of the history.
    pub(in crate::storage) void: Vec<String>,
}

/// One shard as a snapshot has it, but for its bits.
#[derive(Debug, Clone, Copy)]
pub(in crate::storage) struct Section {
    pub(in crate::storage) shard: ShardId,
    pub(in crate::storage) at: Position,
    pub(in crate::storage) count: Count,
    is_empty: bool,
    crc: u32,
}

impl Snapshots {
    pub(in crate::storage) fn list(dir: &Dir, header: &Header) -> io::Result<Self> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for entry in dir.list()? {
            if seq(&entry.name).is_some() {
                match Summary::read(dir, &entry.name, header)? {
                    Ok(summary) => sound.push(summary),
                    Err(damage) => damaged.push(damage),
                }
            }
        }
        sound.sort_by_key(|summary| Reverse((summary.last.number, summary.last.head.seq)));
        let origin = sound.iter().position(|summary| summary.is_origin);
        let older = sound.split_off(origin.map_or(sound.len(), |origin| origin + 1));
        let void = older.into_iter().map(|summary| summary.name).collect();
        Ok(Self { sound, damaged, void })
    }

    /// The names of those that can never be loaded.
    pub(in crate::storage) fn useless(&self) -> impl Iterator<Item = &String> {
        self.damaged.iter().map(|damage| &damage.file).chain(&self.void)
    }
}

impl Summary {
    pub(in crate::storage) fn read(
        dir: &Dir,
        file_name: &str,
        header: &Header,
    ) -> io::Result<Result<Self, Damage>> {
        let damage = |offset, what| Ok(Err(Damage { file: file_name.to_owned(), offset, what }));
        let file = dir.open(file_name)?;
        let bytes = file.len()?;
        let Some(trailer_at) = bytes.checked_sub(TRAILER as u64).filter(|&at| at >= HEADER as u64)
        else {
            return damage(0, "the file was cut");
        };
        let (mut front, mut back) = ([0; HEADER], [0; TRAILER]);
        read_exact_at(&*file, &mut front, 0)?;
        read_exact_at(&*file, &mut back, trailer_at)?;
        let Some(front) = checked(&front) else { return damage(0, "the header is damaged") };
        let Some(back) = checked(&back) else { return damage(trailer_at, "the end is damaged") };
        let mut front = Fields(front);
        if (front.array(), front.u32()) != (*MAGIC, header.format()) {
            return damage(0, "this is no snapshot");
        }
        if front.u64() != header.filter() {
            return damage(0, "this belongs to another filter");
        }
        if front.u64() != header.shard_bytes() {
            return damage(0, "its shards are of another size");
        }
        let begun = front.u64();
        let mut back = Fields(back);
        let (first, last, finished) = (back.position(), back.position(), back.u64());
        let is_origin = back.u8() == 1;
        if name(last.head.seq) != file_name {
            return damage(trailer_at, "the file was renamed");
        }
        let mut count = [0; 8];
        let count_at = trailer_at.checked_sub(TOMBSTONES_END as u64);
        if let Some(count_at) = count_at {
            read_exact_at(&*file, &mut count, count_at)?;
        }
        let tombstones = u64::from_le_bytes(count);
        let size = tombstones.checked_mul(TOMBSTONE as u64);
        let end = size.and_then(|size| count_at?.checked_sub(size));
        let Some(end) = end.filter(|&end| end >= HEADER as u64) else {
            return damage(count_at.unwrap_or(0), "the tombstones are damaged");
        };
        let name = file_name.to_owned();
        Ok(Ok(Self { name, bytes, end, tombstones, first, last, begun, finished, is_origin }))
    }

    /// Returns true if a history begins with it, and with an empty filter.
    pub(in crate::storage) fn is_empty(&self, dir: &Dir, header: &Header) -> io::Result<bool> {
        if !self.is_origin || EMPTY.contains(&self.bytes) {
            return Ok(self.is_origin);
        }
        // Without shards it has a layer from its beginning.
        Ok(!header.has_shards() && self.whole(dir)?.is_ok_and(|whole| whole.count.keys == 0))
    }

    /// Gives every shard to `filter`, which is empty. `Err` inside: it was damaged, and part of it
    /// may have been given.
    pub(in crate::storage) fn load(
        &self,
        dir: &Dir,
        header: &Header,
        filter: &mut dyn Restore,
    ) -> io::Result<Result<(), Damage>> {
        let loaded = if header.has_shards() {
            self.sections(dir, header, |section, body| {
                let bytes = body.read()?;
                Ok(bytes.map(|bytes| filter.load(section.shard, section.count, section.at, bytes)))
            })?
        } else {
            self.load_whole(dir, header, filter)?
        };
        match loaded {
            Ok(()) => Ok(self.tombstones(dir)?.map(|ids| {
                for (shard, id) in ids {
                    filter.load_tombstone(shard, id);
                }
            })),
            damaged => Ok(damaged),
        }
    }

    /// What was forgotten and has not passed again.
    pub(in crate::storage) fn tombstones(
        &self,
        dir: &Dir,
    ) -> io::Result<Result<Vec<(ShardId, u128)>, Damage>> {
        if self.end + TRAILER as u64 == self.bytes {
            return Ok(Ok(Vec::new()));
        }
        let length = self.bytes - TRAILER as u64 - self.end;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        read_exact_at(&*dir.open(&self.name)?, &mut bytes, self.end)?;
        let read = checked(&bytes).map(|checked| {
            let each = checked[..checked.len() - size_of::<u64>()].chunks_exact(TOMBSTONE);
            each.map(|each| {
                let mut fields = Fields(each);
                let shard = ShardId::kept(fields.u8());
                (shard, u128::from_le_bytes(fields.array()))
            })
            .collect()
        });
        let damage = || {
            let (file, offset) = (self.name.clone(), self.end);
            Damage { file, offset, what: "the tombstones are damaged" }
        };
        Ok(read.ok_or_else(damage))
    }

    /// Calls `visit` with every section, checked, and its body, which may be left unread.
    pub(in crate::storage) fn sections(
        &self,
        dir: &Dir,
        header: &Header,
        mut visit: impl FnMut(Section, Body<'_>) -> io::Result<Result<(), Damage>>,
    ) -> io::Result<Result<(), Damage>> {
        let file = dir.open(&self.name)?;
        let damage = |offset, what| Ok(Err(Damage { file: self.name.clone(), offset, what }));
        let (mut offset, end) = (HEADER as u64, self.end);
        let (mut lowest, mut highest) = (None::<Position>, None::<Position>);
        for shard in ShardId::all() {
            if end - offset < SECTION as u64 {
                return damage(offset, "the file was cut");
            }
            let mut head = [0; SECTION];
            read_exact_at(&*file, &mut head, offset)?;
            let Some(section) = Section::decode(&head, shard) else {
                return damage(offset, "the head of a shard is damaged");
            };
            offset += SECTION as u64;
            let length = if section.is_empty { 0 } else { header.shard_bytes() };
            if end - offset < length {
                return damage(offset, "the file was cut");
            }
            let body = Body { summary: self, file: &*file, offset, length, crc: section.crc };
            if let Err(damage) = visit(section, body)? {
                return Ok(Err(damage));
            }
            offset += length;
            if lowest.is_none_or(|lowest| section.at.number < lowest.number) {
                lowest = Some(section.at);
            }
            if highest.is_none_or(|highest| section.at.number > highest.number) {
                highest = Some(section.at);
            }
        }
        if offset != end {
            return damage(offset, "more follows than all shards");
        }
        if (lowest, highest) != (Some(self.first), Some(self.last)) {
            return damage(end, "the end is not that of these shards");
        }
        Ok(Ok(()))
    }
}

impl Section {
    /// Reads the head of the section of `shard`.
    fn decode(bytes: &[u8; SECTION], shard: ShardId) -> Option<Self> {
        let mut fields = Fields(checked(bytes)?);
        if usize::from(fields.u8()) != shard.index() {
            return None;
        }
        let is_empty = match fields.u8() {
            0 => false,
            1 => true,
            _ => return None,
        };
        let at = fields.position();
        let count = Count { keys: fields.u64(), ones: fields.u64() };
        Some(Self { shard, at, count, is_empty, crc: fields.u32() })
    }
}

/// The bits of a shard, not read yet.
pub(in crate::storage) struct Body<'a> {
    summary: &'a Summary,
    file: &'a dyn DiskFile,
    offset: u64,
    length: u64,
    crc: u32,
}

impl Body<'_> {
    /// Where in the file they are: their first byte, how many they are, and their CRC.
    pub(in crate::storage) fn place(&self) -> (u64, u64, u32) {
        (self.offset, self.length, self.crc)
    }

    /// Reads all of them.
    pub(in crate::storage) fn read(self) -> io::Result<Result<Vec<u8>, Damage>> {
        let mut bytes = vec![0; usize::try_from(self.length).map_err(io::Error::other)?];
        read_exact_at(self.file, &mut bytes, self.offset)?;
        if crc32c::crc32c(&bytes) != self.crc {
            let (file, offset) = (self.summary.name.clone(), self.offset);
            return Ok(Err(Damage { file, offset, what: "the bits of a shard are damaged" }));
        }
        Ok(Ok(bytes))
    }
}
