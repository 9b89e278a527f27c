//! `urlseen replay`: predicts the verdicts of urlseen on the links of a crawl.

mod report;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::analysis::{LaneSpec, ReplayEnding, ReplayReport, Setup, Tally, replay, suggest};
use crate::cli::prelude::*;
use crate::config::{Filter, choose};

/// Report what urlseen would do with the links of a crawl, and how often it would be wrong.
///
/// The command reads files with one item a line, in the order of discovery. Without files, it reads
/// the configured source in Redis, or the keys that --key names. It changes nothing and takes no
/// lease, so it can run during the crawl. It compares the verdicts of one or several kinds of
/// filter with an exact set in memory. So it finds each unseen item that a filter would drop.
///
/// If the daemon would reject some of the items, the exit status is 1. After SIGINT (Ctrl-C), the
/// command reports on the items that it has read, and ends.
///
/// Examples:
/// ```text
/// urlseen replay --key demo:discovered --seen demo:dupefilter
/// urlseen replay links.txt.gz --suggest
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    settings: Settings,
    /// Key to read at the configured redis.url: a list, a sorted set (for scrapy-redis,
    /// SPIDER:requests) or a set (SPIDER:dupefilter). The option can be repeated. Default:
    /// source.key
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    key: Vec<String>,
    /// Fingerprints that count as seen from the start. The value is a file with lines of hex
    /// digits, a requests.seen file of Scrapy, or a set at the configured redis.url (for
    /// scrapy-redis, SPIDER:dupefilter). If a file and a set have this name, the command reads the
    /// file. The option can be repeated
    #[arg(long, value_name = "FILE|KEY")]
    seen: Vec<String>,
    /// Maximum number of items to replay, such as 1000000, 1e6 or 1M. Default: all items
    #[arg(long, value_name = "N")]
    count: Option<Capacity>,
    /// Kinds of filter to compare, with the configured settings. The value is a list of values of
    /// filter.kind, separated by commas. Default: the configured kind
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<Kind>,
    /// Form of the items. Default: source.item of the configuration
    #[arg(long, value_name = "FORM")]
    item: Option<ItemForm>,
    /// Print rules that would save requests, instead of a report. The command finds them in the
    /// links: parameters whose values seem to change nothing, parameters that are combined freely,
    /// and other spellings of the same pages
    #[arg(long, conflicts_with_all = ["seen", "kinds"])]
    suggest: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: RecordOptions,
    /// Files with items, plain or compressed (gzip, Zstandard, xz, bzip2). `-` is standard input.
    /// Default: the source in Redis, or the keys of --key
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Parses the name of a kind in the configuration, or its short name.
fn kind(word: &str) -> Result<Kind, String> {
    let named = Kind::all().find(|kind| kind.short() == word);
    named.map_or_else(|| choose(word).map_err(|error| error.to_string()), Ok)
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<Outcome> {
    let config = configured(args)?;
    let crawl = start::crawl(&config);
    if args.suggest {
        let (items, most) = (start::items(&config), args.count.map(Capacity::get));
        let found = suggest(input(args, &config), items, crawl, most, &*listen()?)?;
        let json = args.json.then(|| serde_json::to_string(&found)).transpose()?;
        return answer(json, |out| report::suggestions(&found, out));
    }
    let setup = Setup {
        items: start::items(&config),
        seed: config.filter.seed.map_or_else(Seed::random, Seed::new),
        specs: specs(args, &config)?,
        threads: config.filter.threads,
        seen: args.seen.iter().map(|name| seen(name, &config)).collect(),
        input: input(args, &config),
        most: args.count.map(Capacity::get),
        crawl,
    };
    let is_bytes = matches!(setup.input, Input::Files(..));
    let bar = if is_bytes { Bar::new("read") } else { Bar::counting("items") };
    let mut teller = BarAudience::new(bar, draw);
    let stop = listen()?;
    let report = replay(setup, &stop, &mut teller)?;
    let tally = &report.tally;
    teller.end(tally.given_bad, "are in --seen and are not fingerprints");
    let is_bad = tally.rejected + tally.given_bad > 0;
    if let ReplayReport {
        ending: ReplayEnding::Failed(error), tally: Tally { items: 0, .. }, ..
    } = report
    {
        // The replay failed before its first item, so there is nothing to report.
        return Err(error);
    }
    let json = args.json.then(|| json!(report).to_string());
    answer(json, |mut out| report::print(&report, &mut out))?;
    tell_fit(args, &config)?;
    match report.ending {
        ReplayEnding::Whole => {}
        ReplayEnding::Stopped => say("urlseen: stopped: the report covers the items so far"),
        ReplayEnding::Failed(error) => {
            let words = "the replay ended early; the report covers the items before that";
            return Err(error).context(words);
        }
        ReplayEnding::OutOfMemory => bail!(
            "the replay ended early, because the machine has little free memory left. The report \
             covers the items before that. Replay fewer items (--count) or fewer kinds (--kinds)"
        ),
    }
    Ok(if is_bad { Outcome::BadInput } else { Outcome::Done })
}

/// Loads the configuration, with the form of items from the command line.
fn configured(args: &ReplayArgs) -> anyhow::Result<Config> {
    let mut config = args.settings.load_crawl()?;
    if let Some(form) = args.item {
        config.source.item = form;
    }
    refuse_if!(
        !args.files.is_empty() && config.source.item == ItemForm::Pickle,
        "a pickle can contain line feeds, so it cannot be a line of a file: replay pickles from \
         Redis (--key), or give requests as json with --item json"
    );
    Ok(config)
}

/// Returns the filters to compare, each once and in the order of the command line.
fn specs(args: &ReplayArgs, config: &Config) -> anyhow::Result<Vec<LaneSpec>> {
    let mut kinds = args.kinds.clone();
    if kinds.is_empty() {
        kinds.push(config.filter.kind);
    }
    let mut specs = Vec::new();
    for (number, &kind) in kinds.iter().enumerate() {
        if kinds[..number].contains(&kind) {
            continue;
        }
        let mut config = config.clone();
        config.filter.kind = kind;
        let Filter { place, recent, .. } = config.filter;
        specs.push(LaneSpec::new(&config.filter_spec()?, place, recent)?);
    }
    Ok(specs)
}

fn input(args: &ReplayArgs, config: &Config) -> Input {
    if !args.files.is_empty() {
        return Input::Files(args.files.clone(), args.records.records());
    }
    let has_keys = !args.key.is_empty();
    Input::Keys(if has_keys { args.key.clone() } else { vec![config.source.key.clone()] })
}

/// Returns the file with the given name. If there is no such file, returns the key.
fn seen(name: &str, config: &Config) -> Origin {
    let path = PathBuf::from(name);
    if name == "-" || path.exists() {
        return Origin::Files { files: vec![path], format: ImportFormat::Auto };
    }
    Origin::Set { address: Box::new(config.redis.url.clone()), key: name.to_owned() }
}

/// Says which algorithm and canonical form fit, for each set in Redis that counts as seen.
fn tell_fit(args: &ReplayArgs, config: &Config) -> anyhow::Result<()> {
    for name in &args.seen {
        let Origin::Set { key, .. } = seen(name, config) else { continue };
        if args.files.iter().any(|file| file.as_os_str() == "-") {
            return Ok(());
        }
        let requests = migrate::sampled(input(args, config), config)?;
        let sample = runtime()?.block_on(async {
            let mut link = connect(config).await?;
            SampleFit::of(&mut link, &key, &requests, &config.fingerprint_spec()).await
        })?;
        if sample.best().is_some() {
            let remedy = sample.remedy().map_or_else(String::new, |it| format!(", {it}"));
            say(format_args!("urlseen: {}{remedy}", sample.words()));
        }
    }
    Ok(())
}

/// Returns a flag that becomes true at SIGTERM or SIGINT. A second signal ends the process.
fn listen() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    let runtime = runtime()?;
    let asked = Arc::clone(&stop);
    let mut signals = runtime.block_on(async { shutdown::listen() })?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            // Waits for the first signal, and afterwards until the process ends.
            let _ = signals.wait_for(|stop| *stop).await;
            asked.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        });
    })?;
    Ok(stop)
}

/// Shows the progress of a replay.
fn draw(bar: &Bar, &Progress { count, read, expected }: &Progress) {
    // The length of a pipe is unknown.
    if expected > 0 { bar.show(read, expected) } else { bar.tell(format!("{} items", count.read)) }
}
