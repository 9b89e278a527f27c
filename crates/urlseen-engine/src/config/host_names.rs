//! Host names as values of the configuration.

use super::value::Texts;

/// Maximum length of a host name in bytes (RFC 1035).
const LONGEST: usize = 253;

/// Rule of a key that lists host names.
pub(super) const HOST_NAMES: Texts = Texts {
    count: 0..=100,
    is_good: is_name,
    allowed: "an array of at most 100 host names in ASCII, like \"metrics.example\", without \
              scheme and port",
};

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels = name.strip_suffix('.').unwrap_or(name);
    labels.len() <= LONGEST
        && labels.bytes().all(is_plain)
        && labels.split('.').all(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::raw::{Raw, ValueError};
    use super::super::value::Rule;
    use super::*;

    #[test]
    fn names_are_an_array_or_separated_by_commas() {
        let read = |text: &str| HOST_NAMES.read(&Raw::Text(text.to_owned()));
        let both = || Ok(vec!["metrics.example".to_owned(), "Box_7.".to_owned()]);
        assert_eq!(read("metrics.example, Box_7."), both());
        assert_eq!(read("['metrics.example', 'Box_7.']"), both());
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("[]"), Ok(Vec::new()));
        for bad in [
            "a,,b",
            "a:9090",
            "http://a",
            "*.a",
            "a..b",
            ".",
            "[::1]",
            "a b",
            "b\u{f6}x",
            &"a".repeat(254),
        ] {
            assert_eq!(read(bad), Err(ValueError::Value), "{bad}");
        }
    }
}
