//! ASCII form of internationalised hosts, as w3lib writes them with Python's `idna` codec. This is
//! IDNA 2003 (RFC 3490), not the UTS #46 of browsers: `faß.de` becomes `fass.de`.

mod tables;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, decompose_compatible};

use tables::{CLASSES, CORRECTED, FOLDED, NEWER};

/// Maximum number of letters of a label (a part of a host between dots), by the limit of DNS.
const MAX_LABEL: usize = 63;

/// Prefix of an encoded label.
const ACE_PREFIX: &str = "xn--";

/// Returns the ASCII form of `host`. Returns `None` if Python's codec raises an exception; w3lib
/// then keeps the host unchanged. w3lib 2.5 gives the codec the NFKC of a host, and an old w3lib
/// (`is_old`) the host itself.
///
/// A host that is already ASCII is returned unchanged.
pub(crate) fn encode(host: &str, is_old: bool) -> Option<String> {
    let host = if is_old { host.to_owned() } else { host.nfkc().collect() };
    if host.is_ascii() {
        let mut labels = host.split('.');
        let last = labels.next_back()?;
        // An empty label after a dot at the end stands for the DNS root.
        let fits = labels.all(fits) && last.len() <= MAX_LABEL;
        return fits.then_some(host);
    }
    let labels = host.strip_suffix(is_dot).unwrap_or(&host);
    let mut ascii = String::with_capacity(2 * host.len());
    for label in labels.split(is_dot) {
        if !ascii.is_empty() {
            ascii.push('.');
        }
        push_label(label, is_old, &mut ascii)?;
    }
    if labels.len() < host.len() {
        ascii.push('.');
    }
    Some(ascii)
}

/// Appends the ASCII form of a label, by `ToASCII` of RFC 3490 without `UseSTD3ASCIIRules`.
fn push_label(label: &str, is_old: bool, out: &mut String) -> Option<()> {
    if label.is_ascii() {
        fits(label).then(|| out.push_str(label))
    } else {
        let label = if is_old { normal_3_2(label) } else { normal(label) };
        if !is_allowed(&label) {
            return None;
        }
        if label.is_ascii() {
            return fits(&label).then(|| out.push_str(&label));
        }
        // Each letter takes at least one digit. This check also limits the work of the encoder.
        let too_long = label.chars().count() > MAX_LABEL - ACE_PREFIX.len();
        if too_long || label.starts_with(ACE_PREFIX) {
            return None;
        }
        let start = out.len();
        out.push_str(ACE_PREFIX);
        push_encoded(&label, out);
        (out.len() - start <= MAX_LABEL).then_some(())
    }
}

fn fits(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
}

/// Returns true for the full stops that RFC 3490 treats as dots. NFKC has already converted all of
/// these to plain dots, except the ideographic full stop.
fn is_dot(letter: char) -> bool {
    matches!(letter, '.' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}')
}

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

/// Maps and normalises a label, which has been through NFKC, by nameprep (RFC 3491).
///
/// Nameprep requires the NFKC of Unicode 3.2. That NFKC does not decompose code points that Unicode
/// added later. The label is already in the current NFKC, so only canonical composites can still be
/// decomposed. The final NFKC composes them again, whatever letter follows. So the result is the
/// same as with the NFKC of Unicode 3.2.
fn normal(label: &str) -> String {
    let mut mapped = String::with_capacity(label.len());
    for letter in label.chars().filter(|&letter| !is_mapped_to_nothing(letter)) {
        // Each part of a letter is mapped separately, because the parts are composed after the
        // mapping.
        decompose_canonical(letter, |part| push_folded(part, &mut mapped));
    }
    mapped.nfkc().collect()
}

