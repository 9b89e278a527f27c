//! Functions that escape text for people. So text from outside, such as a URL in a log line, cannot
//! move the cursor or hide itself.
//!
//! Items, keys, file names and the texts of servers can hold any bytes. All text for people passes
//! through this module. Rows of data for programs do not.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};
use std::str::Utf8Chunk;

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

/// Character that stands for the text that was cut off.
const CUT: char = '…';

/// Number of rows and columns of standard output, if it is a terminal that tells its size.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some((size.ws_row.into(), size.ws_col.into())).filter(|size| *size != (0, 0))
}

/// Shows bytes as text, and cuts the text to `columns` if that is set. Characters that move the
/// cursor, change colours or are invisible become Rust escapes. Bytes that are not UTF-8 become
/// escapes like `\xff`.
pub(crate) fn printable(bytes: &[u8], columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(usize::MAX);
    // `cut` is the length of the longest start of the text that leaves a column free for `CUT`.
    let (mut text, mut width, mut cut) = (String::new(), 0, 0);
    for c in bytes.utf8_chunks().flat_map(|chunk| escaped(&chunk)) {
        width += c.width().unwrap_or(0);
        if width > columns {
            text.truncate(cut);
            text.extend((columns > 0).then_some(CUT));
            break;
        }
        text.push(c);
        if width < columns {
            cut = text.len();
        }
    }
    text
}

/// Returns the characters to show for a chunk of bytes.
fn escaped<'a>(chunk: &Utf8Chunk<'a>) -> impl Iterator<Item = char> + use<'a> {
    let valid = chunk.valid().chars().flat_map(|c| {
        // Quotes and backslashes are harmless: they are shown without the backslash of the escape.
        c.escape_debug().skip(usize::from(matches!(c, '\'' | '"' | '\\')))
    });
    let invalid = chunk.invalid().iter().flat_map(|byte| byte.escape_ascii());
    valid.chain(invalid.map(char::from))
}

/// Writes a value as a line of JSON, with the escapes of [`printable`].
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_text(&serde_json::to_string(value)?))
}

/// Replaces characters in JSON by escapes like [`printable`], but keeps line feeds between values.
pub(crate) fn json_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // A character that needs an escape can only be in a JSON string.
        if matches!(c, '\'' | '"' | '\\' | '\n') || c.escape_debug().len() == 1 {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Number of columns of a printable text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().filter_map(UnicodeWidthChar::width).sum()
}

/// Writes a line to standard error.
pub(crate) fn say(words: impl Display) {
    let line = printable(words.to_string().as_bytes(), None);
    // If standard error fails, no other output is left for a message.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Standard output for text that people read, with escapes.
pub(crate) fn stdout() -> Plain<io::StdoutLock<'static>> {
    Plain(io::stdout().lock())
}

/// Standard error for messages of several lines, with escapes.
pub(crate) fn stderr() -> Plain<io::StderrLock<'static>> {
    Plain(io::stderr().lock())
}

/// Standard output for rows of data. The rows are escaped only if the output is a terminal.
pub(crate) fn rows() -> Box<dyn Write> {
    let out = io::stdout().lock();
    if out.is_terminal() { Box::new(Plain(out)) } else { Box::new(out) }
}

/// Writer that escapes like [`printable`], but keeps line feeds and tabs. A character must not be
/// split between two writes.
#[derive(Debug)]
pub(crate) struct Plain<W>(W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| b"\n\t".contains(byte)) {
            let (text, end) = match part.split_last() {
                Some((b'\n' | b'\t', text)) => part.split_at(text.len()),
                _ => (part, &[][..]),
            };
            self.0.write_all(printable(text, None).as_bytes())?;
            self.0.write_all(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_characters_reach_a_terminal() {
        for (bytes, shown) in [
            (&b"http://a/?b='\"\\"[..], "http://a/?b='\"\\"),
            (b"a\x1b[31mred\x07\x7f", "a\\u{1b}[31mred\\u{7}\\u{7f}"),
            (b"a\tb\r\nc\0", "a\\tb\\r\\nc\\0"),
            (b"\xff\x80a\xc3", "\\xff\\x80a\\xc3"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("\u{202e}evil\u{2028}\u{feff}".as_bytes(), "\\u{202e}evil\\u{2028}\\u{feff}"),
            ("grün 漢字".as_bytes(), "grün 漢字"),
            (b"", ""),
        ] {
            assert_eq!(printable(bytes, None), shown);
            assert!(!printable(bytes, None).contains(char::is_control));
        }
    }

    #[test]
    fn a_writer_escapes_all_but_line_feeds_and_tabs() {
        let mut plain = Plain(Vec::new());
        plain.write_all("a\tb\x1b[2J\r\n\u{9b}\u{202e}c\n".as_bytes()).unwrap();
        plain.write_all(b"\xff\n").unwrap();
        let shown = "a\tb\\u{1b}[2J\\r\n\\u{9b}\\u{202e}c\n\\xff\n";
        assert_eq!(String::from_utf8(plain.0).unwrap(), shown);
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n\"ü漢\\";
        let line = json_line(&text).unwrap();
        assert_eq!(line, r#""a\u001b\u007f\u009b\u202e\udb40\udc41\n\"ü漢\\""#);
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }

    #[test]
    fn a_line_is_cut_to_its_columns() {
        for (text, columns, shown) in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("漢字漢", 6, "漢字漢"),
            ("漢字漢字", 6, "漢字…"),
            ("漢字漢字", 5, "漢字…"),
            ("abc\u{1b}", 5, "abc\\…"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(printable(text.as_bytes(), Some(columns)), shown, "{text} {columns}");
        }
    }
}
