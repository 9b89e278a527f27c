//! Hash tags: keys that belong together share a slot of a Redis Cluster.

/// `key` in braces unless it has a hash tag already, so that what is named after it shares its
/// slot: the slot comes from what stands between the first `{` and the next `}`, if that is not
/// empty (Redis Cluster specification, "Hash tags").
pub(crate) fn tagged(key: &str) -> String {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    match tag {
        Some((tag, _)) if !tag.is_empty() => key.to_owned(),
        _ => format!("{{{key}}}"),
    }
}
