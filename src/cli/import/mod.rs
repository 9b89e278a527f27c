//! `urlseen import`: fingerprints of a crawl that used something else.

mod redisbloom;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use crate::admin::printable::{json_text, say, stdout};
use crate::pipeline::RunError;
use anyhow::Context;
use indicatif::HumanCount;
use serde_json::{Value, json};
use urlseen_core::filter::{Fill, FilterSpec, Parameters};
use urlseen_core::fingerprint::Algorithm;
use urlseen_core::storage::Folder;
use urlseen_engine::config::{Config, FilterPlace};
use urlseen_engine::engine::query;
use urlseen_engine::engine::store::Local;
use urlseen_engine::flow::driver::{Count, Flow, Progress};
use urlseen_engine::flow::feed::Bad;
use urlseen_engine::flow::import::{Format, Origin};
use urlseen_engine::item::{Form, Options};

use super::bar::Bar;
use super::context::runtime;
use super::settings::Settings;
use super::shape::{self, Shape};
use super::start::UsageError;
use super::teller::Teller;
use super::{Outcome, moving, start};

/// Take over the fingerprints of a crawl that used something else: they count as seen from then on.
///
/// Reads a Scrapy `requests.seen` (of a JOBDIR; as Scrapy 2.19 writes it, or lines of hex digits as
/// older versions do), any lines of 32, 40 or 64 hex digits, or, with --redis-set, the set in which
/// scrapy-redis keeps them, on the server that the configuration names. They go to the filter in
/// the storage folder, which no daemon may be using meanwhile.
///
/// With --redisbloom-file or --redisbloom it is a filter of RedisBloom as a whole, which a new
/// storage folder then holds: filter.kind must be "redisbloom".
///
/// With --from-redis it is the native filter at filter.key in Redis, for filter.place = "local" to
/// go on with.
///
/// With --algorithm you say how the fingerprints were computed. Another algorithm than the crawl's
/// is refused, as no URL would be recognised.
///
/// What is broken off goes on where it was when the same command is given again. Importing twice
/// does no harm. What is no fingerprint is named and counted, and makes the exit status 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen import jobs/demo/requests.seen      # from a JOBDIR of Scrapy
  urlseen import --redis-set demo:dupefilter  # from scrapy-redis")]
pub(super) struct ImportArgs {
    #[command(flatten)]
    settings: Settings,
    /// The storage folder; without this option the one that the configuration names
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set"])]
    storage: Option<PathBuf>,
    #[command(flatten)]
    shape: Shape,
    /// Format of the files: auto (as their first bytes tell), hex or requests-seen
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = parse_format())]
    format: Format,
    /// Import this set of the configured redis.url instead of files: scrapy-redis names it
    /// SPIDER:dupefilter
    #[arg(long, value_name = "KEY", conflicts_with_all = ["files", "storage", "format"])]
    redis_set: Option<String>,
    /// Import the filter of RedisBloom that this file holds, as a dump: into a new storage folder
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "files", "format", "redis_set", "kind", "capacity", "error_rate", "seed",
        ]
    )]
    redisbloom_file: Option<PathBuf>,
    /// Import the filter of RedisBloom that this key of the configured redis.url holds: into a new
    /// storage folder
    #[arg(
        long,
        value_name = "KEY",
        conflicts_with_all = ["files", "storage", "format", "redis_set", "redisbloom_file"]
    )]
    redisbloom: Option<String>,
    /// Copy the native filter at the configured filter.key in Redis to a new storage folder
    #[arg(
        long,
        conflicts_with_all = [
            "files", "storage", "format", "redis_set", "redisbloom_file", "redisbloom",
        ]
    )]
    from_redis: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
    /// Files to read fingerprints from, plain, .gz or .zst; `-` is standard input, the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Makes the options of a filter require `--storage`: without it the configuration decides.
pub(super) fn grammar(mut command: clap::Command) -> clap::Command {
    for id in shape::IDS.into_iter().filter(|&id| id != "algorithm") {
        command = command.mut_arg(id, |argument| argument.requires("storage"));
    }
    command
}

fn parse_format() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let of = |name: String| Format::ALL.into_iter().find(|format| format.name() == name);
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(move |name| of(name).ok_or("no such format"))
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    if args.from_redis {
        let config = args.settings.load()?;
        check_algorithm(args, &config)?;
        return moving::from_redis(&config, args.json);
    }
    if args.redisbloom_file.is_some() || args.redisbloom.is_some() {
        return redisbloom::run(args);
    }
    let (mut store, parameters, origin) = prepare(args)?;
    let how = store.recover()?;
    for warning in how.warnings() {
        say(format_args!("urlseen: {warning}"));
    }
    let (started, checkpoints) = (Instant::now(), store.checkpoints());
    let mut works = store.work(query::open(0).1).map_err(RunError::Thread)?;
    let mut teller = Teller::new(Bar::of("{percent} %, {msg}", ""), draw);
    let flow = Flow {
        works: &mut works,
        pages: origin.open(checkpoints)?.spawn()?,
        effect: &mut (),
        fill: shape::fill_watch(&parameters),
        remedy: "It cannot be made larger: raise its capacity and import again, into an empty \
                 storage folder",
        audience: &mut teller,
    };
    let result = runtime()?.block_on(flow.run());
    let read = teller.read;
    let result = result.map_err(anyhow::Error::from);
    let result = result.and_then(|(count, ended)| Ok(ended.map(|()| count)?));
    let count = match result {
        // Nothing was begun.
        Err(error) if read == 0 => return Err(error),
        result => result.with_context(|| {
            let read = HumanCount(read);
            format!("stopped after {read} fingerprints; give the same command again to continue")
        })?,
    };
    let named = teller.end(count.bad, "are no fingerprints");
    let gauges = works.engine.gauges();
    let (fill, error_rate) = (gauges.fill().counted(), gauges.error_rate());
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary { count, seconds, fill, error_rate, named };
    summary.print(args.json)?;
    Ok(if count.bad > 0 { Outcome::BadInput } else { Outcome::Done })
}

