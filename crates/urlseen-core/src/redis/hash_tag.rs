//! Hash tags, which put keys into one slot of a Redis Cluster.

/// Returns the part of a key that determines its slot (Redis Cluster specification, "Hash tags").
/// This part is the text between the first `{` and the next `}`. If there is no such text, the part
/// is the whole key.
pub fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Puts `key` in braces if it has no hash tag yet. A key that begins with the result is then in the
/// same slot as `key`.
pub(crate) fn tagged(key: &str) -> String {
    if hashed(key).len() < key.len() { key.to_owned() } else { format!("{{{key}}}") }
}
