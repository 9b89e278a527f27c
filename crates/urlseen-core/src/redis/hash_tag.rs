//! Hash tags, which put keys into one slot of a Redis Cluster.

/// Returns the part of a key that determines its slot: the text between the first `{` and the next
/// `}`, if there is any, or else the whole key (Redis Cluster specification, "Hash tags").
pub fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Puts `key` in braces if it has no hash tag yet. A key that begins with the result is then in the
/// same slot as `key`.
pub(crate) fn tagged(key: &str) -> String {
    if hashed(key).len() < key.len() { key.to_owned() } else { format!("{{{key}}}") }
}
