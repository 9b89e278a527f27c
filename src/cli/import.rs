//! `urlseen import`: adds the fingerprints of an earlier crawl to a filter.

use clap::Args as _;
use urlseen_filter::memory;

use crate::cli::prelude::*;
use crate::cli::settings::FilterOptions;

/// Import the fingerprints of an earlier crawl. After that, these fingerprints count as seen.
///
/// The command reads the `requests.seen` file of a Scrapy JOBDIR, files with lines of 32, 40 or 64
/// hex digits, or the set of scrapy-redis in Redis. It adds the fingerprints to the filter in the
/// storage folder. Stop the daemon first.
///
/// With --redisbloom-file or --redisbloom, the command imports a complete filter of RedisBloom into
/// a new storage folder. filter.kind must be "redisbloom".
///
/// With --from-redis, the command copies the native filter at filter.key in Redis to a new storage
/// folder. Then continue the crawl with filter.place = "local".
///
/// --algorithm and --canonical-form state how the imported fingerprints were computed. If one
/// differs from the configuration, the command refuses the import, because the crawl would then not
/// recognise imported URLs.
///
/// To continue an interrupted import, repeat the command. A second import of the same fingerprints
/// has no effect. The command prints and counts entries that are not fingerprints. If there are
/// any, the exit status is 1.
///
/// Examples:
/// ```text
/// urlseen import jobs/demo/requests.seen      # from a JOBDIR of Scrapy
/// urlseen import --redis-set demo:dupefilter --urls urls.txt  # from scrapy-redis
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    folder: FolderOptions,
    #[command(flatten)]
    shape: FilterOptions,
    /// Format of the files: hex, requests-seen or auto. With auto, the command detects the format
    /// from the first bytes
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    #[arg(value_parser = word(|_: &ImportFormat| true))]
    #[arg(conflicts_with_all = ["redis_set", "redisbloom_file", "redisbloom", "from_redis"])]
    format: ImportFormat,
    /// Import the set with this name at the configured redis.url, in place of files. The set of
    /// scrapy-redis is SPIDER:dupefilter
    #[arg(long, value_name = "KEY", group = "from")]
    redis_set: Option<String>,
    /// File with URLs of the crawl, one a line: checks first that the set has them. The command
    /// names the algorithm and the canonical form that fit, and refuses the import if the
    /// configuration has others. It reads at most 1000 URLs
    #[arg(long, value_name = "FILE", requires = "redis_set")]
    #[arg(conflicts_with_all = ["algorithm", "canonical_form"])]
    urls: Option<PathBuf>,
    #[command(flatten)]
    records: RecordOptions,
    /// Import the RedisBloom filter in this dump file into a new storage folder
    #[arg(long, value_name = "FILE", group = "from")]
    #[arg(conflicts_with_all = ["kind", "capacity", "grow_to", "error_rate", "seed"])]
    redisbloom_file: Option<PathBuf>,
    /// Import the RedisBloom filter with this key at the configured redis.url into a new storage
    /// folder
    #[arg(long, value_name = "KEY", group = "from")]
    redisbloom: Option<String>,
    /// Copy the native filter at the configured filter.key in Redis to a new storage folder
    #[arg(long, group = "from")]
    from_redis: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
    /// Files with fingerprints, plain or compressed (gzip, Zstandard, xz, bzip2). `-` is standard
    /// input. Default: standard input
    #[arg(value_name = "FILE", group = "from")]
    files: Vec<PathBuf>,
}

