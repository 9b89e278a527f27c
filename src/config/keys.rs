//! Table of all keys: section, name, type, allowed values and default. A macro generates the
//! structs and the list of known keys from the table.

use super::found::Layers;
use super::partitions::PartitionChoice;
use super::rule_kinds::Rules;
use super::secret::Secret;
use super::value::{
    count, crawl_name, duration, duration_or_off, expire_after, flag, folder, host_names, listen,
    number, pem_file, redis_key, redis_keys, redis_url, run, seed, whole, word,
};
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use urlseen_engine::engine::Threads;
use urlseen_filter::choice::{
    Emit, End, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback, SourceKind,
    WhenFull,
};
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::{ErrorRate, Kind};
use urlseen_fingerprint::canonical::CanonicalForm;
use urlseen_fingerprint::same::TrackingList;
use urlseen_fingerprint::{Algorithm, Partition, PartitionCount};
use urlseen_redis::RedisAddress;
use urlseen_redis::protocol::SinkKind;

/// Declares the sections. Each key has its field, its rule, and its default. Defaults may name
/// earlier sections.
macro_rules! sections {
    ($(
        $(#[doc = $doc:literal])+
        $section:ident: $Section:ident {
            $(
                $(#[doc = $key_doc:literal])+
                $key:ident: $Type:ty = $rule:expr, $default:expr;
            )+
        }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, PartialEq)]
            pub struct $Section {
                $( $(#[doc = $key_doc])+ pub $key: $Type, )+
            }
        )+

        /// Configuration whose values, and combinations of values, this version of urlseen accepts.
        /// The default is the configuration of an empty file.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $section: $Section, )+
            /// Password that clients of `serve` must give. It comes only from the environment.
            pub serve_password: Option<Secret>,
            /// Token that requests at `admin.listen` must have. It comes only from the environment.
            pub admin_token: Option<Secret>,
            /// Rules for pages, which only a file can have.
            pub rules: Rules,
            /// Partition that this configuration is for: [`Partition::WHOLE`] in a configuration
            /// that was read. See [`Config::of_partition`].
            pub partition: Partition,
        }

        impl Config {
            /// Takes the keys of all sections.
            pub(super) fn take(layers: &mut Layers) -> Self {
                $(
                    let $section = $Section { $(
                        $key: layers
                            .take(concat!(stringify!($section), ".", stringify!($key)), &$rule)
                            .unwrap_or_else(|| $default),
                    )+ };
                )+
                Self {
                    $( $section, )+
                    serve_password: layers.secrets.remove("serve"),
                    admin_token: layers.secrets.remove("admin"),
                    rules: std::mem::take(&mut layers.rules),
                    partition: Partition::WHOLE,
                }
            }

            /// Returns the values of all keys in the form that a file has, in the order of the
            /// documentation. The password of Redis is left out.
            pub(super) fn values(&self) -> Vec<(&'static str, Json)> {
                vec![$( $( (
                    concat!(stringify!($section), ".", stringify!($key)),
                    ($rule.write)(&self.$section.$key),
                ), )+ )+]
            }
        }

        /// All sections, in the order of the documentation.
        pub(super) const SECTIONS: &[&str] = &[$( stringify!($section), )+];

        /// All keys as `section.key`, in the order of the documentation.
        pub(crate) const KEYS: &[&str] =
            &[$( $( concat!(stringify!($section), ".", stringify!($key)), )+ )+];
    };
}

/// Allowed capacities of a filter, in fingerprints.
const CAPACITY: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Largest expansion that RedisBloom accepts.
const EXPANSION: u64 = 32_768;
/// Largest value of a key that limits the length of a Redis list.
const LONGEST_LIST: u64 = u32::MAX as u64;

sections! {
    /// Crawl that this configuration is for.
    crawl: Crawl {
        /// Name from which the default keys, the storage folder and the metrics get their names.
        name: String = crawl_name(), "demo".to_owned();
    }

    /// Redis server that holds the lists.
    redis: Redis {
        /// Address of the server, with the password.
        url: RedisAddress = redis_url(), RedisAddress::local();
        /// File with the certificates of the trusted authorities.
        tls_ca: Option<PathBuf> = pem_file(), None;
        /// File with the certificate that the program presents to the server.
        tls_cert: Option<PathBuf> = pem_file(), None;
        /// File with the private key of this certificate.
        tls_key: Option<PathBuf> = pem_file(), None;
        /// Number of replicas that must have a commit before it counts as acknowledged.
        wait_replicas: u64 = whole(0..=10, ""), 0;
    }

    /// Equal parts of the crawl, each with its own keys and its own filter.
    partitions: Partitions {
        /// Number of partitions of the crawl.
        count: PartitionCount = count(), PartitionCount::ONE;
        /// Partitions that this process runs.
        run: PartitionChoice = run(), PartitionChoice::All;
    }

    /// Source of discovered items.
    source: Source {
        /// Kind of the source of items.
        kind: SourceKind = word(), SourceKind::List;
        /// Redis list that holds the items.
        key: String = redis_key(), format!("{}:discovered", crawl.name);
        /// End of the list from which the next item is taken.
        take_from: End = word(), End::Left;
        /// Form of the items in the source.
        item: ItemForm = word(), ItemForm::Auto;
        /// Maximum number of items that are claimed, judged and committed together.
        batch: usize = whole(1..=100_000, ""), 1000;
        /// Maximum size in bytes of all items of a batch. A single larger item makes a batch of its
        /// own.
        batch_bytes: usize = whole(1 << 10..=64 << 20, " of bytes"), 8_388_608;
        /// Maximum size of an item in bytes. A larger item becomes a reject without the rest of it.
        item_bytes: usize = whole(64 << 10..=64 << 20, " of bytes"), 16_777_216;
        /// Minimum time between two claims while few items arrive.
        linger: Option<Duration> = duration_or_off("1ms", "1s"), Some(Duration::from_millis(2));
    }

    /// Computation of fingerprints.
    fingerprint: Fingerprint {
        /// Algorithm, named after the package whose fingerprints it reproduces.
        algorithm: Algorithm = word(), Algorithm::Scrapy;
        /// Version of w3lib, whose canonical form of a URL the spiders hash.
        canonical: CanonicalForm = word(), CanonicalForm::W3lib25;
        /// True if URLs that differ only after the `#` have different fingerprints.
        keep_fragments: bool = flag(), false;
        /// List of tracking parameters that do not affect the fingerprint of any URL.
        drop_tracking: TrackingList = word(), TrackingList::None;
    }

    /// Filter that holds the fingerprints seen before.
    filter: Filter {
        /// Kind of the filter. The kind determines how the filter stores fingerprints. The default
        /// is `two-choice`, or `native` in Redis. An existing storage folder keeps its kind.
        kind: Kind = word(), Kind::TWO_CHOICE;
        /// Place of the filter: memory of the daemon, or Redis.
        place: FilterPlace = word(), FilterPlace::Local;
        /// Number of fingerprints that the filter holds at its error rate.
        capacity: u64 = whole(CAPACITY, ""), Filter::default_capacity(Kind::TWO_CHOICE);
        /// Probability that the filter reports an unseen fingerprint as seen when it holds
        /// `capacity` fingerprints, or `grow_to` for the kind `two-choice`. The default is 1e-7 for
        /// this kind, and 1e-6 for others. An existing storage folder keeps its error rate.
        error_rate: f64 = number(ErrorRate::MIN..=0.1),
            Filter::default_error_rate(Kind::TWO_CHOICE);
        /// Number of fingerprints up to which a filter of the kind `two-choice` keeps its error
        /// rate while it grows.
        grow_to: u64 = whole(CAPACITY, ""), 1_000_000_000;
        /// Time after which a fingerprint passes again, for the kind `two-choice`. If
        /// it is empty, fingerprints do not expire.
        expire_after: Option<ExpireAfter> = expire_after(), None;
        /// Number of bytes at which a filter that grows counts as full; 0 for no limit.
        max_memory: u64 = whole(0..=1 << 50, " of bytes"), 0;
        /// Growth factor from the capacity of one layer to the next, for the kind `redisbloom`; 0
        /// for a filter that does not grow.
        expansion: u32 = whole(0..=EXPANSION, ""), 2;
        /// Seed of the filter's hash; `None` for a random one, which is stored with the filter.
        seed: Option<u32> = seed(), None;
        /// Reaction when the filter holds more than `capacity` fingerprints.
        when_full: WhenFull = word(), WhenFull::Warn;
        /// Exponent of the size: a string has 2^`bit` bits, as with `BLOOMFILTER_BIT`. For the
        /// kinds `scrapy-redis-bloomfilter` and `scrapy-redis-bloomfilter-block-cluster`.
        bit: u32 = whole(1..=32, ""), 30;
        /// Number of hashes, like `BLOOMFILTER_HASH_NUMBER`, for the kinds
        /// `scrapy-redis-bloomfilter` and `scrapy-redis-bloomfilter-block-cluster`.
        hash_number: u32 = whole(1..=100, ""), 6;
        /// Number of strings, like `BLOOMFILTER_BLOCK_NUM`, for
        /// `scrapy-redis-bloomfilter-block-cluster`.
        block_num: u32 = whole(1..=4096, ""), 1;
        /// Number of seen fingerprints that a daemon caches if the filter is in Redis. The daemon
        /// does not ask Redis about cached fingerprints. Each fingerprint takes 8 bytes.
        recent: usize = whole(1..=1 << 30, ""), 1 << 22;
        /// Key of a filter in Redis, or the prefix of all keys of that filter.
        key: String = redis_key(), format!("{}:filter", crawl.name);
        /// Number of threads that judge items; 0 for as many as there are processors, up to 64. All
        /// partitions of a process share them.
        threads: usize = whole(0..=Threads::MAX as u64, ""), 0;
    }

    /// Sink for unseen items.
    sink: Sink {
        /// Redis list or sorted set that receives the items.
        key: String = redis_key(), format!("{}:unseen", crawl.name);
        /// Kind of the sink, a list or a sorted set.
        kind: SinkKind = word(), SinkKind::List;
        /// End of the list that items are pushed to.
        push_to: End = word(), End::Right;
        /// Content of an item that is pushed to the sink.
        emit: Emit = word(), Emit::Item;
        /// Number of items in the sink at which the daemon stops claiming items; 0 for no limit.
        max_len: u64 = whole(0..=LONGEST_LIST, ""), 0;
    }

    /// List of items that cannot be read.
    rejects: Rejects {
        /// Redis list that holds the rejects.
        key: String = redis_key(), format!("{}:rejected", crawl.name);
        /// Maximum number of rejects to keep; at least `source.batch`.
        max_len: u64 = whole(1..=LONGEST_LIST, ""), 1_000_000;
        /// Reaction when the list has `max_len` rejects.
        when_full: RejectsFull = word(), RejectsFull::Wait;
    }

    /// Fingerprints to forget, so that their items pass again.
    forget: Forget {
        /// Redis list of fingerprints or items to forget.
        key: String = redis_key(), format!("{}:forget", crawl.name);
        /// Maximum number of forgotten fingerprints whose items have not passed again.
        max_len: usize = whole(1..=100_000_000, ""), 1_000_000;
    }

    /// Requests that consumers popped and have not acknowledged.
    held: Held {
        /// Time without a heartbeat after which a consumer is considered stopped.
        timeout: Duration = duration("1s", "24h"), Duration::from_mins(1);
        /// Maximum number of deliveries of a request that no consumer finishes.
        deliveries: u64 = whole(1..=1000, ""), 3;
    }

    /// Server for clients that speak the Redis protocol.
    serve: Serve {
        /// Address to listen on; no server if it is empty.
        listen: Option<String> = listen(), None;
        /// Redis keys that clients may use. All these keys mean the same filter.
        keys: Vec<String> = redis_keys(),
            vec![crawl.name.clone(), format!("{}:dupefilter", crawl.name)];
        /// Form of the items that clients ask about.
        item: ItemForm = word(), ItemForm::Auto;
        /// Maximum number of clients that are connected at the same time.
        max_clients: usize = whole(1..=100_000, ""), 1000;
        /// Time limit for a new client to send its first command, and the password if one is set.
        greeting_timeout: Duration = duration("100ms", "24h"), Duration::from_secs(30);
        /// Maximum size of a command in bytes.
        request_bytes: usize = whole(1 << 10..=512 << 20, " of bytes"), 1 << 20;
        /// True if `DEL` empties the filter.
        allow_delete: bool = flag(), false;
    }

    /// Storage folder on this machine.
    storage: Storage {
        /// Path of the storage folder.
        dir: PathBuf = folder(), PathBuf::from("storage").join(&crawl.name);
        /// Policy for flushing the log to the disk.
        fsync: Fsync = word(), Fsync::Interval;
        /// Growth of the log in bytes after which the daemon writes a snapshot of the filter. An
        /// eighth of the snapshot's size is used instead if that is more.
        snapshot_bytes: u64 = whole(1 << 12..=1 << 40, " of bytes"), 64 << 20;
        /// Maximum size in bytes of all files together. This limits how far recovery can go back.
        horizon_bytes: u64 = whole(1 << 20..=1 << 50, " of bytes"), 16 << 30;
        /// True if every fingerprint that passed as unseen, or was imported, is archived.
        archive: bool = flag(), false;
        /// Reaction if the filter cannot be recovered to the exact state of Redis.
        on_rollback: Rollback = word(), Rollback::Stop;
    }

    /// Metrics, health and status over HTTP.
    admin: Admin {
        /// Address to listen on besides the Unix socket in the storage folder; none if it is empty.
        listen: Option<String> = listen(), None;
        /// Allowed host names in requests to `listen`, in addition to `localhost`.
        hosts: Vec<String> = host_names(), Vec::new();
    }

    /// Log lines of the daemon.
    log: Log {
        /// Least severe level that is logged.
        level: Level = word(), Level::Info;
        /// Format of each log line.
        format: LogFormat = word(), LogFormat::Text;
        /// Time between log lines about the progress; `0s` for no such lines.
        progress: Option<Duration> = duration_or_off("1s", "24h"), Some(Duration::from_secs(10));
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::take(&mut Layers::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_crawl_are_derived_from_its_own() {
        let mut layers = Layers::default();
        layers.add_set(&["crawl.name=shop".to_owned()]);
        let config = Config::take(&mut layers);
        assert_eq!(config.crawl.name, "shop");
        assert_eq!(config.source.key, "shop:discovered");
        assert_eq!(config.filter.key, "shop:filter");
        assert_eq!(config.sink.key, "shop:unseen");
        assert_eq!(config.rejects.key, "shop:rejected");
        assert_eq!(config.forget.key, "shop:forget");
        assert_eq!(config.serve.keys, ["shop", "shop:dupefilter"]);
        assert_eq!(config.storage.dir, PathBuf::from("storage/shop"));
    }
}
