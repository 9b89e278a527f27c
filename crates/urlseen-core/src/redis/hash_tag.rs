//! Hash tags, which put keys into one slot of a Redis Cluster.

/// Puts `key` in braces unless it already has a hash tag, so that keys with this text in their
/// names share the slot of `key`. The slot depends on the text between the first `{` and the next
/// `}`, unless that is empty (Redis Cluster specification, "Hash tags").
pub(crate) fn tagged(key: &str) -> String {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    match tag {
        Some((tag, _)) if !tag.is_empty() => key.to_owned(),
        _ => format!("{{{key}}}"),
    }
}
