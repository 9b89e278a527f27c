//! Options that commands share: the configuration, the storage folder, and the shape of a filter.

use crate::config::{Filter, Problems, choose};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use urlseen_filter::FillWatch;
use urlseen_filter::choice::Choice;
use urlseen_filter::memory::Available;
use urlseen_fingerprint::same::{SameRules, TrackingList};
use urlseen_storage::StoragePolicy;

use crate::cli::prelude::*;

/// Returns a parser of the words of a choice that `is_allowed` permits. The help and the errors of
/// clap list these words.
pub(super) fn word<T: Choice + Send + Sync>(
    is_allowed: fn(&T) -> bool,
) -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter().filter(move |(_, choice)| is_allowed(choice)).map(|(word, _)| *word);
    PossibleValuesParser::new(words).try_map(|word| choose(&word))
}

/// Sources of the configuration, besides the environment.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    /// The configuration file. Default: ./config.toml, if it exists
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the configuration, for example filter.capacity=1e9. The option can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl ConfigArgs {
    /// Returns the sources, with the environment and the additional settings `KEY=VALUE` in
    /// `more`.
    pub(super) fn sources(&self, more: &[String]) -> Sources {
        let (file, set) = (self.config.clone(), [&self.set, more].concat());
        Sources { file, env: std::env::vars_os().collect(), set }
    }
}

/// Sources of the configuration, and the choice of a partition.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    #[command(flatten)]
    pub(super) layers: ConfigArgs,
    /// Work only on this partition, if the crawl has several (partitions.count). The first one has
    /// the number 0
    #[arg(long, value_name = "NUMBER")]
    pub(super) partition: Option<u16>,
}

impl Settings {
    /// Reads and checks the configuration, for a command that works on one partition: the one that
    /// the user named, or the only one of the crawl.
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        let mut partitions = self.load_all()?;
        let config = partitions.pop().filter(|_| partitions.is_empty());
        config.ok_or_else(|| {
            usage("the crawl has several partitions (partitions.count): name one with --partition")
        })
    }

    /// Reads and checks the configuration, for a command that works on all partitions, or on the
    /// one that the user named. Returns their configurations in order.
    pub(super) fn load_all(&self) -> anyhow::Result<Vec<Config>> {
        self.crawls_of(&self.load_crawl()?)
    }

    /// Reads and checks the configuration of the whole crawl.
    pub(super) fn load_crawl(&self) -> Result<Config, Problems> {
        Config::load(self.layers.sources(&[]))
    }

    /// Returns the configurations of all partitions of `crawl`, or of the one that the user named.
    pub(super) fn crawls_of(&self, crawl: &Config) -> anyhow::Result<Vec<Config>> {
        let Some(number) = self.partition else { return Ok(crawl.crawls().collect()) };
        let partition = crawl.partitions.count.partitions().nth(number.into());
        let partition = partition.ok_or_else(|| {
            let count = crawl.partitions.count;
            usage(format!(
                "--partition is {number}, and partitions.count is {count}: the partitions have the \
                 numbers 0 to {}",
                count.get() - 1
            ))
        })?;
        Ok(vec![crawl.of_partition(partition)])
    }
}

/// Storage folder of a command, named by its path or by the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct FolderOptions {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The storage folder. Default: storage.dir of the configuration
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set", "partition"])]
    pub(super) storage: Option<PathBuf>,
}

/// Returns the storage folder of the filter; `None` if the filter is in Redis.
pub(super) fn folder_of(config: &Config) -> Option<&Path> {
    (config.filter.place == FilterPlace::Local).then_some(&*config.storage.dir)
}

/// Returns a client of the daemon of a partition. `what` needs the daemon's socket in the storage
/// folder.
pub(super) fn daemon_of(config: &Config, what: &str) -> anyhow::Result<AdminClient> {
    let Some(folder) = folder_of(config) else {
        return Err(usage(format!(
            "the filter is in Redis, and its daemon has no socket to ask; {what} needs \
             filter.place = \"local\". Or set admin.listen, and ask for / or /healthz there"
        )));
    };
    Ok(AdminClient::new(folder)?)
}

impl FolderOptions {
    /// Returns the configuration. With `--storage`, returns the default configuration with this
    /// folder.
    pub(super) fn locate(&self) -> anyhow::Result<Config> {
        let Some(folder) = &self.storage else { return self.settings.load() };
        let mut config = Config::default();
        config.storage.dir.clone_from(folder);
        Ok(config)
    }

    /// Returns the configuration of each partition, or of the only one that the user named.
    pub(super) fn locate_all(&self) -> anyhow::Result<Vec<Config>> {
        if self.storage.is_some() { Ok(vec![self.locate()?]) } else { self.settings.load_all() }
    }
}

