//! The one table of all keys: section, name, type, what is allowed, default. The structs, the list
//! of known keys and the names of the environment variables all come from it.

use super::check::Taker;
use super::host_names::HostNames;
use super::host_port::HostPort;
use super::pass::PassRule;
use super::secret::Secret;
use super::seed::SeedChoice;
use super::value::{
    Address, DurationRange, Every, Flag, Folder, NameRule, Number, Redis as RedisRule, RedisKey,
    RedisKeys, Seed, WholeNumber, Word,
};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use urlseen_core::filter::Kind;
use urlseen_core::filter::choice::{
    Emit, End, FilterPlace, Fsync, ItemForm, Level, LogFormat, RejectsFull, Rollback, SourceKind,
    WhenFull,
};
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::fingerprint::Algorithm;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::sink::SinkKind;

/// Declares the sections: for each key its field, its rule, and its default as a function of the
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

        /// Every section, in the order of the documentation.
        pub(super) const SECTIONS: &[&str] = &[$( stringify!($section), )+];

        /// Every key as `section.key`, in the order of the documentation.
        pub(crate) const KEYS: &[&str] =
            &[$( $( concat!(stringify!($section), ".", stringify!($key)), )+ )+];
    };
}

/// How many fingerprints a filter may be made for.
pub(crate) const CAPACITY: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// The error rates that a filter may be made for.
pub(crate) const ERROR_RATE: RangeInclusive<f64> = 1e-12..=0.1;
/// The most that RedisBloom takes for an expansion.
const EXPANSION: u64 = 32_768;
/// The longest Redis list that this can be told to stay below.
const LONGEST_LIST: u64 = u32::MAX as u64;
/// The most threads that own shards.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

