//! `urlseen export`: writes the filter or the fingerprints of a crawl for other programs.

use urlseen_engine::flow::feed::{Feed, Page};
use urlseen_storage::Archive;

use crate::cli::migrate::ForeignKey;
use crate::cli::prelude::*;

/// Export the filter of a stopped crawl to Redis or RedisBloom, or its fingerprints to Scrapy or
/// scrapy-redis.
///
/// With --to-redis, the command copies a native filter to filter.key, with its seed, its id and the
/// last batch of the crawl. To continue an interrupted copy, repeat the command.
///
/// With --redisbloom or --redisbloom-file, the command writes a filter with filter.kind =
/// "redisbloom" to a server with the module RedisBloom, or to a dump file. The result is byte for
/// byte the filter that RedisBloom makes from the same fingerprints. The command does not change
/// the folder. Stop the daemon first.
///
/// With --archive or --archive-to-set, the command exports all emitted and imported fingerprints,
/// except for forgotten ones. This works only if storage.archive was true during the crawl. By
/// default, the export ends with the last batch that Redis records. With --storage, the command
/// does not ask Redis, and exports all batches in the storage folder. The command omits
/// fingerprints that are text, because Scrapy has no such fingerprints. If it omits some, the exit
/// status is 1. The export needs memory for all fingerprints that were ever forgotten.
///
/// Examples:
/// ```text
/// urlseen export --archive --format requests-seen  # for a JOBDIR of Scrapy
/// urlseen export --archive-to-set demo:dupefilter  # for scrapy-redis
/// ```
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("to").required(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    folder: FolderOptions,
    /// Write the RedisBloom filter to this new file, as a dump
    #[arg(long, value_name = "FILE", group = "to")]
    redisbloom_file: Option<PathBuf>,
    /// Load the RedisBloom filter into a new key with this name at the configured redis.url
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    redisbloom: Option<String>,
    /// Copy the native filter of the configured storage folder to the configured filter.key in
    /// Redis. Then continue the crawl with filter.place = "redis"
    #[arg(long, group = "to", conflicts_with = "storage")]
    to_redis: bool,
    /// Print the fingerprints in this set at the configured redis.url. The set of scrapy-redis is
    /// SPIDER:dupefilter
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    redis_set: Option<String>,
    /// Print the fingerprints in the archive of the storage folder
    #[arg(long, group = "to")]
    archive: bool,
    /// Add the fingerprints in the archive to this set at the configured redis.url, in the form of
    /// scrapy-redis
    #[arg(long, value_name = "KEY", group = "to", conflicts_with = "storage")]
    archive_to_set: Option<String>,
    /// Export the archive even if it lacks fingerprints of the filter. By default, the command
    /// refuses an incomplete archive
    #[arg(long, conflicts_with_all = ["redisbloom_file", "redisbloom", "to_redis", "redis_set"])]
    partial: bool,
    /// Form of the printed fingerprints: lines of hex digits, or the file format of requests.seen
    /// in Scrapy 2.19
    #[arg(long, value_name = "FORMAT", default_value = "hex")]
    #[arg(value_parser = word(|it: &ImportFormat| *it != ImportFormat::Auto))]
    #[arg(
        conflicts_with_all = ["redisbloom_file", "redisbloom", "to_redis", "archive_to_set"]
    )]
    format: ImportFormat,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    if let Some(key) = &args.redis_set {
        return set(args, key);
    }
    if args.archive || args.archive_to_set.is_some() {
        return export_archive(args);
    }
    if args.to_redis {
        return moving::to_redis(&args.folder.settings.load()?, args.json);
    }
    let config = args.folder.locate()?;
    let Some(dir) = folder_of(&config) else {
        let words = "filter.place is \"redis\": there is no filter in a storage folder to export";
        return Err(usage(words));
    };
    let folder = AtRest::open(dir)?;
    let kind = start::spec_of(folder.header(), dir)?.filter.kind();
    refuse_if!(
        kind != Kind::REDISBLOOM,
        "the filter in {} has the kind {kind}, and RedisBloom cannot read that kind: export a \
         filter of the kind redisbloom",
        dir.display()
    );
    let filter = migrate::of_folder(&folder)?;
    let bar = Bar::new("written");
    let to = match (&args.redisbloom_file, &args.redisbloom) {
        (Some(path), _) => {
            migrate::write(path, &filter, &bar)?;
            path.display().to_string()
        }
        (None, key) => {
            let key = key.as_deref().unwrap_or_default();
            let place = ForeignKey { address: &config.redis.url, key };
            runtime()?.block_on(place.load(&filter, &bar))?;
            format!("{key} at {}", config.redis.url)
        }
    };
    drop(bar);
    let (keys, layers, bytes) = (filter.size(), filter.layers(), filter.bytes());
    let json = json!({ "keys": keys, "layers": layers, "bytes": bytes });
    answer(args.json.then(|| json.to_string()), |mut out| {
        let (keys, bytes) = (HumanCount(keys), BinaryBytes(bytes));
        writeln!(out, "{to} holds the filter: {keys} fingerprints in {layers} layers, {bytes}")
    })
}

