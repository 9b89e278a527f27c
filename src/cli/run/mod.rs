//! `urlseen run`: the daemon, which moves unseen items from the source to the sink.

mod descriptors;
mod slot;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use crate::admin::telemetry::Console;
use crate::admin::{self, Limits, Passed};
use crate::crawl::protocol::Protocol;
use crate::pipeline::{
    Alone, Ending, Live, Parts, Pipeline, Report, RunError, Shared, Status, shutdown,
};
use crate::serve::Server;
use anyhow::Context;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info, warn};
use urlseen_core::filter::{Parameters, REMEDY_IN_FOLDER, REMEDY_IN_REDIS, SpecError};
use urlseen_core::storage::Folder;
use urlseen_engine::config::{Config, FilterPlace, SourceKind};
use urlseen_engine::engine::query::{self, Asker};
use urlseen_engine::engine::store::Local;

use summary::RunProgress;

use super::context::runtime;
use super::settings::Settings;
use super::view::Daemon;
use super::{Outcome, shape, start};

/// Time between two progress lines on a terminal.
const REDRAW: Duration = Duration::from_millis(200);

/// Move unseen items from the source in Redis to the sink.
///
/// The daemon runs until Ctrl-C or SIGTERM. With `--drain`, it also ends when the source is empty
/// and all items are committed. If `serve.listen` is set, it also answers clients in the Redis
/// protocol. With `source.kind = "none"`, it only answers clients.
///
/// Environment variables can set all keys of the configuration. For example,
/// `URLSEEN_FILTER__CAPACITY` sets `filter.capacity`. `--set` overrides the environment, and the
/// environment overrides the file. Set the password of Redis in `URLSEEN_REDIS_PASSWORD`, and the
/// password of `[serve]` in `URLSEEN_SERVE_PASSWORD`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen run                                # until Ctrl-C
  urlseen run --drain --set crawl.name=news  # until news:discovered is empty")]
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
    let machine = |config: &Config| slot::divided(config).or_else(|| descriptors::lacking(config));
    let config = args.settings.load_for(&[], machine)?;
    let console = Console::new();
    console.log(config.log.level, config.log.format);
    if args.drain && config.source.kind == SourceKind::None {
        let reason = "--drain waits for an empty source, and source.kind is \"none\": leave out \
                      one of them";
        return Err(start::usage(reason));
    }
    descriptors::raise(&config).context("cannot raise the limit on file descriptors")?;
    let runtime = runtime()?;
    let Some((ending, report, passed)) = runtime.block_on(work(args, &config, &console))? else {
        info!("the process was told to stop during standby");
        return Ok(Outcome::Done);
    };
    console.clear();
    summary::summarize(config.source.kind, &report, &passed, ending, args.json)?;
    Ok(if ending == Ending::Full { Outcome::Failed } else { Outcome::Done })
}

/// Opens the filter in the configured storage folder.
fn store(config: &Config, folder: Folder) -> anyhow::Result<(Parameters, Local)> {
    if let Some(warning) = start::archive_warning(config, &folder)? {
        warn!("{warning}");
    }
    let parameters = config.filter_spec()?.parameters;
    let store = start::configured(config, folder)?;
    let fill = store.engine.gauges().fill();
    if let Some(warning) = parameters.outlook(fill.capacity).ok().and_then(|it| it.warning) {
        warn!("{warning}");
    }
    info!("the filter is ready: {}", shape::described(&parameters));
    Ok((parameters, store))
}

/// Returns the configured parts of the pipeline, except for the filter.
fn parts(config: &Config, shared: Option<&Shared>, args: &RunArgs) -> Parts {
    let protocol = Protocol::new(config);
    Parts {
        server: Arc::new(config.redis.url.clone()),
        protocol: match shared {
            Some(shared) => protocol.with_filter(shared.filter()),
            None => protocol,
        },
        forgets: start::forgets(config),
        config: config.clone(),
        drain: args.drain,
        standby: args.standby,
    }
}

/// Starts the admin endpoint. If the filter is in Redis, there is no folder for the socket.
fn admin(config: &Config, view: Daemon) -> anyhow::Result<admin::AdminServer> {
    let mut server = admin::AdminServer::start(Arc::new(view), Limits::default())?;
    if config.filter.place == FilterPlace::Local {
        server.listen_in(&config.storage.dir)?;
    }
    if let Some(address) = &config.admin.listen {
        let bound = server.listen_at(address, &config.admin.hosts)?;
        info!("the admin endpoint is at http://{bound}/");
    }
    Ok(server)
}

/// Work of a run, with its filter.
enum Work {
    /// Moves items from the source to the sink, and answers clients.
    Queue(Box<Pipeline>),
    /// Answers clients, without a source and a sink.
    Alone(Box<Alone>),
}

impl Work {
    fn live(&self) -> watch::Receiver<Live> {
        match self {
            Self::Queue(pipeline) => pipeline.live(),
            Self::Alone(alone) => alone.live(),
        }
    }

    async fn run(
        &mut self,
        interval: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        match self {
            Self::Queue(pipeline) => pipeline.run(interval, show).await,
            Self::Alone(alone) => alone.run(interval, show).await,
        }
    }

