//! Inline commands, as people type them: words separated by blanks, with the quotes of Redis.

/// Splits a line into words. Returns `None` if a quote is not closed, or if a closing quote is
/// followed by a byte other than a blank.
pub(super) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = line.trim_ascii_start();
    let mut words = Vec::new();
    while !rest.is_empty() {
        let mut word = Vec::new();
        while let Some((&first, behind)) = rest.split_first() {
            rest = match first {
                b'"' | b'\'' => quoted(first, behind, &mut word)?,
                blank if blank.is_ascii_whitespace() => break,
                byte => {
                    word.push(byte);
                    behind
                }
            };
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// Appends the text before the closing quote to `word`, and returns the bytes after the quote.
/// Double quotes permit all escapes, single quotes only `\'`.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let is_double = quote == b'"';
    loop {
        let (byte, behind) = match rest {
            [first, behind @ ..] if *first == quote => return ended(behind),
            [b'\\', b'\'', behind @ ..] => (b'\'', behind),
            [b'\\', b'x', high, low, behind @ ..]
                if is_double && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                (u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?, behind)
            }
            [b'\\', escaped, behind @ ..] if is_double => (unescaped(*escaped), behind),
            [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        word.push(byte);
        rest = behind;
    }
}

/// Returns the byte that a letter after a backslash stands for.
fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// Checks that the word ends with its closing quote. `rest` are the bytes after the quote.
fn ended(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_redis_splits_them() {
        for (line, wanted) in [
            ("", Some(vec![])),
            ("  a\tb  ", Some(vec!["a", "b"])),
            (r#"a "b c" 'd e'"#, Some(vec!["a", "b c", "d e"])),
            (r#""\x41\n\q\"" 'it\'s'"#, Some(vec!["A\nq\"", "it's"])),
            (r#""" x"#, Some(vec!["", "x"])),
            (r#"a"b c""#, Some(vec!["ab c"])),
            (r#""a"b"#, None),
            (r#""a"#, None),
            ("'a", None),
            (r#""\"#, None),
        ] {
            let wanted = wanted.map(|it| it.iter().map(|it| it.as_bytes().to_vec()).collect());
            assert_eq!(words(line.as_bytes()), wanted, "{line}");
        }
    }
}
