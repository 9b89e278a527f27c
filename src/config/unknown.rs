//! Names of keys in messages and in the environment. A message about an unknown name suggests a
//! similar name, and lists the names that exist.

use super::keys::{KEYS, SECTIONS};
use super::rule_kinds::KINDS;

/// Prefix of environment variables that set a key. The section, `__` and the key follow the prefix.
pub(super) const PREFIX: &str = "URLSEEN_";
/// Variable for the password of Redis. With this variable, the password need not be in a URL.
pub(super) const PASSWORD: &str = "URLSEEN_REDIS_PASSWORD";
/// Returns the message about an unknown key `section.key`.
pub(super) fn unknown_key(name: &str) -> String {
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
    let rules = KINDS.map(|kind| kind.name);
    let nearest = nearest(section, SECTIONS.iter().copied().chain(rules));
    let is_rule = nearest.is_some_and(|it| rules.contains(&it));
    let nearest = nearest.map(|it| if is_rule { format!("[[{it}]]") } else { format!("[{it}]") });
    let section = presentable(section);
    format!("there is no section [{}]{}", section.escape_debug(), hint(nearest, &sections()))
}

/// Returns the message about an environment variable that names no key.
pub(super) fn unknown_variable(name: &str) -> String {
    let name = name[PREFIX.len()..].to_lowercase().replace("__", ".");
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
    let keys = KEYS.iter().filter_map(|key| key.strip_prefix(section)?.strip_prefix('.'));
    let keys = keys.collect::<Vec<_>>().join(", ");
    if keys.is_empty() { sections() } else { format!("[{section}] has the keys {keys}") }
}

/// Returns a sentence with all sections.
fn sections() -> String {
    let rules = KINDS.map(|kind| format!("[[{}]]", kind.name));
    format!("the sections are {}, and the rules are {}", SECTIONS.join(", "), rules.join(", "))
}

/// Finds the key that a user probably meant by `name`.
fn nearest_key(name: &str) -> Option<&'static str> {
    let last = name.rsplit('.').next();
    let mut same = KEYS.iter().copied().filter(|key| key.split('.').nth(1) == last);
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

/// Returns the environment variable that sets `key`.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_uppercase())
}

/// Shows an unknown name up to the first character that no name can contain. The text after that
/// character may be a value in the wrong place, even a password.
pub(super) fn presentable(name: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let end = name.char_indices().find(|(at, c)| !part(*c) || *at >= 60).map(|(at, _)| at);
    end.map_or_else(|| name.to_owned(), |end| format!("{}…", &name[..end]))
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
    fn unknown_names_are_shown_only_up_to_a_possible_value() {
        assert_eq!(presentable("redis.url"), "redis.url");
        assert_eq!(presentable("redis.url:redis://:secret@host"), "redis.url…");
        assert_eq!(presentable("a\nb"), "a…");
        assert_eq!(presentable(&"ä".repeat(100)), format!("{}…", "ä".repeat(30)));
    }
}