    /// Ends a run after a failure.
    async fn give_up(&mut self, failure: &RunError) {
        match self {
            Self::Queue(pipeline) => pipeline.give_up(failure).await,
            Self::Alone(_) => {}
        }
    }

    fn report(&self) -> Report {
        match self {
            Self::Queue(pipeline) => pipeline.report(),
            Self::Alone(alone) => alone.report(),
        }
    }

    /// Returns the number of items that each rule let pass.
    fn passed(&self) -> &[Passed] {
        match self {
            Self::Queue(pipeline) => pipeline.passed(),
            Self::Alone(_) => &[],
        }
    }
}

/// Starts the server for clients, if `serve.listen` is set.
async fn serve(
    config: &Config,
    parameters: &Parameters,
    asker: Asker,
) -> anyhow::Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    let Some(address) = &config.serve.listen else { return Ok(tasks) };
    let expansion = parameters.field("filter.expansion").filter(|&times| times > 0);
    let server = Server::bind(address, config, start::items(config), expansion, asker).await?;
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
    tasks.spawn(server.run());
    Ok(tasks)
}

/// Opens the filter. Returns the work of the run, the view for the admin endpoint, and the tasks
/// that serve clients. Returns `None` if the process was told to stop during standby.
async fn prepare(
    args: &RunArgs,
    config: &Config,
) -> anyhow::Result<Option<(Work, Daemon, JoinSet<()>)>> {
    let mut stop = shutdown::listen().context("cannot listen for signals")?;
    let (parameters, store, shared) = match config.filter.place {
        FilterPlace::Local => {
            start::refuse_earlier_folder(config)?;
            let folder = if args.standby {
                let Some(folder) = start::standby(&config.storage.dir, &mut stop).await? else {
                    return Ok(None);
                };
                folder
            } else {
                Folder::open(&config.storage.dir)?
            };
            let (parameters, store) = store(config, folder)?;
            (parameters, store, None)
        }
        FilterPlace::Redis => {
            let wanted = config.redis_filter()?;
            let Some(opened) = start::shared(config, &wanted, &mut stop).await? else {
                return Ok(None);
            };
            let engine = start::shared_engine(config, &opened)?;
            let parameters = config.filter_spec()?.parameters;
            (parameters, Local::volatile(engine), Some(Shared::new(wanted, opened)))
        }
    };
    let (asker, dispatcher) = query::open(config.forget.max_len);
    let tasks = serve(config, &parameters, asker).await?;
    let (filter, limit) = (store.engine.handle(), config.limit(&parameters));
    let works = store.work(dispatcher).map_err(RunError::Thread)?;
    let work = if config.source.kind == SourceKind::None {
        let (when_full, status) = (config.filter.when_full, Status::starting(config));
        let alone = Alone::new(works, limit, when_full, status, stop);
        Work::Alone(Box::new(alone))
    } else {
        let parts = parts(config, shared.as_ref(), args);
        Work::Queue(Box::new(Pipeline::new(parts, works, limit, shared, stop)))
    };
    let view = Daemon::new(config, work.live(), filter);
    Ok(Some((work, view, tasks)))
}

/// Runs the daemon. Returns `None` if the process was told to stop during standby.
async fn work(
    args: &RunArgs,
    config: &Config,
    console: &Console,
) -> anyhow::Result<Option<(Ending, Report, Vec<Passed>)>> {
    let Some((mut work, view, mut tasks)) = prepare(args, config).await? else { return Ok(None) };
    // The endpoint is declared after `work`, so it is dropped before `work` releases the folder's
    // lock.
    let mut admin = admin(config, view)?;
    let interval = if console.is_terminal() { Some(REDRAW) } else { config.log.progress };
    let mut last = None;
    let mut show = |report: &Report| {
        let (source, before) = (config.source.kind, last.as_ref());
        let progress = RunProgress { source, now: report, before };
        if console.is_terminal() {
            console.show(progress.to_string());
        } else {
            info!("{progress}");
        }
        last = Some(*report);
    };
    let ending = tokio::select! {
        ending = work.run(interval, &mut show) => ending,
        Some(_) = tasks.join_next() => Err(RunError::Ended("the server at serve.listen")),
        () = admin.ended() => Err(RunError::Ended("the admin endpoint")),
    };
    if let Err(failure @ RunError::Ended(_)) = &ending {
        work.give_up(failure).await;
    }
    let (ending, report) = (ending?, work.report());
    if ending == Ending::Full {
        error!("{}", full(config, report.filter.keys)?);
    }
    Ok(Some((ending, report, work.passed().to_vec())))
}

/// Returns the message for a run that a full filter has ended.
fn full(config: &Config, keys: u64) -> Result<String, SpecError> {
    let parameters = config.filter_spec()?.parameters;
    let Some(limit) = config.limit(&parameters) else {
        let may_not_grow = parameters.field("filter.expansion") == Some(0);
        let more = if may_not_grow {
            ". filter.expansion is 0, so the filter does not grow: set filter.expansion = 2, and \
             empty the filter: urlseen storage reset. All seen items are emitted again"
        } else {
            ""
        };
        return Ok(format!(
            "the filter holds {keys} fingerprints and has no room for more: items without a \
             verdict wait in the source. Give the machine more memory if it had too little{more}"
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
