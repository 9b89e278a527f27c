//! What an item costs, as measured on one machine: the one place for figures that the plan is made
//! of. `scripts/bench` measures them again; each names the row of `docs/benchmarks.md` that it is
//! the median of.

/// A cost by the share of items that are unseen, in nanoseconds an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// With 5 % unseen.
    pub(super) at_5: f64,
    /// With 30 % unseen.
    pub(super) at_30: f64,
}

impl Cost {
    /// On the line through both: an item costs what it costs to read, and one that is unseen also
    /// what it costs to push, log and set. That is never less than nothing, whatever noise says.
    pub(super) fn at(self, unseen: f64) -> f64 {
        let slope = (self.at_30 - self.at_5).max(0.0) / 0.25;
        (self.at_5 + slope * (unseen - 0.05)).max(0.0)
    }
}

/// What items of one form cost the daemon and its Redis.
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
/// What an item that waits takes of Redis beside its own bytes. queues: an item that waits
pub(super) const WAITING_BYTES: f64 = 4.3;

/// What a URL takes in a Redis set of hex fingerprints: the least and the most, by how full the
/// set's hash table is. peers, memory: SADD, 40 hex digits, hash table full and doubling
pub const REDIS_SET_BYTES: [u64; 2] = [88, 104];

/// Memory of the daemon beyond the filter's bits: not measured, but the bound that its buffers
/// keep. pipe: urlseen, peak, bytes beyond the filter
pub const DAEMON_BYTES: f64 = 67_108_864.0;

/// What an element of a reply or an argument takes on the wire beside its own bytes: `$94\r\n`
/// before and `\r\n` behind, by Redis's protocol.
pub(super) const WIRE_BYTES: f64 = 7.0;

/// What the log takes for an unseen item: a tag and 20 bytes.
pub(super) const LOG_BYTES: f64 = 21.0;

/// By how many bytes the log grows before a snapshot is taken: `storage.snapshot_bytes`, or a share
/// of the filter's size if that is more.
pub(super) const SNAPSHOT_BYTES: f64 = 67_108_864.0;
pub(super) const SNAPSHOT_SHARE: f64 = 0.125;
/// How many snapshots are kept, each with the log behind it, unless they are together more than
/// `storage.horizon_bytes`.
pub(super) const SNAPSHOTS: f64 = 3.0;
pub(super) const HORIZON_BYTES: f64 = 17_179_869_184.0;
