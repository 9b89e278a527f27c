//! `urlseen run`: the daemon, which moves unseen items from the source to the sink.

mod descriptors;
mod process;

use crate::pipeline::{Ending, Parts, Pipeline, Shared, Standalone};
use crate::report::Report;
use crate::report::Reporter;
use crate::serve::{ClientCount, QueryServer};
use tokio::task::JoinSet;
use urlseen_engine::engine::query::{Asker, QueryDispatcher};
use urlseen_engine::engine::{self, Engine};
use urlseen_filter::REMEDY_IN_FOLDER;
use urlseen_filter::REMEDY_IN_REDIS;

use crate::cli::prelude::*;
use crate::cli::view::Daemon;

/// Move unseen items from the source in Redis to the sink.
///
/// The daemon runs until Ctrl-C or SIGTERM. With `--drain`, it also ends when the source is empty
/// and all items are committed. If `serve.listen` is set, it also answers clients in the Redis
/// protocol. With `source.kind = "none"`, it only answers clients.
///
/// Environment variables can set all keys of the configuration. For example,
/// `URLSEEN_FILTER__CAPACITY` sets `filter.capacity`. `--set` overrides the environment, and the
/// environment overrides the file. Set the password of Redis in `URLSEEN_REDIS_PASSWORD`, the
/// password of `[serve]` in `URLSEEN_SERVE_PASSWORD`, and the token of the page at `admin.listen`
/// in `URLSEEN_ADMIN_TOKEN`.
///
/// Examples:
/// ```text
/// urlseen run                                # until Ctrl-C
/// urlseen run --drain --set crawl.name=news  # until news:discovered is empty
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    settings: Settings,
    /// End when the source is empty and all items are committed
    #[arg(long)]
    drain: bool,
    /// Wait while another process runs the crawl, and then take over. The command waits for the
    /// lock of the storage folder and for the lease in Redis
    #[arg(long)]
    standby: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let config = args.settings.load_for(machine)?;
    let console = Console::new();
    console.log(config.log.level, config.log.format);
    refuse_if!(
        args.drain && config.source.kind == SourceKind::None,
        "--drain waits for an empty source, and source.kind is \"none\": leave out one of them"
    );
    let partitions = chosen(&args.settings, &config)?;
    descriptors::raise(&config, partitions.len())
        .context("cannot raise the limit on file descriptors")?;
    let Some(Ended { ending, report, rules }) =
        runtime()?.block_on(process::run(args, &config, partitions, &console))?
    else {
        info!("the process was told to stop during standby");
        return Ok(Outcome::Done);
    };
    console.clear();
    process::summarize(config.source.kind, &report, &rules, ending, args.json)?;
    Ok(if ending == Ending::Full { Outcome::Failed } else { Outcome::Done })
}

/// Reports a configuration that this machine or the cluster does not permit.
pub(super) fn machine(config: &Config) -> Option<(&'static str, String)> {
    match own_partitions(config) {
        Ok(own) => config.divided().or_else(|| descriptors::lacking(config, own.len())),
        Err(error) => Some(("partitions.run", error)),
    }
}

/// Returns the partitions that are configured for this host.
fn own_partitions(config: &Config) -> Result<Vec<Partition>, String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    config.partitions.run.of(config.partitions.count, &host)
}

/// Returns the configurations of the partitions that a process with these settings runs.
pub(super) fn chosen(settings: &Settings, config: &Config) -> anyhow::Result<Vec<Config>> {
    if settings.partition.is_some() {
        return settings.partitions_of(config);
    }
    let partitions = own_partitions(config).map_err(anyhow::Error::msg)?;
    Ok(partitions.into_iter().map(|partition| config.of_partition(partition)).collect())
}

/// Result of a run that ended without an error.
struct Ended {
    ending: Ending,
    report: Report,
    rules: ByRule,
}

/// Opens the filter in the configured storage folder.
fn store(config: &Config, folder: Folder, threads: Threads) -> anyhow::Result<OpenedFilter> {
    if let Some(warning) = start::archive_warning(config, &folder)? {
        warn!("{warning}");
    }
    let parameters = config.filter_spec()?.parameters;
    let store = start::kept(folder, start::keeping(config)?, start::items(config), threads)?;
    let fill = store.engine.gauge().fill();
    let outlook = parameters.outlook(fill.capacity).ok().and_then(|it| it.warning);
    for warning in outlook.into_iter().chain(settings::outgrown(&parameters)) {
        warn!("{warning}");
    }
    info!("the filter is ready: {}", settings::described(&parameters));
    Ok((parameters, store, None))
}

/// Work of a run, with its filter.
enum Work {
    /// Moves items from the source to the sink, and answers clients.
    Queue(Box<Pipeline>),
    /// Answers clients, without a source and a sink.
    Standalone(Box<Standalone>),
}