/// Requires `--storage` for the options that describe a filter, such as `--capacity`. Without
/// `--storage`, the configuration describes the filter, and the Redis to import from. `--algorithm`
/// and `--canonical-form` state how the imported fingerprints were computed.
pub(super) fn grammar(command: clap::Command) -> clap::Command {
    let options = FilterOptions::augment_args(clap::Command::new("shape"));
    let ids = options.get_arguments().map(|option| option.get_id().as_str());
    let ids = ids.filter(|id| !["algorithm", "canonical_form"].contains(id));
    let in_redis = ["redis_set", "redisbloom", "from_redis"];
    let command = command
        .mut_group("RecordOptions", |part| part.requires("urls"))
        .mut_arg("storage", |storage| storage.conflicts_with_all(in_redis));
    ids.fold(command, |command, id| command.mut_arg(id, |option| option.requires("storage")))
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    if args.from_redis {
        let config = args.folder.settings.load()?;
        check_algorithm(args, &config)?;
        return moving::from_redis(&config, args.json);
    }
    if args.redisbloom_file.is_some() || args.redisbloom.is_some() {
        return import_redisbloom(args);
    }
    let (mut store, parameters, origin) = prepare(args)?;
    let how = store.recover()?;
    for warning in how.warnings() {
        say(format_args!("urlseen: {warning}"));
    }
    let (started, checkpoints) = (Instant::now(), store.checkpoints());
    let mut works = store.work(query::open(0).1).map_err(RunError::Thread)?;
    let mut teller = BarAudience::new(Bar::of("{percent} %, {msg}", ""), draw);
    let flow = Flow {
        works: &mut works,
        pages: origin.open(checkpoints)?.spawn()?,
        effect: None,
        fill: settings::fill_watch(&parameters),
        remedy: "Raise its capacity, or choose the kind two-choice with a grow_to that suffices, \
                 and import again, into an empty storage folder",
        audience: &mut teller,
    };
    let result = runtime()?.block_on(flow.run());
    let read = teller.read;
    let result = result.map_err(anyhow::Error::from);
    let result = result.and_then(|(count, ended)| Ok(ended.map(|()| count)?));
    let count = match result {
        // The import failed before its first fingerprint.
        Err(error) if read == 0 => return Err(error),
        result => result.with_context(|| {
            let read = HumanCount(read);
            format!("stopped after {read} fingerprints: repeat the command to continue")
        })?,
    };
    let named = teller.end(count.bad, "are not fingerprints");
    let gauge = &works.engine.handle.gauge;
    let (fill, error_rate) = (gauge.fill().counted(), gauge.error_rate());
    let seconds = started.elapsed().as_secs_f64();
    let json = json!({
        "read": count.read, "new": count.new, "seen": count.seen, "bad": count.bad,
        "bad_first": named, "seconds": seconds, "keys": fill.keys, "fill": fill.share(),
        "error_rate": error_rate,
    });
    answer(args.json.then(|| json.to_string()), |out| {
        let mut rows = Rows::new(out, SUMMARY);
        rows.number("read", count.read, paced(count.read, seconds))?;
        rows.number("new", count.new, "count as seen from now on")?;
        rows.number("seen", count.seen, "were in the filter, or occurred twice")?;
        rows.number("bad", count.bad, "are not fingerprints")?;
        rows.number("filter", fill.keys, filled(fill.share(), error_rate))
    })?;
    Ok(if count.bad > 0 { Outcome::BadInput } else { Outcome::Done })
}

/// Opens the filter, which the caller must still recover. Returns the filter, its parameters and
/// the input.
fn prepare(args: &ImportArgs) -> anyhow::Result<(Local, Parameters, Origin)> {
    let files = || Origin::Files { files: args.files.clone(), format: args.format };
    let (folder, keeping, threads, origin) = if let Some(storage) = &args.folder.storage {
        let folder = Folder::open(storage)?;
        let keeping = settings::keeping(args.shape.spec(folder.header())?);
        (folder, keeping, 0, files())
    } else {
        let config = args.folder.settings.load()?;
        refuse_if!(
            config.filter.place == FilterPlace::Redis,
            "filter.place is \"redis\", and the command imports only into a storage folder. With \
             filter.kind = \"native\", import with --set filter.place=local, and then use urlseen \
             export --to-redis. With another kind, push the fingerprints to the source, and empty \
             the sink"
        );
        match (&args.redis_set, &args.urls) {
            (Some(key), Some(urls)) => {
                let urls = Input::Files(vec![urls.clone()], args.records.records());
                migrate::check_sample(&config, key, urls)?;
            }
            _ => check_algorithm(args, &config)?,
        }
        let folder = Folder::open(&config.storage.dir)?;
        if let Some(warning) = start::archive_warning(&config, &folder)? {
            say(format_args!("urlseen: {warning}"));
        }
        let keeping = start::keeping(&config)?;
        let origin = match &args.redis_set {
            Some(key) => Origin::Set { address: Box::new(config.redis.url), key: key.clone() },
            None => files(),
        };
        (folder, keeping, config.filter.threads, origin)
    };
    let FilterSpec { parameters, fingerprint } = keeping.spec.filter.clone();
    let items = Options::new(Form::Digest, fingerprint);
    let store = start::kept(folder, keeping, items, Threads::start(threads)?)?;
    Ok((store, parameters, origin))
}

