//! Records that are not plain lines: lines of which only a part is read, records of a table in CSV,
//! and the entries of a sitemap.

mod csv;
mod sitemap;

use std::sync::Arc;

use super::feed::{FeedError, Page, Place};
use super::input::{Cutter, Input, LINE_MAX};
use crate::item::Items;
use crate::item::key::{NoKey, RequestFields, find_url};
pub(super) use csv::Table;
pub(super) use sitemap::Sitemap;

/// Records of an input, and the part of each that is read as an item.
#[derive(Debug, Clone, Default)]
pub enum Records {
    /// Lines, which are read as a whole.
    #[default]
    Lines,
    /// Lines with a JSON object, of which these fields are read.
    Fields(RequestFields),
    /// Lines of which the first URL is read.
    Find,
    /// Records of a table in CSV, of which one column is read.
    Table {
        /// Column with the items.
        column: Column,
        /// Byte between two columns.
        delimiter: u8,
    },
    /// URLs of the `<loc>` of a sitemap, or of an index of sitemaps.
    Sitemap,
}

/// Choice of a column, by its place or its name.
#[derive(Debug, Clone)]
pub enum Column {
    /// Number of the column, from 1 on.
    Number(usize),
    /// Name of the column. The first record of each file has the names.
    Name(String),
}

impl Records {
    /// Adds the key of a line to `key`. Is not called for a whole line.
    pub(super) fn key_of(&self, line: &[u8], key: &mut Vec<u8>) -> Result<(), NoKey> {
        if let Self::Fields(fields) = self {
            return fields.read(line, key);
        }
        key.extend_from_slice(&line[find_url(line)?]);
        Ok(())
    }
}

/// Format whose records have no fixed end.
pub(super) trait Format: Send + 'static {
    /// Unit in which messages count, such as `line`.
    const UNIT: &'static str;

    /// Question about the cause of a record that is too long.
    const WHY_LONG: &'static str = "is a quote not closed?";

    /// Cuts complete records off the front of `bytes`. Returns the number of bytes that are used
    /// up, and the records. At the end of the input, `is_end` is true.
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Result<(usize, CutRecords), String>;
}

/// Whole lines, of which all or a part is read.
pub(super) struct Lines {
    records: Records,
    /// Number of bytes of the first line that were already searched for a line feed.
    begun: usize,
}

impl Lines {
    pub(super) fn new(records: Records) -> Self {
        Self { records, begun: 0 }
    }
}

impl Format for Lines {
    const UNIT: &'static str = "line";
    const WHY_LONG: &'static str = "is this a file of lines?";

    /// The last line needs no line feed. After a failed read, a line without a line feed may be
    /// incomplete and is not used.
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Result<(usize, CutRecords), String> {
        let last = memchr::memrchr(b'\n', &bytes[self.begun..]).map(|at| self.begun + at + 1);
        let used = if is_end { bytes.len() } else { last.unwrap_or(0) };
        self.begun = if used == 0 { bytes.len() } else { 0 };
        let mut lines = Vec::with_capacity(used + 1);
        lines.extend_from_slice(&bytes[..used]);
        if lines.last().is_some_and(|&last| last != b'\n') {
            lines.push(b'\n');
        }
        let items = match &self.records {
            Records::Lines => Items::from_lines(lines),
            records => Items::from_lines_by(lines, |line, key| records.key_of(line, key)),
        };
        Ok((used, CutRecords { items, ..CutRecords::default() }))
    }
}

/// Records that were cut.
#[derive(Default)]
pub(super) struct CutRecords {
    items: Items,
    /// Number of elements before the first record that are not records, such as a header.
    skipped: u64,
    header: Option<Box<[u8]>>,
}

/// Cuts pages of records.
pub(super) struct RecordCutter<F> {
    name: Arc<str>,
    format: F,
    /// Number of the next record.
    number: u64,
}

impl<F: Format> RecordCutter<F> {
    pub(super) fn new(name: Arc<str>, format: F) -> Self {
        Self { name, format, number: 1 }
    }

    fn refuse<T>(&self, reason: &str) -> Result<T, FeedError> {
        Err(FeedError::Input(format!("{}: {reason}", self.name)))
    }
}

impl<F: Format> Cutter for RecordCutter<F> {
    fn next(&mut self, input: &mut Input) -> Result<Option<Page>, FeedError> {
        loop {
            input.fill();
            let (used, cut) = match self.format.cut(input.bytes(), input.is_end()) {
                Ok(cut) => cut,
                Err(reason) => return self.refuse(&reason),
            };
            input.drop_front(used);
            if used > 0 {
                let CutRecords { items, skipped, header } = cut;
                let number = self.number + skipped;
                self.number = number + items.len() as u64;
                let place = Place { name: Arc::clone(&self.name), unit: F::UNIT, number };
                return Ok(Some(Page { items, place, header, ..Page::default() }));
            }
            if input.has_ended() {
                input.finish(|_| format!("{} {}", F::UNIT, self.number - 1))?;
                return Ok(None);
            }
            if input.bytes().len() > LINE_MAX {
                let (unit, number) = (F::UNIT, self.number);
                let reason = format!("{unit} {number} is longer than 512 MiB; {}", F::WHY_LONG);
                return self.refuse(&reason);
            }
            input.grow();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Cuts a text of which `step` more bytes are read each time. Returns each record with its key.
    pub(super) fn cut(
        mut format: impl Format,
        text: &str,
        step: usize,
    ) -> Result<Vec<String>, String> {
        let (mut rest, mut read, mut cuts) = (text.as_bytes(), 0, Vec::new());
        loop {
            read = rest.len().min(read + step);
            let is_end = read == rest.len();
            let (used, cut) = format.cut(&rest[..read], is_end)?;
            let shown = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            cuts.extend(cut.header.map(|header| format!("header {}", shown(&header))));
            for index in 0..cut.items.len() {
                let key = cut.items.key(index).map(shown);
                let key = key.unwrap_or_else(|reason| format!("{reason:?}"));
                cuts.push(format!("{} -> {key}", shown(cut.items.get(index))));
            }
            (rest, read) = (&rest[used..], read - used);
            if is_end && used == 0 {
                return Ok(cuts);
            }
        }
    }
}
