//! The names of the keys that a crawl uses in Redis.

use crate::redis::hash_tag::tagged;
use crate::redis::held;

/// A crawl's keys. Those up to `source` are urlseen's own; the others are named by the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// String: who may run the crawl now.
    pub lease: String,
    /// Hash: `seq`, `commit_id`, `filter` and `format`.
    pub state: String,
    /// List: items claimed and not committed yet.
    pub processing: String,
    /// The same in earlier versions, which named it otherwise.
    pub earlier_processing: String,
    /// List: rejects that somebody sorts through.
    pub rejects_aside: String,
    /// List: rejects whose items are too large to be in them, each before its item.
    pub oversize: String,
    /// List: what is to be forgotten, claimed and not yet done.
    pub forgetting: String,
    /// Hash: the crawl record, for producers and consumers.
    pub record: String,
    /// Where items come from.
    pub source: String,
    /// Where unseen ones go.
    pub sink: String,
    /// List: the items that could not be read.
    pub rejected: String,
    /// List: what is to be forgotten.
    pub forget: String,
}

impl Keys {
    /// The keys of the crawl that reads `source`.
    pub fn new(source: &str, sink: &str, rejected: &str, forget: &str) -> Self {
        let tagged = tagged(source);
        let held::HeldKeys { record, oversize, .. } = held::HeldKeys::of_source(source);
        Self {
            lease: format!("urlseen:{tagged}:lease"),
            state: format!("urlseen:{tagged}:state"),
            processing: format!("urlseen:{tagged}:processing"),
            earlier_processing: format!("urlseen:{tagged}:taken"),
            rejects_aside: format!("urlseen:{tagged}:rejects"),
            oversize,
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
