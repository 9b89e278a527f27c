//! Hash tags, which put keys into one slot of a Redis Cluster.

/// Puts `key` in braces if it has no hash tag yet. A key that begins with the result is then in the
/// same slot as `key`. The slot depends only on the text between the first `{` and the next `}`, if
/// there is any (Redis Cluster specification, "Hash tags").
pub(crate) fn tagged(key: &str) -> String {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    match tag {
        Some((tag, _)) if !tag.is_empty() => key.to_owned(),
        _ => format!("{{{key}}}"),
    }
}
