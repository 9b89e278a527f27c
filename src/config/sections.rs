//! Table of all keys: section, name, type, allowed values and default. A macro generates the
//! structs and the list of known keys from the table.

use super::host_port::{HOST_NAMES, HostPort, LISTEN};
use super::partitions::PartitionChoice;
use super::rule_kinds::FoundRules;
use super::secret::Secret;
use super::taker::{Layers, Taker};
use super::value::{
    CRAWL, Count, DurationRange, EXPIRE_AFTER, FOLDER, Flag, Number, PEM_FILE, REDIS_KEY,
    REDIS_KEYS, RUN, Redis as RedisRule, Rule, Seed, WholeNumber, Word,
};
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use urlseen_core::filter::Kind;
use urlseen_core::filter::choice::{
    Emit, End, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback, SourceKind,
    WhenFull,
};
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::fingerprint::same::{SameRules, TrackingList};
use urlseen_core::fingerprint::{Algorithm, Partition, PartitionCount};
use urlseen_core::limit::LimitRule;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::protocol::SinkKind;
use urlseen_engine::engine::Threads;
use urlseen_engine::item::{ExpireRule, NamedRule};

/// Declares the sections. Each key has its field, its rule, and its default as a function of the
/// crawl's name.
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

            impl $Section {
                fn take(taker: &mut Taker) -> Self {
                    $(
                        let $key = taker.take(
                            concat!(stringify!($section), ".", stringify!($key)),
                            &$rule,
                            $default,
                        );
                    )+
                    Self { $( $key, )+ }
                }
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
            /// Rules by which different URLs are the same.
            pub same: SameRules,
            /// Rules that let items pass unchecked.
            pub pass: Arc<[NamedRule]>,
            /// Rules that drop items.
            pub drop: Arc<[NamedRule]>,
            /// Rules that limit unseen items.
            pub limits: Arc<[LimitRule]>,
            /// Rules with the times after which URLs of some pages pass again.
            pub expire: Arc<[ExpireRule]>,
            /// Partition that this configuration is for: [`Partition::WHOLE`] in a configuration
            /// that was read. See [`Config::of_partition`].
            pub partition: Partition,
        }

        impl Config {
            /// Takes the keys of all sections.
            pub(super) fn take(taker: &mut Taker) -> Self {
                let FoundRules { same, pass, drop, expire, limit } = taker.take_rules();
                Self {
                    $( $section: $Section::take(taker), )+
                    serve_password: taker.secret("serve"),
                    admin_token: taker.secret("admin"),
                    same: SameRules::new(same).expect("each rule was checked"),
                    pass: pass.into(),
                    drop: drop.into(),
                    limits: limit.into(),
                    expire: expire.into(),
                    partition: Partition::WHOLE,
                }
            }
        }

        impl Config {
            /// Returns the values of all keys in the form that a file has, in the order of the
            /// documentation. The password of Redis is left out.
            pub(super) fn values(&self) -> Vec<(&'static str, Json)> {
                vec![$( $( (
                    concat!(stringify!($section), ".", stringify!($key)),
                    Rule::<$Type>::write(&$rule, &self.$section.$key),
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
pub(crate) const CAPACITY: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Allowed error rates of a filter.
pub(crate) const ERROR_RATE: RangeInclusive<f64> = 1e-12..=0.1;
/// Largest expansion that RedisBloom accepts.
const EXPANSION: u64 = 32_768;
/// Largest value of a key that limits the length of a Redis list.
const LONGEST_LIST: u64 = u32::MAX as u64;

sections! {
    /// Crawl that this configuration is for.
    crawl: Crawl {
        /// Name from which the default keys, the storage folder and the metrics get their names.
        name: String = CRAWL, str::to_owned;
    }

    /// Redis server that holds the lists.
    redis: Redis {
        /// Address of the server, with the password.
        url: RedisAddress = RedisRule, |_| RedisAddress::local();
        /// File with the certificates of the trusted authorities.
        tls_ca: Option<PathBuf> = PEM_FILE, |_| None;
        /// File with the certificate that the program presents to the server.
        tls_cert: Option<PathBuf> = PEM_FILE, |_| None;
        /// File with the private key of this certificate.
        tls_key: Option<PathBuf> = PEM_FILE, |_| None;
        /// Number of replicas that must have a commit before it counts as acknowledged.
        wait_replicas: u64 = WholeNumber(0..=10, ""), |_| 0;
    }

    /// Equal parts of the crawl, each with its own keys and its own filter.
    partitions: Partitions {
        /// Number of partitions of the crawl.
        count: PartitionCount = Count, |_| PartitionCount::ONE;
        /// Partitions that this process runs.
        run: PartitionChoice = RUN, |_| PartitionChoice::All;
    }

    /// Source of discovered items.
    source: Source {
        /// Kind of the source of items.
        kind: SourceKind = Word, |_| SourceKind::List;
        /// Redis list that holds the items.
        key: String = REDIS_KEY, |crawl| format!("{crawl}:discovered");
        /// End of the list from which the next item is taken.
        take_from: End = Word, |_| End::Left;
        /// Form of the items in the source.
        item: ItemForm = Word, |_| ItemForm::Auto;
        /// Maximum number of items that are claimed, judged and committed together.
        batch: usize = WholeNumber(1..=100_000, ""), |_| 1000;
        /// Maximum size in bytes of all items of a batch. A single larger item makes a batch of its
        /// own.
        batch_bytes: usize = WholeNumber(1 << 10..=64 << 20, " of bytes"), |_| 8_388_608;
        /// Maximum size of an item in bytes. A larger item becomes a reject without the rest of it.
        item_bytes: usize = WholeNumber(64 << 10..=64 << 20, " of bytes"), |_| 16_777_216;
        /// Time that a claim waits for more items while few arrive.
        linger: Option<Duration> = DurationRange("1ms", "1s"), |_| Some(Duration::from_millis(2));
    }

    /// Computation of fingerprints.
    fingerprint: Fingerprint {
        /// Algorithm, named after the package whose fingerprints it reproduces.
        algorithm: Algorithm = Word, |_| Algorithm::Scrapy;
        /// True if URLs that differ only after the `#` have different fingerprints.
        keep_fragments: bool = Flag, |_| false;
        /// List of tracking parameters that do not affect the fingerprint of any URL.
        drop_tracking: TrackingList = Word, |_| TrackingList::None;
    }

    /// Filter that holds the fingerprints seen before.
    filter: Filter {
        /// Kind of the filter. The kind determines how the filter stores fingerprints. The default
        /// is `two-choice`, or `native` in Redis. An existing storage folder keeps its kind.
        kind: Kind = Word, |_| Kind::TWO_CHOICE;
        /// Place of the filter: memory of the daemon, or Redis.
        place: FilterPlace = Word, |_| FilterPlace::Local;
        /// Number of fingerprints that the filter holds at its error rate.
        capacity: u64 = WholeNumber(CAPACITY, ""), |_| Filter::default_capacity(Kind::TWO_CHOICE);
        /// Probability that the filter reports an unseen fingerprint as seen when it holds
        /// `capacity` fingerprints, or `grow_to` for the kind `two-choice`. The default is 1e-7 for
        /// this kind, and 1e-6 for others. An existing storage folder keeps its error rate.
        error_rate: f64 = Number(ERROR_RATE), |_| Filter::default_error_rate(Kind::TWO_CHOICE);
        /// Number of fingerprints up to which a filter of the kind `two-choice` keeps its error
        /// rate while it grows.
        grow_to: u64 = WholeNumber(CAPACITY, ""), |_| 1_000_000_000;
        /// Time after which a fingerprint passes again, for the kind `two-choice`. If
        /// it is empty, fingerprints do not expire.
        expire_after: Option<ExpireAfter> = EXPIRE_AFTER, |_| None;
        /// Number of bytes at which a filter that grows counts as full; 0 for no limit.
        max_memory: u64 = WholeNumber(0..=1 << 50, " of bytes"), |_| 0;
        /// Growth factor from the capacity of one layer to the next, for the kind `redisbloom`; 0
        /// for a filter that does not grow.
        expansion: u32 = WholeNumber(0..=EXPANSION, ""), |_| 2;
        /// Seed of the filter's hash; `None` for a random one, which is stored with the filter.
        seed: Option<u32> = Seed, |_| None;
        /// Reaction when the filter holds more than `capacity` fingerprints.
        when_full: WhenFull = Word, |_| WhenFull::Warn;
        /// Exponent of the size: a string has 2^`bit` bits, as with `BLOOMFILTER_BIT`. For the
        /// kinds `scrapy-redis-bloomfilter` and `scrapy-redis-bloomfilter-block-cluster`.
        bit: u32 = WholeNumber(1..=32, ""), |_| 30;
        /// Number of hashes, like `BLOOMFILTER_HASH_NUMBER`, for the kinds
        /// `scrapy-redis-bloomfilter` and `scrapy-redis-bloomfilter-block-cluster`.
        hash_number: u32 = WholeNumber(1..=100, ""), |_| 6;
        /// Number of strings, like `BLOOMFILTER_BLOCK_NUM`, for
        /// `scrapy-redis-bloomfilter-block-cluster`.
        block_num: u32 = WholeNumber(1..=4096, ""), |_| 1;
        /// Number of seen fingerprints that a daemon caches if the filter is in Redis. The daemon
        /// does not ask Redis about cached fingerprints. Each fingerprint takes 8 bytes.
        recent: usize = WholeNumber(1..=1 << 30, ""), |_| 1 << 22;
        /// Key of a filter in Redis, or the prefix of all keys of that filter.
        key: String = REDIS_KEY, |crawl| format!("{crawl}:filter");
        /// Number of threads that judge items; 0 for as many as there are processors, up to 64. All
        /// partitions of a process share them.
        threads: usize = WholeNumber(0..=Threads::MAX as u64, ""), |_| 0;
    }

    /// Sink for unseen items.
    sink: Sink {
        /// Redis list or sorted set that receives the items.
        key: String = REDIS_KEY, |crawl| format!("{crawl}:unseen");
        /// Kind of the sink, a list or a sorted set.
        kind: SinkKind = Word, |_| SinkKind::List;
        /// End of the list that items are pushed to.
        push_to: End = Word, |_| End::Right;
        /// Content of an item that is pushed to the sink.
        emit: Emit = Word, |_| Emit::Item;
        /// Number of items in the sink at which the daemon stops claiming items; 0 for no limit.
        max_len: u64 = WholeNumber(0..=LONGEST_LIST, ""), |_| 0;
    }

    /// List of items that cannot be read.
    rejects: Rejects {
        /// Redis list that holds the rejects.
        key: String = REDIS_KEY, |crawl| format!("{crawl}:rejected");
        /// Maximum number of rejects to keep; at least `source.batch`.
        max_len: u64 = WholeNumber(1..=LONGEST_LIST, ""), |_| 1_000_000;
        /// Reaction when the list has `max_len` rejects.
        when_full: RejectsFull = Word, |_| RejectsFull::Wait;
    }

    /// Fingerprints to forget, so that their items pass again.
    forget: Forget {
        /// Redis list of fingerprints or items to forget.
        key: String = REDIS_KEY, |crawl| format!("{crawl}:forget");
        /// Maximum number of forgotten fingerprints whose items have not passed again.
        max_len: usize = WholeNumber(1..=100_000_000, ""), |_| 1_000_000;
    }

    /// Requests that consumers popped and have not acknowledged.
    held: Held {
        /// Time without a heartbeat after which a consumer is considered stopped.
        timeout: Duration = DurationRange("1s", "24h"), |_| Duration::from_mins(1);
        /// Maximum number of deliveries of a request that no consumer finishes.
        deliveries: u64 = WholeNumber(1..=1000, ""), |_| 3;
    }

    /// Server for clients that speak the Redis protocol.
    serve: Serve {
        /// Address to listen on; no server if it is empty.
        listen: Option<HostPort> = LISTEN, |_| None;
        /// Redis keys that clients may use. All these keys mean the same filter.
        keys: Vec<String> = REDIS_KEYS,
            |crawl| vec![crawl.to_owned(), format!("{crawl}:dupefilter")];
        /// Form of the items that clients ask about.
        item: ItemForm = Word, |_| ItemForm::Auto;
        /// Maximum number of clients that are connected at the same time.
        max_clients: usize = WholeNumber(1..=100_000, ""), |_| 1000;
        /// Time limit for a new client to send its first command, and the password if one is set.
        greeting_timeout: Duration = DurationRange("100ms", "24h"), |_| Duration::from_secs(30);
        /// Maximum size of a command in bytes.
        request_bytes: usize = WholeNumber(1 << 10..=512 << 20, " of bytes"), |_| 1 << 20;
        /// True if `DEL` empties the filter.
        allow_delete: bool = Flag, |_| false;
    }

    /// Storage folder on this machine.
    storage: Storage {
        /// Path of the storage folder.
        dir: PathBuf = FOLDER, |crawl| PathBuf::from("storage").join(crawl);
        /// Policy for flushing the log to the disk.
        fsync: Fsync = Word, |_| Fsync::Interval;
        /// Growth of the log in bytes after which the daemon writes a snapshot of the filter. An
        /// eighth of the snapshot's size is used instead if that is more.
        snapshot_bytes: u64 = WholeNumber(1 << 12..=1 << 40, " of bytes"), |_| 64 << 20;
        /// Maximum size in bytes of all files together. This limits how far recovery can go back.
        horizon_bytes: u64 = WholeNumber(1 << 20..=1 << 50, " of bytes"), |_| 16 << 30;
        /// True if every fingerprint that passed as unseen, or was imported, is archived.
        archive: bool = Flag, |_| false;
        /// Reaction if the filter cannot be recovered to the exact state of Redis.
        on_rollback: Rollback = Word, |_| Rollback::Stop;
    }

    /// Metrics, health and status over HTTP.
    admin: Admin {
        /// Address to listen on besides the Unix socket in the storage folder; none if it is empty.
        listen: Option<HostPort> = LISTEN, |_| None;
        /// Allowed host names in requests to `listen`, in addition to `localhost`.
        hosts: Vec<String> = HOST_NAMES, |_| Vec::new();
    }

    /// Log lines of the daemon.
    log: Log {
        /// Least severe level that is logged.
        level: Level = Word, |_| Level::Info;
        /// Format of each log line.
        format: LogFormat = Word, |_| LogFormat::Text;
        /// Time between log lines about the progress; `0s` for no such lines.
        progress: Option<Duration> = DurationRange("1s", "24h"), |_| Some(Duration::from_secs(10));
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::take(&mut Taker::new(Layers::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_crawl_are_derived_from_its_own() {
        let mut layers = Layers::default();
        layers.add_set(&["crawl.name=shop".to_owned()]);
        let mut taker = Taker::new(layers);
        assert_eq!(Crawl::take(&mut taker).name, "shop");
        assert_eq!(Source::take(&mut taker).key, "shop:discovered");
        assert_eq!(Filter::take(&mut taker).key, "shop:filter");
        assert_eq!(Sink::take(&mut taker).key, "shop:unseen");
        assert_eq!(Rejects::take(&mut taker).key, "shop:rejected");
        assert_eq!(Forget::take(&mut taker).key, "shop:forget");
        assert_eq!(Serve::take(&mut taker).keys, ["shop", "shop:dupefilter"]);
        assert_eq!(Storage::take(&mut taker).dir, PathBuf::from("storage/shop"));
    }
}
