//! Internationalised hosts in ASCII, as w3lib has Python's `idna` codec write them: IDNA 2003
//! (RFC 3490), not the UTS #46 of browsers. `faß.de` is `fass.de` here.

mod nameprep;
mod punycode;
mod tables;

use unicode_normalization::UnicodeNormalization;

/// The most letters that a label may have: DNS's limit.
const MAX_LABEL: usize = 63;

/// What an encoded label begins with.
const ACE_PREFIX: &str = "xn--";

/// The ASCII form of a lower-cased host; `None` where the codec raises, upon which w3lib leaves the
/// host as it is.
///
/// A host that is ASCII to begin with is not looked at.
pub(super) fn encode(host: &str) -> Option<String> {
    if host.is_ascii() {
        return Some(host.to_owned());
    }
    let host: String = host.nfkc().collect();
    if host.is_ascii() {
        let mut labels = host.split('.');
        let last = labels.next_back()?;
        // The empty label at the end is the root.
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

/// RFC 3490's `ToASCII` without its `UseSTD3ASCIIRules`.
fn push_label(label: &str, out: &mut String) -> Option<()> {
    if label.is_ascii() {
        fits(label).then(|| out.push_str(label))
    } else {
        let label = nameprep::prepare(label)?;
        if label.is_ascii() {
            return fits(&label).then(|| out.push_str(&label));
        }
        // Each letter takes one digit at least; this keeps the encoder's work small, too.
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

/// The full stops that RFC 3490 takes for a dot. NFKC has turned all but the ideographic one into
/// plain dots before they get here.
fn is_dot(letter: char) -> bool {
    matches!(letter, '.' | '\u{3002}' | '\u{ff0e}' | '\u{ff61}')
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn encodes_as_idna_2003() {
        for (host, ascii) in [
            ("bücher.de", "xn--bcher-kva.de"),
            ("faß.de", "fass.de"),
            ("βόλος.com", "xn--nxasmq6b.com"),
            ("中国。cn", "xn--fiqs8s.cn"),
            ("中国.", "xn--fiqs8s."),
            ("ａｂｃ.de", "abc.de"),
            ("ℂ.é", "C.xn--9ca"),
            ("a\u{ad}é", "xn--a-bga"),
            ("☃.net", "xn--n3h.net"),
            ("עברית", "xn--5dbqzzl"),
        ] {
            assert_eq!(encode(host).as_deref(), Some(ascii), "{host}");
        }
    }

    #[test]
    fn leaves_what_the_codec_refuses() {
        let long = "é".repeat(60);
        for host in [".é", "é..b", "aא", "אa", "א1", "\u{e000}é", "xn--é", "。", "\u{ad}.é", &long]
        {
            assert_eq!(encode(host), None, "{host}");
        }
    }
}
