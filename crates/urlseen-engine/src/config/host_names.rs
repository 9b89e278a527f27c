//! Host names as values of the configuration.

use super::raw::{Raw, ValueError};
use super::value::{Rule, texts};

/// Most bytes of a host name (RFC 1035).
const LONGEST: usize = 253;

/// List of host names: an array of strings, or a text with commas between the names. `""` means
/// none.
pub(super) struct HostNames;

impl HostNames {
    /// Most names that a list may have.
    const MOST: usize = 100;
}

impl Rule<Vec<String>> for HostNames {
    fn read(&self, raw: &Raw) -> Result<Vec<String>, ValueError> {
        let names = match raw {
            Raw::Text(text) if text.trim().is_empty() => Vec::new(),
            raw => texts(raw)?,
        };
        let is_good = names.len() <= Self::MOST && names.iter().all(|name| is_name(name));
        if is_good { Ok(names) } else { Err(ValueError::Value) }
    }

    fn allowed(&self) -> String {
        format!(
            "an array of at most {} host names in ASCII, like \"metrics.example\", without scheme \
             and port",
            Self::MOST
        )
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels = name.strip_suffix('.').unwrap_or(name);
    labels.len() <= LONGEST
        && labels.bytes().all(is_plain)
        && labels.split('.').all(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_an_array_or_separated_by_commas() {
        let read = |text: &str| HostNames.read(&Raw::Text(text.to_owned()));
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