/// Prints the fingerprints in a set.
fn set(args: &ExportArgs, key: &str) -> anyhow::Result<Outcome> {
    let config = args.folder.settings.load()?;
    let mut output = BufWriter::new(io::stdout().lock());
    let bar = Bar::counting("fingerprints written");
    let set = Origin::Set { address: Box::new(config.redis.url), key: key.to_owned() };
    let (Feed { expected, pages }, mut fingerprints, mut bad) = (set.open(Vec::new())?, 0, 0);
    for page in pages {
        let Page { items, bad_count, read, .. } = page?;
        for digest in items.iter() {
            let digest = Fingerprint::from_raw(digest).expect("the feed has digests");
            write_fingerprint(&mut output, args.format, &digest)?;
        }
        (fingerprints, bad) = (fingerprints + items.len() as u64, bad + bad_count);
        bar.show(read, expected);
    }
    output.flush()?;
    drop(bar);
    let json = json!({ "fingerprints": fingerprints, "bad": bad });
    let [fingerprints, others] = [fingerprints, bad].map(HumanCount);
    let words =
        format!("{fingerprints} fingerprints of {key}; {others} members are not fingerprints");
    summarize(args, &json, &words, bad)
}

/// Prints the summary of an export that left out some entries.
fn summarize(
    args: &ExportArgs,
    json: &Value,
    words: &str,
    left_out: u64,
) -> anyhow::Result<Outcome> {
    let line = if args.json { json.to_string() } else { format!("urlseen: {words}") };
    if args.archive_to_set.is_some() {
        writeln!(stdout(), "{line}")?;
    } else {
        // Standard output has the fingerprints.
        say(line);
    }
    Ok(if left_out > 0 { Outcome::BadInput } else { Outcome::Done })
}

/// Number of fingerprints between two updates of the bar.
const TELL: u64 = 100_000;

fn export_archive(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let config = args.folder.locate()?;
    let Some(dir) = folder_of(&config) else {
        let words = "filter.place is \"redis\": there is no archive. With filter.kind = \
                     \"scrapy-redis\", scrapy-redis can use the set in Redis without an export";
        return Err(usage(words));
    };
    // The lock of the folder keeps daemons away, so the crawl cannot change after this line.
    let folder = AtRest::open(dir)?;
    let algorithm = start::spec_of(folder.header(), dir)?.filter.fingerprint.algorithm;
    let target = if args.folder.storage.is_some() || config.source.kind == SourceKind::None {
        Target::Last
    } else {
        runtime()?.block_on(target(&config))?
    };
    let archive = folder.archive(target)?;
    check(&archive, args.partial, dir)?;
    let count = match &args.archive_to_set {
        Some(key) => add(archive, &ForeignKey { address: &config.redis.url, key })?,
        None => print(archive, args.format)?,
    };
    let ArchiveCount { fingerprints, new, text } = count;
    let name = algorithm.name();
    let json = json!({ "fingerprints": fingerprints, "new": new, "text": text, "algorithm": name });
    let [all, left_out] = [fingerprints, text].map(HumanCount);
    let to = match (&args.archive_to_set, new) {
        (Some(key), Some(new)) => {
            let (new, address) = (HumanCount(new), &config.redis.url);
            format!("are now in {key} at {address}, and {new} of them are new there")
        }
        _ => format!("come from {}", dir.display()),
    };
    let words = format!(
        "{all} fingerprints, computed by {algorithm}, {to}; {left_out} keys are text and left out"
    );
    summarize(args, &json, &words, text)
}