/// Fails if the crawl would not recognise the fingerprints: `--algorithm` or `--canonical-form`
/// differs from the crawl's, or they come from a set of scrapy-redis and the crawl's algorithm is
/// `scrapy`.
fn check_algorithm(args: &ImportArgs, config: &Config) -> anyhow::Result<()> {
    let stated = args.shape.computing.algorithm;
    let ours = config.fingerprint.algorithm;
    let (form, our_form) = (args.shape.computing.canonical_form, config.fingerprint.canonical);
    if let Some(form) = form.filter(|&form| form != our_form) {
        return Err(usage(format!(
            "--canonical-form is {form}, and fingerprint.canonical is \"{our_form}\": the crawl \
             would not recognise some URLs. Set fingerprint.canonical = \"{form}\" first"
        )));
    }
    match (stated, &args.redis_set) {
        (Some(stated), _) if stated != ours => Err(usage(format!(
            "--algorithm is {stated}, and fingerprint.algorithm is \"{ours}\": the crawl would not \
             recognise any URL. Set fingerprint.algorithm = \"{stated}\" first"
        ))),
        (None, Some(key)) if ours == Algorithm::Scrapy => Err(usage(format!(
            "the set {key} has fingerprints of scrapy-redis, and fingerprint.algorithm is \
             \"{ours}\": the crawl would not recognise any URL. Set fingerprint.algorithm = \
             \"scrapy-redis\" first. If another dupefilter has filled the set, use --algorithm \
             {ours}"
        ))),
        _ => Ok(()),
    }
}

/// Shows the progress of an import.
fn draw(bar: &Bar, &Progress { count, read, expected }: &Progress) {
    let words = format!("{} read, {} new", HumanCount(count.read), HumanCount(count.new));
    if expected > 0 { bar.show_with(words, read, expected) } else { bar.tell(words) }
}

/// Imports a complete filter of RedisBloom into a new storage folder.
fn import_redisbloom(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let config = redisbloom(args)?;
    let dir = &config.storage.dir;
    refuse_if!(
        Folder::open(dir)?.header().is_some(),
        "the storage folder {} already holds a filter, and the import of a RedisBloom filter needs \
         a new folder: set another storage.dir, or delete the filter with urlseen storage drop",
        dir.display()
    );
    let (limit, bar) = (memory::available().map_or(u64::MAX, |it| it.bytes), Bar::new("read"));
    let filter = match (&args.redisbloom_file, &args.redisbloom) {
        (Some(path), _) => migrate::read(path, limit, &bar)?,
        (None, key) => {
            let key = key.as_deref().unwrap_or_default();
            let place = migrate::ForeignKey { address: &config.redis.url, key };
            runtime()?.block_on(place.dump(limit, &bar))?
        }
    };
    drop(bar);
    let fingerprint = config.fingerprint_spec();
    let spec = FilterSpec { parameters: Parameters::imported(), fingerprint };
    let (spec, id) = (StorageSpec { crawl: config.crawl.name, filter: spec }, RandomId::random());
    let write = |rebase: &mut Rebase<'_>| Ok(rebase.write(ShardId::WHOLE, &filter)?);
    NewFolder::write(dir, ".importing", &spec, id, Head::START, write)?.0.finish()?;
    let (keys, capacity, layers) = (filter.size(), filter.capacity(), filter.layers());
    let (bytes, error_rate) = (filter.bytes(), filter.error_rate_now());
    let expansion = filter.expansion();
    if let Some(warning) = filter.warning() {
        say(format_args!("urlseen: {warning}"));
    }
    let json = json!({
        "keys": keys, "capacity": capacity, "layers": layers, "bytes": bytes,
        "error_rate": error_rate, "expansion": expansion,
    });
    answer(args.json.then(|| json.to_string()), |out| {
        let mut rows = Rows::new(out, SUMMARY);
        rows.count("keys", keys, "count as seen from now on")?;
        rows.count("capacity", capacity, format_args!("in {layers} layers"))?;
        let growth = match expansion {
            0 => "it does not grow".to_owned(),
            times => format!("it grows: each new layer has {times} times the capacity of the last"),
        };
        rows.number("memory", BinaryBytes(bytes), growth)?;
        rows.number("error rate", format_args!("{error_rate:.1e}"), "now")
    })
}

/// Returns the configuration of a crawl with the filter of RedisBloom to import.
fn redisbloom(args: &ImportArgs) -> anyhow::Result<Config> {
    let mut config = args.folder.locate()?;
    if args.folder.storage.is_some() {
        config.computed_by(args.shape.computing.changed(FingerprintSpec::default()));
        return Ok(config);
    }
    check_algorithm(args, &config)?;
    refuse_if!(
        config.filter.kind != Kind::REDISBLOOM,
        "filter.kind is {:?}: set filter.kind = \"redisbloom\" to import a RedisBloom filter",
        config.filter.kind.name()
    );
    Ok(config)
}
