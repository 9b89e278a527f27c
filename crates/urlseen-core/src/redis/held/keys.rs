//! Names of the keys that a daemon and the consumers of its crawl share.

use crate::redis::hash_tag::tagged;

/// Keys of a crawl that its producers and consumers share. The crawl record names further keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKeys {
    /// Hash: the crawl record.
    pub record: String,
    /// Hash: consumers and their heartbeats.
    pub consumers: String,
    /// Hash: deliveries of requeued requests.
    pub requeues: String,
    /// List: rejects of items that are too large for their rejects, each followed by its item.
    pub oversize: String,
    /// Prefix of the keys of held requests; the name of the consumer follows.
    held: String,
}

impl HeldKeys {
    /// Names the keys of the crawl that reads `source`. They share its hash slot.
    pub fn of_source(source: &str) -> Self {
        let tagged = tagged(source);
        Self {
            record: format!("urlseen:{tagged}:crawl"),
            consumers: format!("urlseen:{tagged}:consumers"),
            requeues: format!("urlseen:{tagged}:requeues"),
            oversize: format!("urlseen:{tagged}:oversize"),
            held: format!("urlseen:{tagged}:held"),
        }
    }

    /// Names the hash of the requests that a consumer holds.
    pub fn held(&self, consumer: &str) -> String {
        format!("{}:{consumer}", self.held)
    }
}
