//! Costs of an item, measured on one machine. All figures that `urlseen plan` uses are in this
//! file. Each measured figure is the median of several rounds. The comment on a figure ends with the
//! measurement and the case, for example "(pipe: urlseen, peak)".

/// Cost of an item in nanoseconds, by the share of items that are unseen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Cost with 5 % unseen items.
    pub(super) at_5: f64,
    /// Cost with 30 % unseen items.
    pub(super) at_30: f64,
}

impl Cost {
    /// Returns the cost for a share of unseen items. The cost lies on the straight line through the
    /// two measured costs. Each item must be read; an unseen item must also be pushed, logged and
    /// added to the filter. The result is never negative, even if the measured costs are noisy.
    pub(super) fn at(self, unseen: f64) -> f64 {
        let slope = (self.at_30 - self.at_5).max(0.0) / 0.25;
        (self.at_5 + slope * (unseen - 0.05)).max(0.0)
    }
}

/// Costs of one item for the daemon and for Redis, if all items have the same form.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemCosts {
    /// Cost for all filter threads together (pipe: urlseen, threads filter, client ns/item).
    pub(super) filter: Cost,
    /// Cost for the thread that talks to Redis (pipe: urlseen, threads urlseen, client ns/item).
    pub(super) link: Cost,
    /// Cost for the one thread of Redis (pipe: urlseen, server ns/item).
    pub(super) redis: Cost,
    /// Cost for the one thread of a router, if a router moves the item (router: 1 primary, 16
    /// partitions, client ns/item).
    pub(super) router: f64,
}

/// Costs of a URL, whose fingerprint must be computed (pipe: url, 5 and 30 % unseen).
pub(super) const URL: ItemCosts = ItemCosts {
    filter: Cost { at_5: 647.0, at_30: 727.0 },
    link: Cost { at_5: 94.0, at_30: 132.0 },
    redis: Cost { at_5: 209.0, at_30: 274.0 },
    router: 595.0,
};

/// Costs of an item that contains its fingerprint (pipe: tab, 5 and 30 % unseen).
pub(super) const TAB: ItemCosts = ItemCosts {
    filter: Cost { at_5: 223.0, at_30: 306.0 },
    link: Cost { at_5: 102.0, at_30: 139.0 },
    redis: Cost { at_5: 195.0, at_30: 278.0 },
    router: 321.0,
};

/// Cost of a push by a crawler, for the one thread of Redis (queues: RPUSH of 100, server ns/item).
pub(super) const PUSH_NS: f64 = 349.0;
/// Cost of a pop by a crawler, for the one thread of Redis (queues: LPOP of 100, server ns/item).
pub(super) const POP_NS: f64 = 531.0;
/// Cost of an item that a router moves, for the one thread of the Redis server that has the list
/// (router, tab: 1 primary, 16 partitions, server ns/item). The measured cost includes the push to
/// the partition, and not the push to the list. Both cost the same.
pub(super) const ROUTED_REDIS_NS: f64 = 1206.0;
/// Bytes of Redis's memory that a waiting item takes in addition to its length (queues: an item
/// that waits).
pub(super) const WAITING_BYTES: f64 = 4.3;

/// Maximum memory of a partition in addition to the filter's bits, in bytes. This is the bound of
/// its buffers, not a measurement (pipe: urlseen, peak, bytes beyond the filter). A router has the
/// same bound.
pub const DAEMON_BYTES: f64 = 67_108_864.0;

/// Bytes that Redis's protocol adds to an element of a reply, or to an argument: `$94\r\n` before
/// and `\r\n` after the element.
pub(super) const WIRE_BYTES: f64 = 7.0;

/// Number of bytes in the log for an unseen item: a tag and 20 bytes.
pub(super) const LOG_BYTES: f64 = 21.0;

/// Number of bytes by which the log grows before the daemon takes a snapshot:
/// `storage.snapshot_bytes`, or a share of the filter's size if that is more.
pub(super) const SNAPSHOT_BYTES: f64 = 67_108_864.0;
pub(super) const SNAPSHOT_SHARE: f64 = 0.125;
/// Number of snapshots that a storage folder keeps, each with the log after it. If the snapshots
/// and logs together exceed `storage.horizon_bytes`, the folder keeps fewer snapshots.
pub(super) const SNAPSHOTS: f64 = 3.0;
pub(super) const HORIZON_BYTES: f64 = 17_179_869_184.0;
