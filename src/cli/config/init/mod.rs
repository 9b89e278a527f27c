//! `urlseen config init`: writes a configuration for the crawl that a Redis has.

mod draft;

use std::ffi::OsStr;

use self::draft::{Draft, text};
use crate::analysis::{Found, FoundKey, KeyUse, PossibleFilter, shell};
use crate::cli::prelude::*;

/// Width of the names in the table, in columns.
const WIDTHS: [usize; 2] = [12, 0];
/// Maximum number of crawls in the table.
const SHOWN: usize = 20;

/// Write a configuration file for the crawl that a Redis has.
///
/// The command looks at the keys in Redis, and changes nothing there. It finds crawls of
/// scrapy-redis, of scrapy-redis-bloomfilter and with a filter of RedisBloom or Redisson. It prints
/// what it found and what it passed over, the reasons for each value, the commands that move the
/// crawl to urlseen, and the settings of the Scrapy project. It also prints strings that may be
/// filters of further kinds. If Redis has several crawls, name one with `--crawl`. If it has none,
/// the file is for a new crawl.
///
/// Set the password of Redis in `URLSEEN_REDIS_PASSWORD`. The file does not contain it.
///
/// Examples:
/// ```text
/// urlseen config init --trial
/// urlseen config init --redis redis://redis.example --crawl news --output news.toml
/// ```
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConfigInitArgs {
    /// The Redis to look at. Default: the one in `URLSEEN_REDIS__URL`, or the one of this machine
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// The crawl to write the file for. Default: the only crawl that Redis has
    #[arg(long, value_name = "NAME")]
    crawl: Option<String>,
    /// Write the file for a trial: the crawl keeps its own filter and queue in Redis, so that you
    /// can undo the trial at any time
    #[arg(long)]
    trial: bool,
    /// The file to write. It must not exist
    #[arg(long, value_name = "FILE", default_value = "config.toml")]
    output: PathBuf,
}

pub(super) fn run(args: &ConfigInitArgs) -> anyhow::Result<Outcome> {
    refuse_if!(
        args.output.symlink_metadata().is_ok(),
        "{} exists already: name another file with --output",
        args.output.display()
    );
    let set = [("redis.url", &args.redis), ("crawl.name", &args.crawl)];
    let set = set.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
    let (file, set) = (Some(NO_FILE.into()), set.collect());
    let config = Config::load(Sources { file, env: std::env::vars_os().collect(), set })?;
    refuse_if!(
        config.redis.url.is_cluster(),
        "the address is that of a Redis Cluster, and this command looks at a single server: write \
         the configuration by hand"
    );
    let (mut link, found) = runtime()?.block_on(async {
        let link = connect(&config).await.map_err(anyhow::Error::from);
        let mut link = match link {
            Err(error) if is_default(&config) => {
                Err(error.context("cannot look at the default Redis; --redis URL names another"))
            }
            link => link,
        }?;
        let found = Found::look(&mut link, args.crawl.as_deref()).await?;
        anyhow::Ok((link, found))
    })?;
    print_found(&config, &found)?;
    let name = chosen(&config, &found)?;
    let url = (!is_default(&config)).then(|| config.redis.url.without_password().to_string());
    let keys = found.crawls.get(&name).map_or(&[][..], Vec::as_slice);
    let sample = sampled(&mut link, keys, &config)?;
    let draft = Draft::new(&name, keys, url.as_deref(), args.trial, sample.as_ref())?;
    let written = File::create_new(&args.output);
    let written = written.and_then(|mut file| file.write_all(draft.file.as_bytes()));
    written.with_context(|| format!("{} cannot be written", args.output.display()))?;
    print_draft(&draft, args, &config)?;
    Ok(Outcome::Done)
}

/// Looks up the requests of a crawl's queue in its set of scrapy-redis. Returns `None` if the set
/// has none of them.
fn sampled(
    link: &mut Link,
    keys: &[FoundKey],
    config: &Config,
) -> anyhow::Result<Option<SampleFit>> {
    let find = |uses: &[KeyUse]| keys.iter().find(|key| uses.contains(&key.used_as));
    let queue = find(&[KeyUse::SortedQueue, KeyUse::ListQueue]);
    let Some((set, queue)) = find(&[KeyUse::Set]).zip(queue) else { return Ok(None) };
    let requests = migrate::sampled(Input::Keys(vec![queue.key.clone()]), config)?;
    let usual = Algorithm::ScrapyRedis.into();
    let sample = runtime()?.block_on(SampleFit::of(link, &set.key, &requests, &usual))?;
    Ok(Some(sample).filter(|it| it.best().is_some()))
}

