//! Tables in CSV, of which one column is read.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{Column, CutRecords, Format};
use crate::item::Items;
use crate::item::key::NoKey;

/// Table in CSV. A record can have line feeds in quotes.
pub(crate) struct Table {
    reader: Reader,
    column: Column,
    delimiter: u8,
    /// Index of the column, once it is known.
    index: Option<usize>,
    /// Cells of a record, without quotes, and the end of each.
    cells: Vec<u8>,
    ends: Vec<usize>,
}

impl Table {
    pub(crate) fn new(column: Column, delimiter: u8) -> Self {
        let mut reader = ReaderBuilder::new();
        // A carriage return before the line feed stays a part of the record, which is printed.
        reader.delimiter(delimiter).terminator(Terminator::Any(b'\n'));
        let index = if let Column::Number(number) = column { Some(number - 1) } else { None };
        let (cells, ends) = (vec![0; 1 << 12], vec![0; 64]);
        Self { reader: reader.build(), column, delimiter, index, cells, ends }
    }

    /// Reads the record at the front of `bytes`. Returns its length and the number of its cells;
    /// `None` if it is not complete.
    fn read(&mut self, bytes: &[u8], is_end: bool) -> Option<(usize, usize)> {
        let (mut read, mut written, mut cells) = (0, 0, 0);
        self.reader.reset();
        loop {
            let (result, input, output, ends) = self.reader.read_record(
                &bytes[read..],
                &mut self.cells[written..],
                &mut self.ends[cells..],
            );
            (read, written, cells) = (read + input, written + output, cells + ends);
            match result {
                ReadRecordResult::Record => return Some((read, cells)),
                ReadRecordResult::OutputFull => self.cells.resize(2 * self.cells.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                // The next call has no input, which tells the reader that the record ends.
                ReadRecordResult::InputEmpty if is_end => {}
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return None,
            }
        }
    }

    /// Returns a cell of the record that was read.
    fn cell(&self, index: usize, cells: usize) -> Option<&[u8]> {
        let end = *self.ends[..cells].get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let cell = &self.cells[start..end];
        let is_last = index + 1 == cells;
        Some(if is_last { cell.strip_suffix(b"\r").unwrap_or(cell) } else { cell })
    }

    /// Finds the column in the header that was read.
    fn find(&self, name: &str, cells: usize) -> Result<usize, String> {
        let names = || (0..cells).filter_map(|index| self.cell(index, cells));
        names().position(|cell| cell == name.as_bytes()).ok_or_else(|| {
            let names: Vec<_> = names().map(String::from_utf8_lossy).collect();
            let delimiter = char::from(self.delimiter);
            format!(
                "no column is named {name:?}. The columns, with the delimiter {delimiter:?}: {}",
                names.join(", ")
            )
        })
    }
}

impl Format for Table {
    const UNIT: &'static str = "record";

    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Result<(usize, CutRecords), String> {
        let (mut used, mut cut) = (0, CutRecords::default());
        let (mut places, mut keys, mut decoded) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((length, cells)) = self.read(&bytes[used..], is_end) {
            let place = line_at(bytes, used..used + length);
            used += length;
            let record = &bytes[place.clone()];
            let Some(index) = self.index else {
                let Column::Name(name) = &self.column else { unreachable!("a number is known") };
                self.index = Some(self.find(name, cells)?);
                cut = CutRecords { skipped: 1, header: Some(record.into()), ..cut };
                continue;
            };
            if record == b"\r" {
                continue;
            }
            let quotes = || memchr::memchr_iter(b'"', record).count();
            let is_open = is_end && used == bytes.len() && quotes() % 2 == 1;
            keys.push(match self.cell(index, cells) {
                _ if is_open => Err(NoKey::OpenQuote),
                None => Err(NoKey::NoColumn),
                Some(cell) => {
                    decoded.extend_from_slice(cell);
                    Ok(decoded.len() - cell.len()..decoded.len())
                }
            });
            places.push(place);
        }
        let items = Items::with_keys(bytes[..used].to_vec(), places, &decoded, keys);
        Ok((used, CutRecords { items, ..cut }))
    }
}

/// Returns the place of a record without the line feeds around it.
fn line_at(bytes: &[u8], Range { start, end }: Range<usize>) -> Range<usize> {
    let before = bytes[start..end].iter().take_while(|&&byte| byte == b'\n').count();
    start + before..end - usize::from(bytes[start..end].ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::cut;
    use super::*;

    #[test]
    fn records_of_tables_are_whole_wherever_the_buffer_ends() {
        let table = |column, delimiter| move || Table::new(column, delimiter);
        let name = |name: &str| Column::Name(name.to_owned());
        let text =
            "id,url,note\r\n1,\"http://a/?x=\"\"1\"\",2\",\"two\nlines\"\r\n\r\n2,http://b/\n\n3\n";
        let long = format!("{}\thttp://a/\r\n", "x\t".repeat(5000));
        for step in (1..100).chain([100_000]) {
            let expected = [
                "header id,url,note\r",
                "1,\"http://a/?x=\"\"1\"\",2\",\"two\nlines\"\r -> http://a/?x=\"1\",2",
                "2,http://b/ -> http://b/",
                "3 -> NoColumn",
            ];
            assert_eq!(cut(table(name("url"), b',')(), text, step).unwrap(), expected, "{step}");
            let open = "a;\"http://a/\nb;c";
            let expected = ["a;\"http://a/\nb;c -> OpenQuote"];
            assert_eq!(cut(table(Column::Number(2), b';')(), open, step).unwrap(), expected);
        }
        let keys = cut(table(Column::Number(5002), b'\t')(), &long, 1000).unwrap();
        assert!(keys[0].ends_with("\r -> http://a/"), "{}", keys[0]);
        let refused = cut(table(name("link"), b';')(), text, 100).unwrap_err();
        assert!(refused.contains("\"link\"") && refused.ends_with("id,url,note"), "{refused}");
    }
}
