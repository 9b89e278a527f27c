//! `urlseen replay`: what urlseen would do with a crawl's links, without doing it.

mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::admin::printable::say;
use crate::pipeline::shutdown;
use anyhow::Context;
use urlseen_analysis::{Ending, Input, LaneSpec, Plot, Report, Seen, Setup, replay};
use urlseen_core::filter::Capacity;
use urlseen_engine::config::{Config, ItemForm, Kind, choose};
use urlseen_engine::flow::driver::Progress;

use super::bar::Bar;
use super::context::runtime;
use super::settings::Settings;
use super::start::UsageError;
use super::teller::Teller;
use super::{Outcome, start};

/// Tell what urlseen would do with a crawl's links, and how often it would be wrong, without doing
/// anything.
///
/// Reads files of items, one a line, in the order in which they were discovered; or, without
/// files, the configured source in Redis or the keys that --key names. Nothing is taken and nothing
/// is written: no lease, no key, no folder; a user who may only read will do. What would pass, be
/// dropped and be rejected is held against an exact set that is kept for the run, so that each
/// wrong drop is known. It can be done beside a running crawl, and for several kinds at once.
///
/// The exit status is 1 where items would be rejected. SIGINT ends it with the report of what was
/// read so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen replay links.txt.gz --kinds native,scrapy-redis
  urlseen replay --key demo:discovered --seen demo:dupefilter")]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    settings: Settings,
    /// Read this key of the configured redis.url instead of source.key; may be repeated. A list, a
    /// sorted set (scrapy-redis: SPIDER:requests), a set (SPIDER:dupefilter) or a stream
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    key: Vec<String>,
    /// The field of a stream's entries that holds the item
    #[arg(long, value_name = "NAME", default_value = "item", conflicts_with = "files")]
    field: String,
    /// Fingerprints that count as seen from the start: a file (lines of hex digits, or a Scrapy
    /// requests.seen), or, if there is no such file, a set of the configured redis.url
    /// (scrapy-redis: SPIDER:dupefilter); may be repeated
    #[arg(long, value_name = "FILE|KEY")]
    seen: Vec<String>,
    /// Replay so many items at most, as 1000000, 1e6 or 1M
    #[arg(long, value_name = "N")]
    count: Option<Capacity>,
    /// The kinds that judge, with the configured settings: words of filter.kind, with commas
    /// between them; the configured one otherwise
    #[arg(long, value_name = "LAYOUTS", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<Kind>,
    /// Form of the items, in place of source.item
    #[arg(long, value_name = "FORM")]
    item: Option<ItemForm>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Draw the error rates over the items, as an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Files that items are read from, plain, .gz or .zst; `-` is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A kind by its name in the configuration, or the short one of the longest.
fn kind(word: &str) -> Result<Kind, String> {
    let named = Kind::all().find(|kind| kind.short() == word);
    named.map_or_else(|| choose(word).map_err(|error| error.to_string()), Ok)
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<Outcome> {
    let config = configured(args)?;
    if let Some(path) = &args.plot {
        Plot::check(path)?;
    }
    let setup = Setup {
        items: start::items(&config),
        seed: start::seed(config.filter.seed)?,
        specs: specs(args, &config)?,
        threads: start::threads(&config),
        seen: args.seen.iter().map(seen).collect(),
        input: input(args, &config),
        most: args.count.map(Capacity::get),
        config: &config,
    };
    let is_bytes = matches!(setup.input, Input::Files(_));
    let bar = if is_bytes { Bar::new("read") } else { Bar::counting("items") };
    let mut teller = Teller::new(bar, draw);
    let stop = listen()?;
    let report = replay(setup, &stop, &mut teller)?;
    let tally = &report.tally;
    teller.end(tally.given_bad, "count as seen and are no fingerprints");
    let is_bad = tally.rejected + tally.given_bad + tally.without > 0;
    let is_nothing = tally.items == 0;
    let report = match report {
        // There is nothing to report.
        Report { ending: Ending::Failed(error), .. } if is_nothing => return Err(error.into()),
        report => report,
    };
    report::print(args.json, &report, &config)?;
    if let Some(path) = &args.plot {
        report::plot(&report, &config).write(path)?;
    }
    match report.ending {
        Ending::Whole => {}
        Ending::Stopped => say("urlseen: stopped: the report is of what was read so far"),
        ending => return failed(ending),
    }
    Ok(if is_bad { Outcome::BadInput } else { Outcome::Done })
}

/// Returns the error of a replay that ended early.
fn failed(ending: Ending) -> anyhow::Result<Outcome> {
    match ending {
        Ending::Failed(error) => {
            Err(error).context("the replay ended early; what it reports is of what was read before")
        }
        _ => anyhow::bail!(
            "the replay ended early, as the memory of the machine is nearly used up: the report is \
             of what was read before; replay fewer items (--count) or kinds (--kinds)"
        ),
    }
}

/// The configuration, with the form of items that was asked for.
fn configured(args: &ReplayArgs) -> anyhow::Result<Config> {
    let mut config = args.settings.load()?;
    if let Some(form) = args.item {
        config.source.item = form;
    }
    if !args.files.is_empty() && config.source.item == ItemForm::Pickle {
        let words = "a pickle may hold line feeds, so it is no line: replay those that are in \
                     Redis (--key), or give requests as json with --item json";
        return Err(UsageError(words.to_owned()).into());
    }
    Ok(config)
}

/// The filters that judge: each once, in the order in which they were named.
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
        specs.push(LaneSpec::new(&config.filter_spec()?)?);
    }
    Ok(specs)
}

fn input(args: &ReplayArgs, config: &Config) -> Input {
    match (args.files.is_empty(), args.key.is_empty()) {
        (false, _) => Input::Files(args.files.clone()),
        (true, true) => {
            Input::Keys { keys: vec![config.source.key.clone()], field: args.field.clone() }
        }
        (true, false) => Input::Keys { keys: args.key.clone(), field: args.field.clone() },
    }
}

/// A file where there is one of that name; else a key.
fn seen(name: &String) -> Seen {
    let path = PathBuf::from(name);
    if name == "-" || path.exists() { Seen::File(path) } else { Seen::Set(name.clone()) }
}

/// Is set once SIGTERM or SIGINT comes; the second one ends the process.
fn listen() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    let runtime = runtime()?;
    let asked = Arc::clone(&stop);
    let mut signals = runtime.block_on(async { shutdown::listen() })?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            // Ends only with the process.
            let _ = signals.wait_for(|stop| *stop).await;
            asked.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        });
    })?;
    Ok(stop)
}

/// Draws how far the replay is.
fn draw(bar: &Bar, &Progress { count, read, expected }: &Progress) {
    // The length of a pipe is unknown.
    if expected > 0 { bar.show(read, expected) } else { bar.tell(format!("{} items", count.read)) }
}
