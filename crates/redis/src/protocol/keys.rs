//! Names of the keys that a crawl uses in Redis.

use crate::hash_tag::tagged;

/// Keys of a crawl that its producers and consumers share. The crawl record names further keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKeys {
    /// Hash: the crawl record.
    pub record: String,
    /// List: items that the daemon or a router has claimed and not committed yet.
    pub processing: String,
    /// Hash: heartbeat of each consumer.
    pub consumers: String,
    /// Hash: number of deliveries and earlier consumers of each requeued request.
    pub requeues: String,
    /// String: name of the last batch of a crawl that moves here.
    pub moved: String,
    /// Start of the keys of held requests; the name of the consumer follows.
    held: String,
}

impl HeldKeys {
    /// Names the keys of the crawl that reads `source`. The keys share the hash slot of `source`.
    pub fn of_source(source: &str) -> Self {
        let tagged = tagged(source);
        Self {
            record: format!("urlseen:{tagged}:crawl"),
            processing: format!("urlseen:{tagged}:processing"),
            consumers: format!("urlseen:{tagged}:consumers"),
            requeues: format!("urlseen:{tagged}:requeues"),
            moved: format!("urlseen:{tagged}:moved"),
            held: format!("urlseen:{tagged}:held"),
        }
    }

    /// Names the hash of the requests that a consumer holds.
    pub fn held(&self, consumer: &str) -> String {
        format!("{}:{consumer}", self.held)
    }
}

/// Keys of a crawl. urlseen itself names the keys from `lease` to `record`; the configuration
/// names the other keys.
#[cfg(feature = "link")]
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

#[cfg(feature = "link")]
impl Keys {
    /// Names the keys of the crawl that reads `source`.
    pub fn new(source: &str, sink: &str, rejected: &str, forget: &str) -> Self {
        let tagged = tagged(source);
        let HeldKeys { record, processing, .. } = HeldKeys::of_source(source);
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

#[cfg(all(test, feature = "link"))]
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
