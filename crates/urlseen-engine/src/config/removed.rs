//! Commands and keys of version 0.2.0 that later versions lack, with what to use instead.

/// Names that exist no more, each with its replacement.
const REMOVED: &[(&str, &str)] = &[
    (
        "storage rotate",
        "stop the daemon, empty the filter with urlseen storage reset, and start the daemon again",
    ),
    ("config schema", "urlseen config check"),
];

/// Returns the message about a command, an option, a key or a section that was removed. A command
/// may be given without the names before its last one.
pub fn removed(name: &str) -> Option<String> {
    let is_named = |full: &str| full == name || full.rsplit(' ').next() == Some(name);
    let (full, instead) = REMOVED.iter().find(|(full, _)| is_named(full))?;
    Some(format!("{full} was removed in 0.3.0; instead: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_name_has_its_replacement() {
        for name in ["rotate", "storage rotate"] {
            let message = removed(name).unwrap();
            assert!(message.starts_with("storage rotate was removed in 0.3.0; instead: stop"));
        }
        assert_eq!(removed("reset"), None);
    }
}
