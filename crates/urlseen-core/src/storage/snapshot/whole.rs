//! Snapshots of a filter that is in one piece.

use std::io::{self, Read, Write};

use super::super::damage::Damage;
use super::super::dir::Dir;
use super::super::disk::DiskFile;
use super::super::encoding::{Fields, checked, push_crc, push_position};
use super::super::header::Header;
use super::super::restore::Restore;
use super::reader::Summary;
use super::sections::Sections;
use super::{HEADER, WHOLE};
use crate::filter::redisbloom::dump::{self, DumpError, DumpFormatError};
use crate::filter::redisbloom::{Filter, Layer};
use crate::filter::{Count, SHARDS};
use crate::storage::head::Position;

/// The filter as a snapshot has it, but for its bits.
#[derive(Debug, Clone, Copy)]
pub(in crate::storage) struct Whole {
    pub(in crate::storage) at: Position,
    pub(in crate::storage) count: Count,
    /// Bytes of its body.
    pub bytes: u64,
}

impl Sections {
    /// Writes all of a filter; `None` for one that nothing was ever added to. `pause` is called
    /// after each chunk.
    pub(in crate::storage) fn write_whole(
        &mut self,
        filter: Option<&Filter>,
        at: Position,
        pause: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        assert_eq!(self.next, 0, "a filter in one piece is written once");
        (self.next, self.ends) = (SHARDS, Some((at, at)));
        let start = self.buffer.len();
        push_position(&mut self.buffer, at);
        let ones = |filter: &Filter| filter.layers().iter().map(|layer| Layer::ones(layer)).sum();
        let (keys, ones): (u64, u64) =
            filter.map_or((0, 0), |filter| (filter.size(), ones(filter)));
        for field in [keys, ones, filter.map_or(0, dump::len)] {
            self.buffer.extend(field.to_le_bytes());
        }
        push_crc(&mut self.buffer, start);
        let Some(filter) = filter else { return Ok(()) };
        dump::write(filter, &mut Body { sections: self, pause })
    }
}

/// Takes the body of a snapshot.
struct Body<'a> {
    sections: &'a mut Sections,
    pause: &'a mut dyn FnMut() -> io::Result<()>,
}

impl Write for Body<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// The most that is written without a pause.
        const STEP: usize = 1 << 20;
        let bytes = &bytes[..bytes.len().min(STEP)];
        self.sections.put_bytes(bytes)?;
        if bytes.len() == STEP {
            (self.pause)()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Summary {
    /// What the snapshot says of a filter in one piece.
    pub(in crate::storage) fn whole(&self, dir: &Dir) -> io::Result<Result<Whole, Damage>> {
        let damage = |offset, what| Ok(Err(Damage { file: self.name.clone(), offset, what }));
        let file = dir.open(&self.name)?;
        let (head_at, end) = (HEADER as u64, self.end);
        let mut head = [0; WHOLE];
        if end - head_at < WHOLE as u64 {
            return damage(head_at, "the file was cut");
        }
        super::super::disk::read_exact_at(&*file, &mut head, head_at)?;
        let Some(head) = checked(&head) else {
            return damage(head_at, "the head of the filter is damaged");
        };
        let mut fields = Fields(head);
        let at = fields.position();
        let count = Count { keys: fields.u64(), ones: fields.u64() };
        let bytes = fields.u64();
        if (self.first, self.last) != (at, at) {
            return damage(end, "the end is not that of this filter");
        }
        if end - head_at - WHOLE as u64 != bytes {
            return damage(head_at, "the filter has another length");
        }
        Ok(Ok(Whole { at, count, bytes }))
    }

    /// Gives the filter to `filter`, which is empty.
    pub(super) fn load_whole(
        &self,
        dir: &Dir,
        header: &Header,
        filter: &mut dyn Restore,
    ) -> io::Result<Result<(), Damage>> {
        let whole = match self.whole(dir)? {
            Ok(whole) => whole,
            Err(damage) => return Ok(Err(damage)),
        };
        let begin = (HEADER + WHOLE) as u64;
        let damage = |offset, what| Ok(Err(Damage { file: self.name.clone(), offset, what }));
        if whole.bytes == 0 {
            if header.spec().filter.parameters.is_imported() {
                return damage(
                    begin,
                    "the import of the filter was broken off; give the same command again",
                );
            }
            filter.load_whole(None, whole.at);
            return Ok(Ok(()));
        }
        let file = dir.open(&self.name)?;
        let mut body = Bytes { file: &*file, offset: begin, left: whole.bytes };
        match dump::read(&mut body, u64::MAX) {
            Ok(read) => {
                filter.load_whole(Some(read), whole.at);
                Ok(Ok(()))
            }
            Err(DumpError { problem: DumpFormatError::Io(error), .. }) => Err(error),
            Err(DumpError { offset, .. }) => {
                damage(begin + offset, "the bits of the filter are damaged")
            }
        }
    }
}

/// Bytes of a file, from front to back.
struct Bytes<'a> {
    file: &'a dyn DiskFile,
    offset: u64,
    left: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