/// Starts the server for clients, if `serve.listen` is set. Returns its task and the counts of its
/// clients.
async fn serve(
    config: &Config,
    asker: Asker,
    threads: Threads,
) -> anyhow::Result<(JoinSet<()>, Option<ClientCount>)> {
    let mut tasks = JoinSet::new();
    let Some(address) = &config.serve.listen else { return Ok((tasks, None)) };
    let server = QueryServer::bind(address, config, start::items(config), asker, threads).await?;
    let bound = server.address()?;
    info!(
        "clients can use the Redis protocol at {bound} for the keys {}",
        config.serve.keys.join(", ")
    );
    if !bound.ip().is_loopback() && config.serve_password.is_none() {
        warn!(
            "every program that can reach {bound} can add to the filter. To prevent this, set \
             URLSEEN_SERVE_PASSWORD in the environment"
        );
    }
    let count = server.client_count();
    tasks.spawn(server.run());
    Ok((tasks, Some(count)))
}

/// Filter of a partition that is about to run: its parameters, its engine, and if it is in Redis,
/// its place there.
type OpenedFilter = (Parameters, Local, Option<Shared>);

/// Opens the filter in the locked storage folder or in Redis. Returns `None` if the process was
/// told to stop during standby. Passes the phase of a wait to `enter`.
async fn open(
    args: &RunArgs,
    config: &Config,
    threads: Threads,
    stop: &mut Stop,
    enter: impl Fn(Phase),
) -> anyhow::Result<Option<OpenedFilter>> {
    if config.filter.place == FilterPlace::Local {
        let folder = if args.standby {
            start::standby(&config.storage.dir, stop, enter).await?
        } else {
            Some(Folder::open(&config.storage.dir)?)
        };
        return folder.map(|folder| store(config, folder, threads)).transpose();
    }
    let wanted = config.redis_filter()?;
    let open = || start::open(config, &wanted);
    let Some(opened) = start::until(stop, enter, open).await? else { return Ok(None) };
    let (kind, hasher) = (Arc::clone(&opened.filter), opened.hasher());
    let (recent, items) = (config.filter.recent, start::items(config));
    let parts = engine::Parts::in_redis(kind, hasher, recent, items, threads);
    let store = Local::volatile(Engine::start(&parts)?);
    Ok(Some((config.filter_spec()?.parameters, store, Some(Shared::new(wanted, opened)))))
}

/// Begins a run with an opened filter. The run answers the queries of `dispatcher`, and ends when
/// `stop` becomes true. Returns the run and its view, which also shows `clients`.
fn begin(
    args: &RunArgs,
    config: &Config,
    (parameters, store, shared): OpenedFilter,
    dispatcher: QueryDispatcher,
    clients: Option<ClientCount>,
    stop: Stop,
) -> anyhow::Result<(Work, Daemon)> {
    let (filter, limit) = (store.engine.handle(), config.limit(&parameters));
    let works = store.work(dispatcher).map_err(RunError::Thread)?;
    let reporter = Reporter::new(config);
    let watch = reporter.watch();
    let work = if config.source.kind == SourceKind::None {
        let when_full = config.filter.when_full;
        Work::Standalone(Box::new(Standalone::new(
            works, parameters, limit, when_full, reporter, stop,
        )))
    } else {
        let protocol = config.protocol();
        let parts = Parts {
            server: Arc::new(config.redis.url.clone()),
            protocol: match &shared {
                Some(shared) => protocol.with_filter(shared.filter()),
                None => protocol,
            },
            forgets: start::forgets(config),
            config: config.clone(),
            drain: args.drain,
            standby: args.standby,
        };
        Work::Queue(Box::new(Pipeline::new(
            parts, works, parameters, limit, shared, reporter, stop,
        )))
    };
    Ok((work, Daemon::new(config, watch, filter, clients)))
}

/// Returns the message for a run that a full filter has ended. `lacks_room` is true if the filter
/// could not take further items, with any value of `filter.when_full`.
fn full(config: &Config, keys: u64, lacks_room: bool) -> Result<String, SpecError> {
    let parameters = config.filter_spec()?.parameters;
    let Some(limit) = config.limit(&parameters).filter(|_| !lacks_room) else {
        let may_not_grow = parameters.field("filter.expansion") == Some(0);
        let more = if may_not_grow {
            ". filter.expansion is 0, so the filter does not grow: set filter.expansion = 2, and \
             empty the filter: urlseen storage reset. All seen items are emitted again"
        } else {
            ""
        };
        return Ok(format!(
            "the filter holds {keys} fingerprints and has no room for more: items without a \
             verdict wait in the source. Give the process more memory if it had too little{more}"
        ));
    };
    let remedy = match config.filter.place {
        FilterPlace::Local => REMEDY_IN_FOLDER,
        FilterPlace::Redis => REMEDY_IN_REDIS,
    };
    Ok(format!(
        "the filter holds {limit} fingerprints or more, as many as it is made for, and \
         filter.when_full is \"stop\": items without a verdict wait in the source. To continue \
         with more errors, set filter.when_full = \"warn\" and start again. {remedy}"
    ))
}
