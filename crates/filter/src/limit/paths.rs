//! Pattern of a path: paths that differ only in numbers, dates and ids have the same pattern.

/// Minimum number of characters of a hexadecimal id.
const HEX: usize = 8;
/// Places of the hyphens in a UUID (RFC 9562).
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Number of characters of a UUID.
const UUID: usize = 36;

/// Returns the pattern of a path, with `*` for each number, date and id:
///
/// - UUIDs,
/// - words of at least 8 hexadecimal digits, among them a digit from 0 to 9,
/// - runs of decimal digits, also within a word,
/// - several of these with one of the characters `-._:` between them, as in a date.
///
/// Escapes such as `%C3` stay as they are.
pub fn pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.bytes().next() {
        let length = if first == b'%' {
            rest.len().min(3)
        } else if first.is_ascii_alphanumeric() {
            rest.bytes().take_while(u8::is_ascii_alphanumeric).count()
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        if is_uuid(rest) {
            push_star(&mut pattern);
            rest = &rest[UUID..];
            continue;
        }
        // An escape may end within a character of a URL that is not canonical.
        let length = rest.ceil_char_boundary(length);
        let (word, later) = rest.split_at(length);
        rest = later;
        if first.is_ascii_alphanumeric() {
            push_word(&mut pattern, word);
        } else {
            pattern.push_str(word);
        }
    }
    pattern
}

fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.get(UUID).is_none_or(|next| !next.is_ascii_alphanumeric());
    ends && bytes.len() >= UUID
        && (0..UUID).all(|at| {
            if HYPHENS.contains(&at) { bytes[at] == b'-' } else { bytes[at].is_ascii_hexdigit() }
        })
}

/// Appends a word of letters and digits, with `*` for its numbers.
fn push_word(pattern: &mut String, word: &str) {
    let is_hex = word.len() >= HEX && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && word.bytes().any(|byte| byte.is_ascii_digit()) {
        return push_star(pattern);
    }
    let mut was_digit = false;
    for character in word.chars() {
        let is_digit = character.is_ascii_digit();
        if !is_digit {
            pattern.push(character);
        } else if !was_digit {
            push_star(pattern);
        }
        was_digit = is_digit;
    }
}

/// Appends `*`, unless only a separator is between it and the one before.
fn push_star(pattern: &mut String) {
    let joins = pattern.strip_suffix(['-', '.', '_', ':']).is_some_and(|it| it.ends_with('*'));
    if joins {
        pattern.pop();
    } else {
        pattern.push('*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_differ_in_numbers_dates_and_ids_have_one_pattern() {
        for (path, expected) in [
            ("/", "/"),
            ("/calendar/2026/11", "/calendar/*/*"),
            ("/calendar/2026-11-03", "/calendar/*"),
            ("/calendar/20261103", "/calendar/*"),
            ("/item12-3.html", "/item*.html"),
            ("/a/550e8400-e29b-41d4-a716-446655440000/b", "/a/*/b"),
            ("/a/550e8400-e29b-41d4-a716-446655440000b", "/a/*-e*b-*d*-a*"),
            ("/commit/9a0364b9e99bb480dd25e1f0284c8555", "/commit/*"),
            ("/commit/deadbeef1", "/commit/*"),
            ("/facade/deadbeef", "/facade/deadbeef"),
            ("/cafe123/x2y", "/cafe*/x*y"),
            ("/caf%C3%A9/%D0%BF1", "/caf%C3%A9/%D0%BF*"),
            ("/%", "/%"),
            ("/%é", "/%é"),
            ("/v1.2.3/", "/v*/"),
            ("/1--2/*-1", "/*--*/*"),
        ] {
            assert_eq!(pattern(path), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_has_itself_as_its_pattern() {
        for path in
            ["/calendar/2026-11-03/x9", "/a-1_2/%C3", "/550e8400-e29b-41d4-a716-446655440000"]
        {
            let once = pattern(path);
            assert_eq!(pattern(&once), once);
        }
    }
}
