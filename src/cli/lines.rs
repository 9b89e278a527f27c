//! Input that is read line by line, from files or standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// How much is read at once, in bytes.
const BUFFER: usize = 1 << 18;

/// Where a line stands, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    file: &'a Path,
    line: u64,
}

/// `FILE, line N`.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_standard_input(self.file) {
            write!(f, "standard input, line {}", self.line)
        } else {
            write!(f, "{}, line {}", self.file.display(), self.line)
        }
    }
}

/// Calls `each` with every line of `files`, in order, without its line feed. `-` is standard input,
/// which is also what no file at all stands for.
pub(super) fn for_each(
    files: &[PathBuf],
    mut each: impl FnMut(Place<'_>, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let standard_input = [PathBuf::from("-")];
    for file in if files.is_empty() { &standard_input } else { files } {
        if is_standard_input(file) {
            let mut input = BufReader::with_capacity(BUFFER, io::stdin());
            read(&mut input, file, &mut each)?;
        } else {
            let opened =
                File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
            read(&mut BufReader::with_capacity(BUFFER, opened), file, &mut each)?;
        }
    }
    Ok(())
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Lines that lie in the reader's buffer as a whole are handed on from there.
fn read(
    input: &mut impl BufRead,
    file: &Path,
    each: &mut impl FnMut(Place<'_>, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut place = Place { file, line: 0 };
    let mut begun = Vec::new();
    loop {
        let buffer = input.fill_buf().with_context(|| format!("cannot read {}", file.display()))?;
        if buffer.is_empty() {
            break;
        }
        let length = buffer.len();
        let mut rest = buffer;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            place.line += 1;
            if begun.is_empty() {
                each(place, &rest[..end])?;
            } else {
                begun.extend_from_slice(&rest[..end]);
                each(place, &begun)?;
                begun.clear();
            }
            rest = &rest[end + 1..];
        }
        begun.extend_from_slice(rest);
        input.consume(length);
    }
    if !begun.is_empty() {
        place.line += 1;
        each(place, &begun)?;
    }
    Ok(())
}
