//! Nameprep (RFC 3491), the preparation of a label before it is encoded.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_canonical;

use super::tables::{CLASSES, FOLDED};

/// Class of a letter after mapping and normalisation, from tables C and D of RFC 3454.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    /// Letter of table D.2, written from left to right.
    LeftToRight,
    /// Letter of table D.1, written from right to left.
    RightToLeft,
    /// Prohibited letter: tables C.1.2, C.2.2 and C.3 to C.9.
    Prohibited,
}

/// Maps, normalises and checks `label`, which has been through NFKC. Returns `None` if Python's
/// `encodings.idna.nameprep` raises an exception.
///
/// Nameprep requires the NFKC of Unicode 3.2. That NFKC does not decompose code points that Unicode
/// added later. The label is already in the current NFKC, so only canonical composites can still be
/// decomposed. The final NFKC composes them again, whatever letter follows. So the result is the
/// same as with the NFKC of Unicode 3.2.
pub(super) fn prepare(label: &str) -> Option<String> {
    let mut mapped = String::with_capacity(label.len());
    for letter in label.chars().filter(|&letter| !is_mapped_to_nothing(letter)) {
        // Each part of a letter is mapped separately, because the parts are composed after the
        // mapping.
        decompose_canonical(letter, |part| {
            match FOLDED.iter().find(|&&(folded, _)| folded == part) {
                Some((_, fold)) => mapped.push_str(fold),
                None => mapped.extend(part.to_lowercase()),
            }
        });
    }
    let prepared: String = mapped.nfkc().collect();
    is_allowed(&prepared).then_some(prepared)
}

/// Returns true for the letters that nameprep removes (RFC 3454, table B.1).
fn is_mapped_to_nothing(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{1806}' | '\u{180b}'..='\u{180d}' | '\u{200b}'..='\u{200d}'
            | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// Returns true if a label has no prohibited letter and obeys RFC 3454's rule for right-to-left
/// text. A label with a right-to-left letter must begin and end with a right-to-left letter, and
/// contain no left-to-right letter.
fn is_allowed(label: &str) -> bool {
    let classes = || label.chars().map(class);
    if classes().any(|class| class == Class::Prohibited) {
        return false;
    }
    let right_to_left = |class: Option<Class>| class == Some(Class::RightToLeft);
    !classes().any(|class| class == Class::RightToLeft)
        || !classes().any(|class| class == Class::LeftToRight)
            && right_to_left(classes().next())
            && right_to_left(classes().next_back())
}

fn class(letter: char) -> Class {
    let code = u32::from(letter);
    let range = CLASSES.partition_point(|&entry| entry >> 2 <= code);
    // The table begins at U+0000, so a range begins at or before each code point.
    match CLASSES[range.saturating_sub(1)] & 3 {
        0 => Class::Other,
        1 => Class::LeftToRight,
        2 => Class::RightToLeft,
        _ => Class::Prohibited,
    }
}
