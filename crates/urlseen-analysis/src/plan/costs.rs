//! Costs of an item, as measured on one machine: the one place for figures that the plan is made
//! of. `scripts/bench` measures them again; each names the row of `docs/benchmarks.md` that it is
//! the median of.

/// A cost by the share of items that are unseen, in nanoseconds an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Cost with 5 % unseen items.
    pub(super) at_5: f64,
    /// Cost with 30 % unseen items.
    pub(super) at_30: f64,
}

impl Cost {
    /// Interpolates on the line through both costs: each item must be read, and an unseen item must
    /// also be pushed, logged and set. The result is never negative, even if the measured costs are
    /// noisy.
    pub(super) fn at(self, unseen: f64) -> f64 {
        let slope = (self.at_30 - self.at_5).max(0.0) / 0.25;
        (self.at_5 + slope * (unseen - 0.05)).max(0.0)
    }
}

/// Costs of items of one form for the daemon and its Redis.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemCosts {
    /// Of all filter threads together. pipe: urlseen, threads filter, client ns/item
    pub(super) filter: Cost,
    /// Of the thread that talks to Redis. pipe: urlseen, threads urlseen, client ns/item
    pub(super) link: Cost,
    /// Of Redis's one thread. pipe: urlseen, server ns/item
    pub(super) redis: Cost,
}

/// A fingerprint has to be computed. pipe: url, 5 and 30 % unseen
pub(super) const URL: ItemCosts = ItemCosts {
    filter: Cost { at_5: 647.0, at_30: 727.0 },
    link: Cost { at_5: 94.0, at_30: 132.0 },
    redis: Cost { at_5: 209.0, at_30: 274.0 },
};

/// The fingerprint comes with the item. pipe: tab, 5 and 30 % unseen
pub(super) const TAB: ItemCosts = ItemCosts {
    filter: Cost { at_5: 223.0, at_30: 306.0 },
    link: Cost { at_5: 102.0, at_30: 139.0 },
    redis: Cost { at_5: 195.0, at_30: 278.0 },
};

/// Of Redis's one thread, for a crawler that pushes. queues: RPUSH of 100, server ns/item
pub(super) const PUSH_NS: f64 = 349.0;
/// Of Redis's one thread, for a crawler that pops. queues: LPOP of 100, server ns/item
pub(super) const POP_NS: f64 = 531.0;
/// Bytes of Redis's memory that a waiting item takes beside its own. queues: an item that waits
pub(super) const WAITING_BYTES: f64 = 4.3;

/// Memory of the daemon beyond the filter's bits: not measured, but the bound that its buffers
/// keep. pipe: urlseen, peak, bytes beyond the filter
pub const DAEMON_BYTES: f64 = 67_108_864.0;

/// Bytes on the wire of an element of a reply or an argument beside its own: `$94\r\n` before and
/// `\r\n` after it, by Redis's protocol.
pub(super) const WIRE_BYTES: f64 = 7.0;

/// Bytes of the log for an unseen item: a tag and 20 bytes.
pub(super) const LOG_BYTES: f64 = 21.0;

/// By how many bytes the log grows before a snapshot is taken: `storage.snapshot_bytes`, or a share
/// of the filter's size if that is more.
pub(super) const SNAPSHOT_BYTES: f64 = 67_108_864.0;
pub(super) const SNAPSHOT_SHARE: f64 = 0.125;
/// Number of snapshots that are kept, each with the log after it, unless they are together more
/// than `storage.horizon_bytes`.
pub(super) const SNAPSHOTS: f64 = 3.0;
pub(super) const HORIZON_BYTES: f64 = 17_179_869_184.0;