/// Rules by which fingerprints are computed. If an option is missing, its value comes from the
/// storage folder, if there is one.
#[derive(Debug, clap::Args)]
pub(super) struct Computing {
    /// Algorithm of the fingerprints. Default: scrapy, if no storage folder records another one
    #[arg(long, value_name = "NAME", value_parser = word(|_: &Algorithm| true))]
    pub(super) algorithm: Option<Algorithm>,
    /// Canonical form of URLs: w3lib-2.5, or w3lib-2.4 for the form of earlier versions of w3lib.
    /// Default: w3lib-2.5, if no storage folder records the other one
    #[arg(long, value_name = "FORM", value_parser = word(|_: &CanonicalForm| true))]
    pub(super) canonical_form: Option<CanonicalForm>,
    /// Treat URLs that differ only in their fragments as different. By default, these URLs are
    /// equal
    #[arg(long)]
    keep_fragments: bool,
    /// List of tracking parameters that do not affect the fingerprint: none or 2026-11. Default:
    /// none, if no storage folder records a list
    #[arg(long, value_name = "LIST")]
    drop_tracking: Option<TrackingList>,
    /// Use the rules `[[same]]` of this configuration file: URLs that they make equal have the same
    /// fingerprint. Default: no rules, if no storage folder records some
    #[arg(long, value_name = "FILE", value_parser = same_rules_of)]
    rules: Option<SameRules>,
}

impl Computing {
    /// Returns the given spec with the changes that the user asked for.
    pub(super) fn changed(&self, spec: FingerprintSpec) -> FingerprintSpec {
        FingerprintSpec {
            algorithm: self.algorithm.unwrap_or(spec.algorithm),
            canonical: self.canonical_form.unwrap_or(spec.canonical),
            keep_fragments: self.keep_fragments || spec.keep_fragments,
            drop_tracking: self.drop_tracking.unwrap_or(spec.drop_tracking),
            same: self.rules.clone().unwrap_or(spec.same),
        }
    }
}

/// Kind and parameters of a filter. If an option is missing, its value comes from the storage
/// folder. If an option is given, its value must agree with the folder.
#[derive(Debug, clap::Args)]
pub(super) struct FilterOptions {
    /// Kind of the filter. Default: the kind that the storage folder records, or two-choice
    #[arg(long, value_name = "KIND", value_parser = word(|it: &Kind| it.is_in(FilterPlace::Local)))]
    kind: Option<Kind>,
    /// Number of different fingerprints that the filter is made for, such as 5000000, 1e9 or 200M.
    /// A filter of the kind two-choice begins with this size and grows. Default: the number that
    /// the storage folder records, or 100k for the kind two-choice, and 10M for others
    #[arg(long, value_name = "N")]
    capacity: Option<Capacity>,
    /// Only for the kind two-choice: number of different fingerprints up to which the filter keeps
    /// its error rate while it grows. If --capacity is larger, that number counts. Default: the
    /// number that the storage folder records, or 1G
    #[arg(long, value_name = "N")]
    grow_to: Option<Capacity>,
    /// Time after which a fingerprint passes again, for the kind two-choice: a time such
    /// as 30d or 12h. Default: the time that the storage folder records, or never
    #[arg(long, value_name = "TIME")]
    expire_after: Option<ExpireAfter>,
    /// Share of unseen fingerprints that a filter may report as seen when it holds --capacity
    /// fingerprints, or --grow-to for the kind two-choice. From 1e-12 to 0.1. Default: the share
    /// that the storage folder records, or 1e-7 for the kind two-choice, and 1e-6 for others
    #[arg(long, value_name = "P")]
    error_rate: Option<ErrorRate>,
    #[command(flatten)]
    pub(super) computing: Computing,
    /// Seed of the filter's hash. The same seed gives the same results in each run. Default: random
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
}

/// Reads the rules `[[same]]` of a configuration file. The environment does not count, because it
/// cannot have rules.
fn same_rules_of(path: &str) -> Result<SameRules, String> {
    let sources = Sources { file: Some(path.into()), ..Sources::default() };
    Config::load(sources).map(|config| config.rules.same).map_err(|problems| problems.to_string())
}

impl FilterOptions {
    /// Returns the spec of the filter in the folder with this header, or of a new filter.
    pub(super) fn spec(&self, header: Option<&Header>) -> anyhow::Result<StorageSpec> {
        let recorded = header.map(|header| &header.spec);
        let is = recorded.map(|spec| &spec.filter);
        let parameters = self.parameters(is.map(|filter| &filter.parameters))?;
        let fingerprint = is.map(|filter| filter.fingerprint.clone()).unwrap_or_default();
        let fingerprint = self.computing.changed(fingerprint);
        Ok(StorageSpec {
            filter: FilterSpec { parameters, fingerprint },
            crawl: recorded.map_or_else(|| Config::default().crawl.name, |it| it.crawl.clone()),
        })
    }