/// Returns the name of the crawl to write the file for.
fn chosen(config: &Config, found: &Found) -> anyhow::Result<String> {
    let all = || found.crawls.keys().collect();
    let names = Some(found.usable()).filter(|names| !names.is_empty()).unwrap_or_else(all);
    match names[..] {
        [name] => Ok(name.clone()),
        [_, _, ..] => Err(usage("Redis has several crawls: name one with --crawl")),
        [] => Ok(config.crawl.name.clone()),
    }
}

/// Returns true if the command looks at the default address.
fn is_default(config: &Config) -> bool {
    config.redis.url == RedisAddress::local()
}

fn print_found(config: &Config, found: &Found) -> io::Result<()> {
    let Found { keys, is_complete, crawls, possible, .. } = found;
    let mut rows = Rows::new(stdout(), WIDTHS);
    let more =
        if *is_complete { "" } else { ", and not at the others: --crawl finds a crawl by name" };
    let default = if is_default(config) { " (the default; --redis URL names another)" } else { "" };
    let text = format!("{} keys of {}{default}{more}", HumanCount(*keys), config.redis.url);
    rows.row("looked at", text)?;
    if crawls.is_empty() {
        rows.row("found", "no crawl, so the file is for a new one")?;
    }
    rows.each("found", crawls.values().take(SHOWN).flatten().map(described))?;
    if let Some(more @ 1..) = crawls.len().checked_sub(SHOWN) {
        rows.row("", format!("and {more} more crawls"))?;
    }
    rows.each("passed over", found.passed_over())?;
    rows.each("possible", possible.iter().map(described_possible))?;
    if !possible.is_empty() {
        rows.row("", "The file does not use them, because Redis does not show their parameters.")?;
    }
    Ok(())
}

/// Describes a string that may be a filter, and the settings for it.
fn described_possible(possible: &PossibleFilter) -> String {
    let PossibleFilter { key, string, bytes, kinds } = possible;
    let kinds: Vec<_> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    format!(
        "{string}: a string of {} bytes. If it belongs to a Bloom filter, set filter.place = \
         \"redis\", filter.key = {key:?}, filter.kind = {}, and the capacity and the error rate \
         that its program uses",
        HumanCount(*bytes),
        kinds.join(" or ")
    )
}

/// Describes a key that was found.
fn described(found: &FoundKey) -> String {
    let size = HumanCount(found.size);
    let what = match found.used_as {
        KeyUse::Set => format!("a set of scrapy-redis, members: {size}"),
        KeyUse::Bits => format!("a string of scrapy-redis-bloomfilter with {size} bytes"),
        KeyUse::RedisBloom => "a filter of RedisBloom".to_owned(),
        KeyUse::Recorded => format!("a filter of Redisson for {size} fingerprints"),
        KeyUse::SortedQueue => format!("a queue of scrapy-redis, a sorted set of {size} requests"),
        KeyUse::ListQueue => format!("a queue of scrapy-redis, a list of {size} requests"),
        KeyUse::Urlseen => "the state of a crawl that urlseen runs".to_owned(),
    };
    format!("{}: {what}", found.key)
}

fn print_draft(draft: &Draft<'_>, args: &ConfigInitArgs, config: &Config) -> io::Result<()> {
    let (&Draft { name, was_crawled, ref reasons, ref next, .. }, file) = (draft, &args.output);
    let mut rows = Rows::new(stdout(), WIDTHS);
    rows.each("reasons", reasons)?;
    rows.row("written", file.display())?;
    rows.gap()?;
    let first = if was_crawled { "Stop the spiders. Then give" } else { "Give" };
    let mut out = stdout();
    writeln!(out, "{first} these commands:")?;
    let option = if file.as_os_str() == OsStr::new("config.toml") {
        String::new()
    } else {
        format!(" --config {}", shell(&file.to_string_lossy()))
    };
    let next = ["urlseen config check"].into_iter().chain(next.iter().map(String::as_str));
    for command in next.chain(["urlseen run"]) {
        let is_ours = command.starts_with("urlseen ");
        let option = if is_ours { option.as_str() } else { "" };
        writeln!(out, "  {}", printable(format!("{command}{option}").as_bytes(), None))?;
    }
    let rest = if was_crawled { "SCHEDULER replaces that of scrapy-redis. " } else { "" };
    writeln!(
        out,
        "\nThe Scrapy project needs the package urlseen and these settings. {rest}Its spider is \
         {name}:"
    )?;
    writeln!(out, "ADDONS = {{\"urlseen.scrapy.Addon\": 500}}")?;
    if was_crawled {
        writeln!(out, "SCHEDULER = \"urlseen.scrapy.Scheduler\"")?;
    }
    writeln!(out, "URLSEEN_URL = {}", text(&config.redis.url.without_password().to_string()))
}
