//! ASCII form of internationalised hosts, as w3lib writes them with Python's `idna` codec. This is
//! IDNA 2003 (RFC 3490), not the UTS #46 of browsers: `faß.de` becomes `fass.de`.

mod nameprep;
mod punycode;
mod tables;

use unicode_normalization::UnicodeNormalization;

/// Maximum number of letters of a label (a part of a host between dots), by the limit of DNS.
const MAX_LABEL: usize = 63;

/// Prefix of an encoded label.
const ACE_PREFIX: &str = "xn--";

/// Returns the ASCII form of `host`, which must be in lower case. Returns `None` if Python's codec
/// raises an exception; w3lib then keeps the host unchanged.
///
/// A host that is already ASCII is returned unchanged.
pub(super) fn encode(host: &str) -> Option<String> {
    if host.is_ascii() {
        return Some(host.to_owned());
    }
    let host: String = host.nfkc().collect();
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
        push_label(label, &mut ascii)?;
    }
    if labels.len() < host.len() {
        ascii.push('.');
    }
    Some(ascii)
}

/// Appends the ASCII form of a label, by `ToASCII` of RFC 3490 without `UseSTD3ASCIIRules`.
fn push_label(label: &str, out: &mut String) -> Option<()> {
    if label.is_ascii() {
        fits(label).then(|| out.push_str(label))
    } else {
        let label = nameprep::prepare(label)?;
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
        punycode::push_encoded(&label, out);
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