sections! {
    /// The crawl.
    crawl: Crawl {
        /// What it is called: names the default keys, the storage folder and the metrics.
        name: String = NameRule, |_| "demo".to_owned();
    }

    /// The Redis server that holds the lists.
    redis: Redis {
        /// Its address, with the password.
        url: RedisAddress = RedisRule, |_| RedisAddress::local();
    }

    /// Where discovered items are taken from.
    source: Source {
        /// What it is.
        kind: SourceKind = Word, |_| SourceKind::List;
        /// A Redis list.
        key: String = RedisKey, |crawl| format!("{crawl}:discovered");
        /// The end of the list that holds the item whose turn is next.
        take_from: End = Word, |_| End::Left;
        /// What the items look like.
        item: ItemForm = Word, |_| ItemForm::Auto;
        /// The most items that are taken, judged and committed together.
        batch: usize = WholeNumber(1..=100_000, ""), |_| 1000;
        /// The most bytes that a batch's items have together, unless one item has more by itself.
        batch_bytes: usize = WholeNumber(1 << 10..=64 << 20, " of bytes"), |_| 8_388_608;
        /// The time that a claim waits for more items while few come.
        linger: Option<Duration> = Every(Duration::from_millis(1)..=Duration::from_secs(1)),
            |_| Some(Duration::from_millis(2));
    }

    /// How fingerprints are computed.
    fingerprint: Fingerprint {
        /// Whose fingerprints they equal.
        algorithm: Algorithm = Word, |_| Algorithm::Scrapy;
        /// Whether URLs that differ in what follows `#` are different.
        keep_fragments: bool = Flag, |_| false;
    }

    /// The filter that knows which fingerprints have been seen.
    filter: Filter {
        /// How a fingerprint becomes bit positions.
        kind: Kind = Word, |_| NATIVE;
        /// Where the bits live.
        place: FilterPlace = Word, |_| FilterPlace::Local;
        /// How many fingerprints the filter holds at its error rate.
        capacity: u64 = WholeNumber(CAPACITY, ""), |_| 10_000_000;
        /// The chance that an unseen fingerprint passes for a seen one once `capacity` are held.
        error_rate: f64 = Number(ERROR_RATE), |_| 1e-6;
        /// How many times the capacity of the last layer the next one has, for the kind
        /// `redisbloom`; 0 for a filter that does not grow.
        expansion: u32 = WholeNumber(0..=EXPANSION, ""), |_| 2;
        /// What the hash is seeded with.
        seed: SeedChoice = Seed, |_| SeedChoice::Random;
        /// What happens once more than `capacity` fingerprints are held.
        when_full: WhenFull = Word, |_| WhenFull::Warn;
        /// Bits of a string as a power of two, as `BLOOMFILTER_BIT` has it: for the kinds
        /// `scrapy-redis-bloomfilter` and `scrapy-redis-bloomfilter-block-cluster`.
        bit: u32 = WholeNumber(1..=32, ""), |_| 30;
        /// Hashes, as `BLOOMFILTER_HASH_NUMBER` has it, for the same kinds.
        hash_number: u32 = WholeNumber(1..=100, ""), |_| 6;
        /// Strings, as `BLOOMFILTER_BLOCK_NUM` has it, for the latter.
        block_num: u32 = WholeNumber(1..=4096, ""), |_| 1;
        /// How many fingerprints a daemon remembers that it knows to be seen, where the bits live
        /// in Redis: so as not to ask again. Each takes 8 bytes.
        recent: usize = WholeNumber(1..=1 << 30, ""), |_| 1 << 22;
        /// The Redis key, or what all the kind's keys begin with, of bits that live in Redis.
        key: String = RedisKey, |crawl| format!("{crawl}:filter");
        /// How many threads own shards, 0 to go by the machine: see [`Filter::owners`].
        threads: usize = WholeNumber(0..=MOST_THREADS.get() as u64, ""), |_| 0;
    }

    /// Where unseen items are pushed.
    sink: Sink {
        /// A Redis list, or a sorted set.
        key: String = RedisKey, |crawl| format!("{crawl}:unseen");
        /// Which of the two.
        kind: SinkKind = Word, |_| SinkKind::List;
        /// The end of the list that items are pushed to.
        push_to: End = Word, |_| End::Right;
        /// What is pushed of an item.
        emit: Emit = Word, |_| Emit::Item;
        /// Nothing more is taken from the source while the sink has this many items; 0 for no end.
        max_len: u64 = WholeNumber(0..=LONGEST_LIST, ""), |_| 0;
    }

    /// Where items go that cannot be read.
    rejects: Rejects {
        /// A Redis list.
        key: String = RedisKey, |crawl| format!("{crawl}:rejected");
        /// The most rejects that are kept; no less than [`Source::batch`].
        max_len: u64 = WholeNumber(1..=LONGEST_LIST, ""), |_| 1_000_000;
        /// What happens once that many are kept.
        when_full: RejectsFull = Word, |_| RejectsFull::Wait;
    }

    /// Fingerprints that are to pass once more.
    forget: Forget {
        /// A Redis list of them, or of items that have them.
        key: String = RedisKey, |crawl| format!("{crawl}:forget");
        /// How many may be forgotten and not have passed again.
        max_len: usize = WholeNumber(1..=100_000_000, ""), |_| 1_000_000;
    }

    /// Requests that consumers popped and have not acknowledged.
    held: Held {
        /// The time without a heartbeat after which a consumer counts as stopped.
        timeout: Duration = DurationRange(Duration::from_secs(1)..=Duration::from_hours(24)),
            |_| Duration::from_mins(1);
        /// The most deliveries of a request that no consumer finishes.
        deliveries: u64 = WholeNumber(1..=1000, ""), |_| 3;
    }

    /// The Redis protocol, for those who ask.
    serve: Serve {
        /// Where to listen.
        listen: Option<HostPort> = Address, |_| None;
        /// The keys that are answered for; all of them are the one filter.
        keys: Vec<String> = RedisKeys,
            |crawl| vec![crawl.to_owned(), format!("{crawl}:dupefilter")];
        /// What is asked looks like.
        item: ItemForm = Word, |_| ItemForm::Auto;
        /// How many clients may be connected at once.
        max_clients: usize = WholeNumber(1..=100_000, ""), |_| 1000;
        /// Time that a new client has for its first command, and for the password if there is one.
        greeting_timeout: Duration =
            DurationRange(Duration::from_millis(100)..=Duration::from_hours(24)),
            |_| Duration::from_secs(30);
        /// The most bytes that a command may have.
        request_bytes: usize = WholeNumber(1 << 10..=512 << 20, " of bytes"), |_| 1 << 20;
        /// Whether `DEL` empties the filter.
        allow_delete: bool = Flag, |_| false;
    }

    /// What is kept on this machine.
    storage: Storage {
        /// The folder it is kept in.
        dir: PathBuf = Folder, |crawl| PathBuf::from("storage").join(crawl);
        /// When the log is flushed to the disk.
        fsync: Fsync = Word, |_| Fsync::Interval;
        /// By how many bytes the log grows before the filter is saved whole (a snapshot); an
        /// eighth of the filter's size if that is more.
        snapshot_bytes: u64 = WholeNumber(1 << 12..=1 << 40, " of bytes"), |_| 64 << 20;
        /// How many bytes all files together may have for the sake of going back further.
        horizon_bytes: u64 = WholeNumber(1 << 20..=1 << 50, " of bytes"), |_| 16 << 30;
        /// Whether fingerprints are archived that were let through.
        archive: bool = Flag, |_| false;
        /// What happens where the filter cannot be brought to just what Redis knows.
        on_rollback: Rollback = Word, |_| Rollback::Stop;
    }

    /// Metrics, health and status over HTTP.
    admin: Admin {
        /// Where to listen beside the Unix socket in the storage folder.
        listen: Option<HostPort> = Address, |_| None;
        /// Names of hosts that requests there may be addressed to, beside `localhost`.
        hosts: Vec<String> = HostNames, |_| Vec::new();
    }

    /// What is logged.
    log: Log {
        /// The least severe events that are.
        level: Level = Word, |_| Level::Info;
        /// What a line looks like.
        format: LogFormat = Word, |_| LogFormat::Text;
        /// How often a line says how the work goes, if ever.
        progress: Option<Duration> = Every(Duration::from_secs(1)..=Duration::from_hours(24)),
            |_| Some(Duration::from_secs(10));
    }
}

