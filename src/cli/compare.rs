//! `urlseen compare`: counts the fingerprints that two filters have in common, and unites them in
//! a new filter. Both filters are only read.

use crate::analysis::{Overlap, Totals};
use urlseen_filter::FilterKind;
use urlseen_storage::Tombstones;

use crate::cli::moving::saved;
use crate::cli::prelude::*;

/// Count the fingerprints in two filters A and B, in their union and in their intersection, and
/// make the union if it is asked for.
///
/// The filters must have the same kind, parameters and seed. Otherwise the command prints the
/// differences and fails. It does not change A or B, so it can run while a daemon uses them. It
/// needs memory for the filters that are in folders. For the kinds two-choice and exact, the
/// numbers are exact. For other kinds they are computed from the bits, with an error that the
/// command prints.
///
/// The union C is a new filter: each URL that A or B has seen counts as seen in C. The command
/// never overwrites an existing folder or key, and leaves no C if it fails. A URL that was
/// forgotten in a native filter A or B passes again in C. With other kinds, it passes again unless
/// the other filter has seen it.
///
/// Examples:
/// ```text
/// urlseen compare monday redis://127.0.0.1:6379/0#demo:filter
/// urlseen compare monday tuesday --output both
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    settings: Settings,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// A filter: a storage folder, or URL#KEY in Redis.
    ///
    /// Write a key as the URL of Redis, `#` and the key, as in
    /// `redis://127.0.0.1:6379/0#demo:filter` or `unix:///run/redis.sock#demo:filter`. If urlseen
    /// made the filter in Redis, Redis also holds the parameters of the filter. If another project
    /// made the filter, set its parameters in the configuration. Set the password of Redis in
    /// `URLSEEN_REDIS_PASSWORD`.
    #[arg(value_name = "A")]
    a: String,
    /// Another filter, named in the same way
    #[arg(value_name = "B")]
    b: String,
    /// The union C to make: a new storage folder, or URL#KEY in Redis
    #[arg(short, long, value_name = "C")]
    output: Option<String>,
    /// Name of the crawl for a new folder C. Default: the crawl of A
    #[arg(long, value_name = "NAME", requires = "output")]
    crawl: Option<String>,
}

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let new_folder = args.output.as_deref().filter(|output| !output.contains("://"));
    if let Some(path) = new_folder {
        refuse_if!(
            Path::new(path).exists(),
            "{path} already exists, and a union needs a new storage folder: use another name"
        );
    }
    let [mut a, mut b] = args.open()?;
    args.print(&match (new_folder, &args.output) {
        (Some(path), _) => into_folder(args, path, &mut a, &mut b),
        (None, Some(output)) => into_redis(args, output, &mut a, &mut b),
        (None, None) => unite(&mut a, &mut b, |_, _| Ok(())),
    }?)
}

impl CompareArgs {
    /// Opens both filters. Refuses them if their kind cannot be united, or if their bits have
    /// different meanings.
    fn open(&self) -> anyhow::Result<[ComparedFilter; 2]> {
        let a = ComparedFilter::open(&self.a, &self.settings)?;
        let b = ComparedFilter::open(&self.b, &self.settings)?;
        let parameters = &a.spec.parameters;
        let is_possible = match parameters.in_redis() {
            Ok(strings) => strings.keys().iter().all(|(_, it)| it.crowded().is_some()),
            Err(_) => parameters.shards() == SHARDS,
        };
        refuse_if!(
            !is_possible,
            "A has the kind {}, and can be neither compared nor united: a fingerprint can be in \
             different layers of two filters. Redis itself counts and unites sets, with SINTERCARD \
             and SUNIONSTORE",
            parameters.kind()
        );
        let differences = a.spec.differences(&b.spec).into_iter();
        let lines: Vec<_> = differences
            .map(|it| format!("* {}: {} in A, {} in B", it.what, it.found, it.wanted))
            .collect();
        refuse_if!(
            !lines.is_empty(),
            "the filters have different settings, so their bits have different meanings:\n{}\nBy \
             default, each filter has its own random seed. To compare filters, make them with the \
             same filter.seed or --seed",
            lines.join("\n")
        );
        Ok([a, b])
    }