    /// Returns the options that a kind may not have, each with its key and its value.
    fn given(&self) -> [(&'static str, &'static str, Option<String>); 5] {
        let count = |it: Option<Capacity>| it.map(|it| it.get().to_string());
        [
            ("--capacity", "filter.capacity", count(self.capacity)),
            ("--grow-to", "filter.grow_to", count(self.grow_to)),
            ("--expire-after", "filter.expire_after", self.expire_after.map(|it| it.to_string())),
            ("--error-rate", "filter.error_rate", self.error_rate.map(|it| it.to_string())),
            ("--seed", "filter.seed", self.seed.map(|it| it.to_string())),
        ]
    }

    /// Refuses options that a filter of the given kind does not have. `is_new` is false if a
    /// storage folder records the kind.
    fn check_options(&self, kind: Kind, is_new: bool) -> anyhow::Result<()> {
        let is_wrong = |key| !kind.keys().contains(&key);
        let mut given = self.given().into_iter();
        let wrong = given.find(|(_, key, value)| value.is_some() && is_wrong(*key));
        let Some((option, key, _)) = wrong else { return Ok(()) };
        let is_asked = is_new && ["--grow-to", "--expire-after"].contains(&option);
        let others = Kind::all_in(FilterPlace::Local).filter(|it| it.keys().contains(&key));
        let others: Vec<_> = others.map(|it| format!("--kind {it}")).collect();
        let other =
            if is_asked { format!(", or give {}", others.join(" or ")) } else { String::new() };
        Err(usage(format!("a filter of the kind {kind} has no {option}: leave it out{other}")))
    }

    /// Returns the filter's kind and parameters. The argument `is` holds the parameters that the
    /// folder records.
    fn parameters(&self, is: Option<&Parameters>) -> anyhow::Result<Parameters> {
        let mut default = Config::default();
        let kind = self.kind.or(is.map(Parameters::kind)).unwrap_or(default.filter.kind);
        let is_given = self.capacity.is_some() || self.error_rate.is_some();
        self.check_options(kind, is.is_none())?;
        let is_same = is.is_some_and(|is| is.kind() == kind);
        if let Some(is) = is.filter(|is| is.is_imported() && is_same && !is_given) {
            return Ok(is.clone());
        }
        default.filter.error_rate = Filter::default_error_rate(kind);
        default.filter.capacity = Filter::default_capacity(kind);
        Ok(kind.read(&|name| {
            let given = self.given().into_iter().find(|(_, key, _)| *key == name);
            let given = given.and_then(|(.., value)| value);
            let is_kept = match name {
                "filter.capacity" | "filter.error_rate" => is_same,
                "filter.seed" | "partitions.count" => false,
                _ => true,
            };
            let recorded = is.filter(|_| is_kept).and_then(|is| is.field(name));
            given.or(recorded).or_else(|| default.part(name))
        })?)
    }
}

/// Describes the filter with the given parameters.
pub(super) fn described(parameters: &Parameters) -> String {
    let mut text = parameters.kind().to_string();
    if parameters.bytes() > 0 {
        text = format!("{text}, {}", BinaryBytes(parameters.bytes()));
    }
    if let Some(capacity) = parameters.capacity() {
        text = format!("{text} for {} fingerprints", HumanCount(capacity));
    }
    if let Some(error_rate) = parameters.field::<ErrorRate>("filter.error_rate") {
        text = format!("{text} at {error_rate}");
    }
    let shape = parameters.shape();
    if shape.is_empty() { text } else { format!("{text}, {shape}") }
}

/// Warns if the memory is too small for the planned size of a filter that grows.
pub(super) fn outgrown(parameters: &Parameters) -> Option<String> {
    let (bytes, Available { bytes: have, limit }) = parameters.outgrown()?;
    let (bytes, have) = (BinaryBytes(bytes), BinaryBytes(have));
    Some(format!(
        "with filter.grow_to fingerprints, the filter would take {bytes}, and {have} are available \
         {limit}: give the process more memory before it is full, or lower filter.grow_to"
    ))
}

/// Returns an observer of the fill, if the error rate of the filter grows with its fill.
pub(super) fn fill_watch(parameters: &Parameters) -> Option<FillWatch> {
    Config::default().limit(parameters).map(FillWatch::new)
}

/// Returns the default storage settings, for a filter without a configuration.
pub(super) fn keeping(spec: StorageSpec) -> Keeping {
    Keeping { spec, policy: StoragePolicy::default(), emit_again: false }
}
