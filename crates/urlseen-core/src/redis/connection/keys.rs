//! Names of the keys that a crawl uses in Redis.

use crate::redis::hash_tag::tagged;
use crate::redis::held;

/// Keys of a crawl. urlseen itself names the keys from `lease` to `record`; the configuration
/// names the other keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// String: holder of the lease.
    pub lease: String,
    /// Hash: `seq`, `commit_id`, `filter` and `format`.
    pub state: String,
    /// List: claimed items that are not committed yet.
    pub processing: String,
    /// List: rejects that a running `urlseen rejects` has moved here to sort them.
    pub rejects_aside: String,
    /// List: keys that the daemon has claimed from `forget` and not yet forgotten.
    pub forgetting: String,
    /// Hash: crawl record for producers and consumers.
    pub record: String,
    /// Key of the source of items.
    pub source: String,
    /// Key of the sink for unseen items.
    pub sink: String,
    /// List: rejects of items that could not be read.
    pub rejected: String,
    /// List: keys that the filter is to forget.
    pub forget: String,
}

impl Keys {
    /// Names the keys of the crawl that reads `source`.
    pub fn new(source: &str, sink: &str, rejected: &str, forget: &str) -> Self {
        let tagged = tagged(source);
        let held::HeldKeys { record, processing, .. } = held::HeldKeys::of_source(source);
        Self {
            lease: format!("urlseen:{tagged}:lease"),
            state: format!("urlseen:{tagged}:state"),
            processing,
            rejects_aside: format!("urlseen:{tagged}:rejects"),
            forgetting: format!("urlseen:{tagged}:forgetting"),
            record,
            source: source.to_owned(),
            sink: sink.to_owned(),
            rejected: rejected.to_owned(),
            forget: forget.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_share_the_slot_of_the_source() {
        for (source, tagged) in [
            ("demo:discovered", "{demo:discovered}"),
            ("{demo}:discovered", "{demo}:discovered"),
            ("a{}b", "{a{}b}"),
            ("a{b", "{a{b}"),
        ] {
            assert_eq!(
                Keys::new(source, "s", "r", "f").processing,
                format!("urlseen:{tagged}:processing")
            );
        }
    }
}