    /// Prints the numbers as a table or as JSON.
    fn print(&self, overlap: &Overlap) -> anyhow::Result<Outcome> {
        answer(self.json.then(|| serde_json::to_string(overlap)).transpose()?, |out| {
            let mut rows = Rows::new(out, COMPARED);
            for (name, number) in [
                ("in A", overlap.a),
                ("in B", overlap.b),
                ("in A or B", overlap.union),
                ("in A and B", overlap.intersection),
            ] {
                rows.row(name, format_args!("{:>15}", HumanCount(number).to_string()))?;
            }
            match overlap.error {
                0.0 => rows.row("error", "none: the numbers are exact"),
                error if error.is_infinite() => {
                    rows.row("error", "the filters are too full: the numbers are too low")
                }
                error => rows.number("error", error, "at most, in 95 of 100 cases"),
            }
        })
    }
}

/// Unites two filters part by part, and counts their fingerprints. Passes each part of the union to
/// `put`.
fn unite(
    a: &mut ComparedFilter,
    b: &mut ComparedFilter,
    mut put: impl FnMut(u32, Part<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Overlap> {
    let (mut totals, strings) = (Totals::default(), a.spec.parameters.in_redis().ok());
    let bar = Bar::counting("parts");
    match (&mut a.content, &mut b.content) {
        (Stored::Keys(a), Stored::Keys(b)) => {
            let count = |filter: &dyn FilterKind| filter.gauge().fill().keys;
            let [in_a, in_b] = [count(&**a), count(&**b)];
            for (done, shard) in (1..).zip(ShardId::all()) {
                a.unite(shard, &**b).map_err(|error| usage(error.to_string()))?;
                put(shard.number(), Part::Keys(&**a))?;
                bar.show(done, SHARDS as u64);
            }
            totals.add([in_a, in_b, count(&**a)]);
        }
        (Stored::Bits(a), Stored::Bits(b)) => {
            let parts = strings.iter().flat_map(|strings| strings.keys()).collect::<Vec<_>>();
            for (done, &(number, content)) in (1..).zip(&parts) {
                let mut bytes = a(number)?;
                totals.unite(content, &mut bytes, &b(number)?);
                put(number, Part::Bits(bytes))?;
                bar.show(done, parts.len() as u64);
            }
        }
        _ => unreachable!("filters of one kind are stored alike"),
    }
    Ok(totals.overlap(strings.as_deref()))
}

/// Filter that a command reads.
struct ComparedFilter {
    spec: FilterSpec,
    /// Name of the filter's crawl.
    crawl: String,
    /// Forgotten keys that have not passed again.
    tombstones: Tombstones,
    content: Stored,
}

/// Content of a filter to compare.
enum Stored {
    /// Filter of a kind that stores keys.
    Keys(Box<dyn FilterKind>),
    /// Reader of the strings of a Bloom filter.
    Bits(Box<dyn FnMut(u32) -> anyhow::Result<Vec<u8>>>),
}

/// Part of a filter or of a union.
enum Part<'a> {
    /// Filter of a kind that stores keys, in which the shard is complete.
    Keys(&'a dyn FilterKind),
    /// String of a Bloom filter: for a shard in memory, the bytes that Redis would have, or none if
    /// the shard is empty.
    Bits(Vec<u8>),
}

/// Returns the shard with this number.
fn shard(number: u32) -> ShardId {
    ShardId::all().nth(number as usize).expect("the parts of this kind are shards")
}

impl ComparedFilter {
    /// Opens the filter that `text` names.
    fn open(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        if text.contains("://") { Self::in_redis(text, settings) } else { Self::folder(text) }
    }

    fn folder(path: &str) -> anyhow::Result<Self> {
        let (folder, _) = AtRest::open_beside(Path::new(path))?;
        let spec = start::spec_of(folder.header(), Path::new(path))?.clone();
        if let Err(rules) = spec.check(folder.header()) {
            anyhow::bail!("{path}: {}", rules[0]);
        }
        let has_strings = spec.filter.parameters.in_redis().is_ok();
        let (filter, mut tombstones) = folder.filter(Target::Last, |_| true)?;
        let content = if has_strings {
            let read = move |number| Ok(filter.save(shard(number), Vec::new()).into_buffer());
            Stored::Bits(Box::new(read))
        } else {
            // A kind that stores keys has removed the forgotten ones.
            tombstones.clear();
            Stored::Keys(filter)
        };
        Ok(Self { spec: spec.filter, crawl: spec.crawl, tombstones, content })
    }

    fn in_redis(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        let (mut config, mut link) = connect(text, settings)?;
        if !config.filter.kind.is_in(FilterPlace::Redis) {
            config.filter.kind = Kind::NATIVE;
        }
        let wanted = config.redis_filter()?;
        let Opened { definition, filter, .. } =
            runtime()?.block_on(wanted.find_as_defined(&mut link))?;
        let read = move |number| Ok(runtime()?.block_on(opening::get(&mut link, &filter, number))?);
        let (spec, crawl, tombstones) = (definition.spec, config.crawl.name, Tombstones::new());
        Ok(Self { spec, crawl, tombstones, content: Stored::Bits(Box::new(read)) })
    }
}

/// Connects to the Redis of `URL#KEY`, the place of a filter. The other settings come from the
/// configuration.
fn connect(text: &str, settings: &Settings) -> anyhow::Result<(Config, Link)> {
    let Some((url, key)) = text.split_once('#').filter(|(_, key)| !key.is_empty()) else {
        let words = "write a filter in Redis as the URL of Redis, # and the key: \
                     redis://127.0.0.1:6379/0#demo:filter";
        return Err(usage(words));
    };
    let mut config = Config::load(settings.layers.sources(&[format!("redis.url={url}")]))?;
    config.redis.url = config.redis.url.for_key(key);
    key.clone_into(&mut config.filter.key);
    let link = runtime()?.block_on(start::connect(&config))?;
    Ok((config, link))
}

/// Unites two filters into a new storage folder.
fn into_folder(
    args: &CompareArgs,
    path: &str,
    a: &mut ComparedFilter,
    b: &mut ComparedFilter,
) -> anyhow::Result<Overlap> {
    let kind = a.spec.kind();
    refuse_if!(
        !kind.is_in(FilterPlace::Local),
        "a storage folder cannot hold a filter of the kind {kind}: use -o redis://…#KEY"
    );
    let crawl = args.crawl.as_ref().unwrap_or(&a.crawl).clone();
    let spec = StorageSpec { crawl, filter: a.spec.clone() };
    let (place, id, native) = (Path::new(path), RandomId::random(), a.spec.parameters.layout());
    let (new, overlap) = NewFolder::write(place, ".uniting", &spec, id, Head::START, |rebase| {
        let overlap = unite(a, b, |number, part| {
            let blob = match part {
                Part::Keys(filter) => filter.save(shard(number), Vec::new()),
                Part::Bits(bytes) => Box::new(saved(bytes, native)),
            };
            Ok(rebase.write(shard(number), &*blob)?)
        })?;
        for &(shard, id) in a.tombstones.union(&b.tombstones) {
            rebase.sections.tombstones(shard, &[id]);
        }
        Ok(overlap)
    })?;
    new.finish()?;
    Ok(overlap)
}

/// Unites two filters into a new filter in Redis, which has temporary keys until it is complete.
fn into_redis(
    args: &CompareArgs,
    output: &str,
    a: &mut ComparedFilter,
    b: &mut ComparedFilter,
) -> anyhow::Result<Overlap> {
    let forgotten = a.tombstones.len() + b.tombstones.len();
    refuse_if!(
        forgotten > 0,
        "{forgotten} fingerprints were forgotten, and a filter in Redis cannot forget: unite into \
         a storage folder, or let the URLs pass first"
    );
    let (config, mut link) = connect(output, &args.settings)?;
    let wanted = Wanted::new(&config.filter.key, a.spec.clone())?;
    // The number has no effect for a kind without a seed.
    let seed = a.spec.parameters.seed().unwrap_or(Seed::new(0));
    let new = runtime()?.block_on(wanted.begin_new(&mut link, RandomId::random(), seed))?;
    let overlap = unite(a, b, |number, part| {
        // `Wanted::new` refuses the kinds that store keys.
        let Part::Bits(bytes) = part else { return Ok(()) };
        Ok(runtime()?.block_on(new.put(&mut link, number, &bytes))?)
    })?;
    runtime()?.block_on(new.finish(&mut link))?;
    Ok(overlap)
}
