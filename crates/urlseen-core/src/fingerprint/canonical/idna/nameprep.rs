//! Nameprep (RFC 3491): what happens to a label before it is encoded.

use unicode_normalization::UnicodeNormalization;

use super::tables::{CLASSES, FOLDED};

/// What nameprep makes of a letter once it is mapped and normalised: RFC 3454's tables C and D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    /// Table D.2: letters written from left to right.
    LeftToRight,
    /// Table D.1: letters written from right to left.
    RightToLeft,
    /// Tables C.1.2, C.2.2 and C.3 to C.9.
    Prohibited,
}

/// Maps, normalises and checks `label`, which has been through NFKC; `None` where Python's
/// `encodings.idna.nameprep` raises.
///
/// Nameprep asks for the NFKC of Unicode 3.2, which leaves later code points undecomposed. As the
/// label has been through the current one, only canonical composites are left to decompose, and
/// those come together again whatever stands behind them: the forms are the same here.
pub(super) fn prepare(label: &str) -> Option<String> {
    let mut mapped = String::with_capacity(label.len());
    for letter in label.chars().filter(|&letter| !is_mapped_to_nothing(letter)) {
        match FOLDED.binary_search_by_key(&letter, |&(folded, _)| folded) {
            Ok(at) => mapped.push_str(FOLDED[at].1),
            Err(_) => mapped.extend(letter.to_lowercase()),
        }
    }
    let prepared: String = mapped.nfkc().collect();
    is_allowed(&prepared).then_some(prepared)
}

/// Table B.1.
fn is_mapped_to_nothing(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{1806}' | '\u{180b}'..='\u{180d}' | '\u{200b}'..='\u{200d}'
            | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// No prohibited letter, and RFC 3454's rule for labels that are written from right to left: no
/// letter of the other direction, and such letters at both ends.
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
    // The table begins at U+0000, so there is a range before.
    match CLASSES[range.saturating_sub(1)] & 3 {
        0 => Class::Other,
        1 => Class::LeftToRight,
        2 => Class::RightToLeft,
        _ => Class::Prohibited,
    }
}