/// Reads the last committed batch of the crawl from Redis.
async fn target(config: &Config) -> anyhow::Result<Target> {
    let ask = async {
        let mut link = connect(config).await?;
        let (head, _) = config.protocol().look(&mut link).await?;
        anyhow::Ok(head)
    };
    let head = ask.await.context(
        "the export needs the last committed batch of the crawl from Redis. Without Redis, name \
         the folder with --storage: then the export includes every batch in the log",
    )?;
    if head.is_none() {
        say("urlseen: Redis has no state of the crawl: the export includes every batch in the log");
    }
    Ok(head.map_or(Target::Last, Target::At))
}

/// Fails if the archive lacks fingerprints of the filter and `--partial` is not given.
fn check(archive: &Archive<'_>, is_partial: bool, dir: &Path) -> anyhow::Result<()> {
    for damage in &archive.damaged {
        say(format_args!("urlseen: skipped a damaged part: {damage}"));
    }
    let Some(from) = archive.lacks_before else { return Ok(()) };
    let lack = format!(
        "the archive in {} lacks fingerprints of the filter: it is complete only after {from}",
        dir.display()
    );
    if is_partial {
        say(format_args!("urlseen: {lack}"));
        return Ok(());
    }
    Err(usage(format!(
        "{lack}. A crawl with the exported fingerprints would fetch the missing URLs again. To \
         export the archive as it is, use --partial"
    )))
}

/// Counts of the exported keys.
#[derive(Debug, Default)]
struct ArchiveCount {
    fingerprints: u64,
    /// Number of exported fingerprints that are new in the set; `None` for an export without a set.
    new: Option<u64>,
    /// Number of keys that are text. The export omits them.
    text: u64,
}

/// Passes each fingerprint to `take`. Returns the numbers of exported and omitted keys.
fn each(
    archive: Archive<'_>,
    mut take: impl FnMut(&Fingerprint) -> anyhow::Result<()>,
) -> anyhow::Result<ArchiveCount> {
    let mut count = ArchiveCount::default();
    let bar = Bar::counting("fingerprints");
    archive.each(|fingerprint| {
        if let Fingerprint::Text(_) = fingerprint {
            count.text += 1;
            return Ok(());
        }
        take(fingerprint)?;
        count.fingerprints += 1;
        if count.fingerprints.is_multiple_of(TELL) {
            bar.tell(format!("{} fingerprints", HumanCount(count.fingerprints)));
        }
        anyhow::Ok(())
    })?;
    Ok(count)
}

fn print(archive: Archive<'_>, format: ImportFormat) -> anyhow::Result<ArchiveCount> {
    let mut output = BufWriter::new(io::stdout().lock());
    let count =
        each(archive, |fingerprint| Ok(write_fingerprint(&mut output, format, fingerprint)?))?;
    output.flush()?;
    Ok(count)
}

fn add(archive: Archive<'_>, set: &ForeignKey<'_>) -> anyhow::Result<ArchiveCount> {
    let (runtime, key) = (runtime()?, set.key);
    let mut link = runtime.block_on(set.open(&["set", "none"], "a set"))?;
    let (mut page, mut new) = (Vec::new(), 0);
    let mut flush = |page: &mut Vec<String>| {
        if !page.is_empty() {
            let added = runtime.block_on(link.query::<u64>(cmd("SADD").arg(key).arg(&*page)));
            new += added.with_context(|| {
                format!("{key} has only some of the fingerprints: repeat the command")
            })?;
            page.clear();
        }
        anyhow::Ok(())
    };
    let count = each(archive, |fingerprint| {
        page.push(fingerprint.to_string());
        if page.len() as u64 == COUNT { flush(&mut page) } else { Ok(()) }
    })?;
    flush(&mut page)?;
    Ok(ArchiveCount { new: Some(new), ..count })
}

/// Number of members that one command adds. During the command, Redis serves no other
/// client.
const COUNT: u64 = 10_000;

/// Writes a fingerprint to `output` as a line of hex digits, or in the form of the file
/// `requests.seen` of Scrapy 2.19: the length of the digest in two bytes (big endian), and then the
/// digest.
///
/// # Errors
/// The output fails.
fn write_fingerprint(
    output: &mut dyn Write,
    format: ImportFormat,
    fingerprint: &Fingerprint,
) -> io::Result<()> {
    match format {
        ImportFormat::Auto | ImportFormat::Hex => writeln!(output, "{fingerprint}"),
        ImportFormat::RequestsSeen => {
            let bytes = fingerprint.as_bytes();
            let length = u16::try_from(bytes.len()).expect("a digest is short");
            output.write_all(&length.to_be_bytes())?;
            output.write_all(bytes)
        }
    }
}
