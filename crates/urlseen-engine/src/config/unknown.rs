//! Messages about unknown and removed names. They suggest a similar name, list the names that
//! exist, or say what to use instead.

use super::layers::{PASSWORD, PREFIX, presentable, variable};
use super::rule_kinds::KINDS;
use super::sections::{KEYS, SECTIONS};

/// Returns the message about an unknown key `section.key`.
pub(super) fn unknown_key(name: &str) -> String {
    if let Some(message) = removed(name) {
        return message;
    }
    let key = presentable(name);
    let key = key.escape_debug();
    if nearest(name, ["redis.password"]).is_some() {
        return format!(
            "there is no key {key}; the password is part of redis.url or in the environment as \
             URLSEEN_REDIS_PASSWORD"
        );
    }
    let nearest = nearest_key(name).map(str::to_owned);
    format!("there is no key {key}{}", hint(nearest, &names_beside(name)))
}

/// Returns the message about an unknown section.
pub(super) fn unknown_section(section: &str) -> String {
    if let Some(message) = removed(section) {
        return message;
    }
    let rules = KINDS.map(|kind| kind.name);
    let known = SECTIONS.iter().copied().chain(rules);
    let nearest = nearest(section, known);
    let in_brackets = |section: &str| format!("[{section}]");
    let nearest = nearest.map(|section| {
        if rules.contains(&section) {
            in_brackets(&in_brackets(section))
        } else {
            in_brackets(section)
        }
    });
    let section = presentable(section);
    format!("there is no section [{}]{}", section.escape_debug(), hint(nearest, &sections()))
}

/// Returns the message about an environment variable that names no key.
pub(super) fn unknown_variable(name: &str) -> String {
    let name = name[PREFIX.len()..].to_lowercase().replace("__", ".");
    if let Some(message) = removed(&name) {
        return message;
    }
    let nearest = match nearest(&name, ["redis.password"]) {
        Some(_) => Some(PASSWORD.to_owned()),
        None => nearest_key(&name).map(variable),
    };
    format!(
        "no key has this name, and variables that begin with URLSEEN_ must name a key{}",
        hint(nearest, &names_beside(&name))
    )
}

/// Returns the end of a message about an unknown name. The end suggests the `nearest` known name,
/// if there is a similar one, and has the sentence `known` about the names that exist.
pub(super) fn hint(nearest: Option<String>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean {nearest}? ({known})"),
        None => format!("; {known}"),
    }
}

/// Returns a sentence with the keys of the section in `name`. If there is no such section, the
/// sentence has the sections.
fn names_beside(name: &str) -> String {
    let section = name.split('.').next().unwrap_or_default();
    let of_section = |key: &&'static str| {
        key.split_once('.').filter(|(other, _)| *other == section).map(|(_, key)| key)
    };
    let keys: Vec<_> = KEYS.iter().filter_map(of_section).collect();
    if keys.is_empty() {
        sections()
    } else {
        format!("[{section}] has the keys {}", keys.join(", "))
    }
}

/// Returns a sentence with all sections.
fn sections() -> String {
    let rules = KINDS.map(|kind| format!("[[{}]]", kind.name));
    format!("the sections are {}, and the rules are {}", SECTIONS.join(", "), rules.join(", "))
}

/// Finds the key that a user probably meant by `name`.
fn nearest_key(name: &str) -> Option<&'static str> {
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let mut same = KEYS.iter().copied().filter(|key| last(key) == last(name));
    let of_another_section = same.next().filter(|_| same.next().is_none());
    of_another_section.or_else(|| nearest(name, KEYS.iter().copied()))
}

/// Finds the word of `known` that differs from `word` by the fewest edits. The edits may be at most
/// a third of the length of the known word.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .filter_map(|candidate| {
            // The number of edits is at least the difference in length. So the slow comparison is
            // needed only for words of similar length.
            let most = (candidate.chars().count() / 3).max(1);
            let is_similar = word.len().abs_diff(candidate.len()) <= 4 * most;
            let edits = is_similar.then(|| strsim::osa_distance(word, candidate))?;
            (edits <= most).then_some((edits, candidate))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

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
    ("status --samples", "urlseen tap --once"),
    ("plan --fits", "your memory, divided by the bits of a key that urlseen plan prints"),
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
    fn a_misspelling_finds_its_key() {
        for (name, wanted) in [
            ("filter.capasity", Some("filter.capacity")),
            ("filtre.capacity", Some("filter.capacity")),
            ("capacity", Some("filter.capacity")),
            ("filter.batch", Some("source.batch")),
            ("redis.uri", Some("redis.url")),
            ("log.fmt", Some("log.format")),
            ("state.dir", Some("storage.dir")),
            ("key", None),
            ("nothing.like.it", None),
        ] {
            assert_eq!(nearest_key(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(nearest("lgo", ["log"]), Some("log"));
        assert_eq!(nearest("lag", ["log", "legs"]), Some("log"));
    }

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["filter", "fingerprint", "log"];
        assert_eq!(nearest("fliter", known), Some("filter"));
        assert_eq!(nearest("logs", known), Some("log"));
        assert_eq!(nearest("queue", known), None);
        assert_eq!(nearest(&"filter".repeat(1000), known), None);
    }

    #[test]
    fn a_removed_name_has_its_replacement() {
        let message = removed("storage rotate").unwrap();
        assert!(message.starts_with("storage rotate was removed in 0.3.0; instead: stop"));
        assert_eq!(removed("storage reset"), None);
    }
}
