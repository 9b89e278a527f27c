//! Commands and keys of version 0.2.0 that later versions lack, with what to use instead.

/// Replacement of a stream as source.
const LIST: &str = "let crawlers push to the list source.key, with source.kind = \"list\"";

/// Names that exist no more, each with its replacement.
const REMOVED: &[(&str, &str)] = &[
    ("source.kind = \"stream\"", LIST),
    ("source.field", LIST),
    ("source.after_commit", LIST),
    (
        "storage rotate",
        "stop the daemon, empty the filter with urlseen storage reset, and start the daemon again",
    ),
    ("config schema", "urlseen config check"),
    (
        "limits",
        "urlseen status shows the groups with most dropped items; to let more items pass, raise \
         max of the rule [[limit]]",
    ),
    ("over_limit", DROPS),
    ("over_limit.key", DROPS),
    ("over_limit.max_len", DROPS),
    ("explain --bits", EXPLAINED),
    ("explain --all", EXPLAINED),
    ("replay --field", "write the items of the stream to a file, one a line, and replay the file"),
    ("plan --rate", "the page docs/design/scale.md has the measured costs and the arithmetic"),
    ("plan --plot", "the tables of urlseen plan, or its --json"),
];

/// Replacement of the keys about a list of items over a limit.
const DROPS: &str = "no key. Rules [[limit]] drop and count items: docs/reference/limits.md";

/// Replacement of the options that print more of an explanation.
const EXPLAINED: &str = "urlseen explain ITEM OTHER compares two spellings, and with --algorithm \
                         urlseen fingerprint prints the fingerprints by another algorithm";

/// Returns the message about a command, an option, a key or a section that was removed.
pub fn removed(name: &str) -> Option<String> {
    let (_, instead) = REMOVED.iter().find(|(full, _)| *full == name)?;
    Some(format!("{name} was removed in 0.3.0; instead: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_name_has_its_replacement() {
        let message = removed("storage rotate").unwrap();
        assert!(message.starts_with("storage rotate was removed in 0.3.0; instead: stop"));
        assert_eq!(removed("storage reset"), None);
    }
}