/// The filter, not brought back yet, and what goes into it.
fn prepare(args: &ImportArgs) -> anyhow::Result<(Local, Parameters, Origin)> {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let files = || Origin::Files { files: args.files.clone(), format: args.format };
    let (folder, keeping, threads, origin) = if let Some(storage) = &args.storage {
        let folder = Folder::open(storage)?;
        let keeping = shape::keeping(args.shape.spec(Some(&folder))?);
        (folder, keeping, cores.get().min(64), files())
    } else {
        let config = args.settings.load()?;
        if config.filter.place == FilterPlace::Redis {
            return Err(UsageError(
                "filter.place is \"redis\", and fingerprints are imported into a storage folder. \
                 With filter.kind = \"native\", import with --set filter.place=local, and then \
                 urlseen export --to-redis; else push them to the source, and empty the sink"
                    .to_owned(),
            )
            .into());
        }
        check_algorithm(args, &config)?;
        let folder = Folder::open(&config.storage.dir)?;
        if let Some(warning) = start::archive_warning(&config, &folder)? {
            say(format_args!("urlseen: {warning}"));
        }
        let keeping = start::keeping(&config)?;
        let threads = config.filter.owners(cores).get();
        let origin = match &args.redis_set {
            Some(key) => Origin::Set { address: config.redis.url, key: key.clone() },
            None => files(),
        };
        (folder, keeping, threads, origin)
    };
    let FilterSpec { parameters, algorithm, keep_fragments } = keeping.spec.filter.clone();
    let items = Options::new(Form::Digest, algorithm, keep_fragments);
    let store = start::kept(folder, keeping, items, threads)?;
    Ok((store, parameters, origin))
}

/// Refuses fingerprints that were computed otherwise than those of the crawl's URLs will be. A set
/// of scrapy-redis tells that by itself; files do not.
fn check_algorithm(args: &ImportArgs, config: &Config) -> Result<(), UsageError> {
    let (stated, _) = args.shape.fingerprints();
    let ours = config.fingerprint.algorithm;
    match (stated, &args.redis_set) {
        (Some(stated), _) if stated != ours => Err(UsageError(format!(
            "--algorithm says that the fingerprints are those of {stated}, and \
             fingerprint.algorithm is \"{ours}\": no URL would be recognised. Set \
             fingerprint.algorithm = \"{stated}\" first"
        ))),
        (None, Some(key)) if ours == Algorithm::Scrapy => Err(UsageError(format!(
            "the members of {key} are those of scrapy-redis, and fingerprint.algorithm is \
             \"{ours}\": no URL would be recognised. Set fingerprint.algorithm = \"scrapy-redis\" \
             first. If another dupefilter has filled the set, say so: --algorithm {ours}"
        ))),
        _ => Ok(()),
    }
}

/// Draws how far the import is.
fn draw(bar: &Bar, &Progress { count, read, expected }: &Progress) {
    let words = format!("{} read, {} new", HumanCount(count.read), HumanCount(count.new));
    if expected > 0 { bar.show_with(words, read, expected) } else { bar.tell(words) }
}

/// Result of an import, and state of the filter after it.
struct Summary {
    count: Count,
    seconds: f64,
    fill: Fill,
    error_rate: f64,
    named: Vec<Bad>,
}

impl Summary {
    fn print(&self, as_json: bool) -> anyhow::Result<()> {
        let Self { count, seconds, fill, error_rate, named } = self;
        let (share, Fill { keys, .. }) = (fill.share(), fill);
        let mut out = stdout();
        if as_json {
            let mut value = serde_json::to_value(count)?;
            value["bad_first"] = named.iter().map(to_json).collect();
            value["seconds"] = json!(seconds);
            value["keys"] = json!(keys);
            value["fill"] = json!(share);
            value["error_rate"] = json!(error_rate);
            writeln!(out, "{}", json_text(&value.to_string()))?;
            return Ok(());
        }
        let rate = count.read as f64 / seconds.max(1e-9);
        let Count { read, new, seen, bad } = count;
        writeln!(out, "read       {read:>12}   {seconds:.2} s, {rate:.0} a second")?;
        writeln!(out, "new        {new:>12}   count as seen from now on")?;
        writeln!(out, "seen       {seen:>12}   were in the filter, or came twice")?;
        writeln!(out, "bad        {bad:>12}   no fingerprints")?;
        writeln!(
            out,
            "filter     {keys:>12}   fingerprints, {:.1} % full, error rate now {error_rate:.1e}",
            100.0 * share
        )?;
        Ok(())
    }
}

fn to_json(bad: &Bad) -> Value {
    let Bad { source, offset, line, reason } = bad;
    json!({ "source": source, "offset": offset, "line": line, "reason": reason })
}