/// A whole configuration, checked: every value is one that this version can run with, and they go
/// together. The default is what an empty file gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The crawl.
    pub crawl: Crawl,
    /// The Redis server that holds the lists.
    pub redis: Redis,
    /// Where discovered items are taken from.
    pub source: Source,
    /// How fingerprints are computed.
    pub fingerprint: Fingerprint,
    /// The filter that knows which fingerprints have been seen.
    pub filter: Filter,
    /// Where unseen items are pushed.
    pub sink: Sink,
    /// Where items go that cannot be read.
    pub rejects: Rejects,
    /// Fingerprints that are to pass once more.
    pub forget: Forget,
    /// Requests that consumers popped and have not acknowledged.
    pub held: Held,
    /// The Redis protocol, for those who ask.
    pub serve: Serve,
    /// The password that those have to give, from the environment alone.
    pub serve_password: Option<Secret>,
    /// What is kept on this machine.
    pub storage: Storage,
    /// Metrics, health and status over HTTP.
    pub admin: Admin,
    /// What is logged.
    pub log: Log,
    /// Which pages pass again and again. They live as long as the process: each thread reads them.
    pub pass: &'static [PassRule],
}

impl Config {
    /// Takes all keys. The crawl's name goes first: defaults of others are derived from it.
    pub(super) fn take(taker: &mut Taker) -> Self {
        let crawl = Crawl::take(taker);
        taker.derive_from(&crawl.name);
        Self {
            crawl,
            redis: Redis::take(taker),
            source: Source::take(taker),
            fingerprint: Fingerprint::take(taker),
            filter: Filter::take(taker),
            sink: Sink::take(taker),
            rejects: Rejects::take(taker),
            forget: Forget::take(taker),
            held: Held::take(taker),
            serve: Serve::take(taker),
            serve_password: taker.serve_password(),
            storage: Storage::take(taker),
            admin: Admin::take(taker),
            log: Log::take(taker),
            pass: taker.take_pass(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::take(&mut Taker::default())
    }
}

impl Filter {
    /// How many threads own shards on a machine of so many cores: as many as are set, or else as
    /// many as there are cores.
    pub fn owners(&self, cores: NonZeroUsize) -> NonZeroUsize {
        NonZeroUsize::new(self.threads).unwrap_or(cores).min(MOST_THREADS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_cores_unless_set() {
        let owners = |threads, cores| {
            let filter = Filter { threads, ..Config::default().filter };
            filter.owners(NonZeroUsize::new(cores).unwrap()).get()
        };
        assert_eq!([owners(0, 1), owners(0, 2), owners(0, 8), owners(0, 256)], [1, 2, 8, 64]);
        assert_eq!([owners(1, 8), owners(5, 2), owners(64, 2)], [1, 5, 64]);
    }

    #[test]
    fn the_names_of_a_crawl_are_derived_from_its_own() {
        let mut taker = Taker::default();
        taker.derive_from("shop");
        assert_eq!(Source::take(&mut taker).key, "shop:discovered");
        assert_eq!(Filter::take(&mut taker).key, "shop:filter");
        assert_eq!(Sink::take(&mut taker).key, "shop:unseen");
        assert_eq!(Rejects::take(&mut taker).key, "shop:rejected");
        assert_eq!(Forget::take(&mut taker).key, "shop:forget");
        assert_eq!(Serve::take(&mut taker).keys, ["shop", "shop:dupefilter"]);
        assert_eq!(Storage::take(&mut taker).dir, PathBuf::from("storage/shop"));
    }
}