/// Maps and normalises a label, which has not been through NFKC, by nameprep (RFC 3491).
///
/// The NFKC of Unicode 3.2 leaves a letter that Unicode decomposes since a later version. Such a
/// letter is neither part of a composite nor a combining mark, so the texts before and after it are
/// normalised apart.
fn normal_3_2(label: &str) -> String {
    let (mut normal, mut mapped) = (String::with_capacity(label.len()), String::new());
    for letter in label.chars().filter(|&letter| !is_mapped_to_nothing(letter)) {
        // The lower case of a newer letter may be an older one.
        let lower = letter.to_lowercase().filter(|_| is_newer(letter));
        for letter in lower.chain((!is_newer(letter)).then_some(letter)) {
            if is_newer(letter) {
                normal.extend(mapped.nfkc());
                mapped.clear();
                let corrected = CORRECTED.iter().find(|&&(it, _)| it == letter);
                normal.push(corrected.map_or(letter, |&(_, before)| before));
            } else {
                decompose_compatible(letter, |part| push_folded(part, &mut mapped));
            }
        }
    }
    normal.extend(mapped.nfkc());
    normal
}

/// Returns true if the NFKC of Unicode 3.2 leaves a letter that the current one changes.
fn is_newer(letter: char) -> bool {
    let place = NEWER.binary_search_by_key(&letter, |&(first, _)| first);
    // A range that begins at the letter, or before it.
    let range = place.unwrap_or_else(|next| next.wrapping_sub(1));
    NEWER.get(range).is_some_and(|&(_, last)| letter <= last)
}

/// Appends the fold of a letter that has no decomposition.
fn push_folded(letter: char, out: &mut String) {
    match FOLDED.iter().find(|&&(folded, _)| folded == letter) {
        Some((_, fold)) => out.push_str(fold),
        None => out.extend(letter.to_lowercase()),
    }
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
    let range = CLASSES.binary_search_by_key(&code, |&entry| entry >> 2);
    // The table begins at U+0000, so a range begins at or before each code point.
    match CLASSES[range.unwrap_or_else(|next| next - 1)] & 3 {
        0 => Class::Other,
        1 => Class::LeftToRight,
        2 => Class::RightToLeft,
        _ => Class::Prohibited,
    }
}

const BASE: u32 = 36;
const SKEW: u32 = 38;
const FIRST_BIAS: u32 = 72;
const FIRST_DAMP: u32 = 700;
const DAMP: u32 = 2;

/// Smallest and largest threshold (`tmin`, `tmax`).
const MIN: u32 = 1;
const MAX: u32 = 26;

/// Appends the Punycode (RFC 3492) of a label of at most 63 letters. At that length no number
/// overflows.
fn push_encoded(label: &str, out: &mut String) {
    let start = out.len();
    out.extend(label.chars().filter(char::is_ascii));
    let mut written = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    let mut first = true;
    if written > 0 {
        out.push('-');
    }
    let mut bias = FIRST_BIAS;
    let mut delta = 0;
    // All letters below this one are already written.
    let mut next = 0x80;
    while let Some(letter) = label.chars().map(u32::from).filter(|&letter| letter >= next).min() {
        delta += (letter - next) * (written + 1);
        for other in label.chars().map(u32::from) {
            if other < letter {
                delta += 1;
            } else if other == letter {
                push_number(delta, bias, out);
                written += 1;
                bias = adapted(delta, written, first);
                first = false;
                delta = 0;
            }
        }
        delta += 1;
        next = letter + 1;
    }
}

/// Appends a number in digits whose weight depends on `bias` (RFC 3492, section 3.3).
fn push_number(mut number: u32, bias: u32, out: &mut String) {
    let mut position = BASE;
    loop {
        let threshold = position.saturating_sub(bias).clamp(MIN, MAX);
        if number < threshold {
            out.push(digit(number));
            return;
        }
        number -= threshold;
        out.push(digit(threshold + number % (BASE - threshold)));
        number /= BASE - threshold;
        position += BASE;
    }
}

/// Returns the bias for the next number (RFC 3492, section 3.4).
fn adapted(delta: u32, written: u32, first: bool) -> u32 {
    let mut delta = delta / if first { FIRST_DAMP } else { DAMP };
    delta += delta / written;
    let mut bias = 0;
    while delta > (BASE - MIN) * MAX / 2 {
        delta /= BASE - MIN;
        bias += BASE;
    }
    bias + (BASE - MIN + 1) * delta / (delta + SKEW)
}

/// Digit of a value: `a` to `z`, then `0` to `9`.
fn digit(value: u32) -> char {
    char::from_digit((value + 10) % BASE, BASE).unwrap_or_default()
}
