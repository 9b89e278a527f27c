//! Process that runs partitions of a crawl, each as a pipeline of its own, and the summary at its
//! end.

use std::cell::RefCell;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinSet;
use tracing::{Instrument, Span, error, info_span};
use urlseen_engine::engine::query::{Asked, Asker};
use urlseen_engine::engine::{self, Engine};
use urlseen_filter::{REMEDY_IN_FOLDER, REMEDY_IN_REDIS};

use super::RunArgs;
use super::progress::Progress;
use crate::admin::AdminServer;
use crate::cli::prelude::*;
use crate::cli::view::{Daemon, Partitions};
use crate::pipeline::{Ending, Parts, Pipeline, Shared, Standalone};
use crate::report::{FilterStatus, Report, Reporter};
use crate::serve::{QueryServer, ServerState};

/// Time between two progress lines on a terminal.
const REDRAW: Duration = Duration::from_millis(200);

/// Everything that the partitions of a process share.
struct Process<'a> {
    args: &'a RunArgs,
    stop: Stop,
    admin: AdminServer,
    view: Arc<Partitions>,
    /// Time between two progress lines; `None` for no such lines.
    interval: Option<Duration>,
    progress: RefCell<Progress<'a>>,
    /// Threads that judge the items.
    threads: Threads,
}

/// Runs partitions of the crawl, until all of them have ended. If a partition fails, the others go
/// on, and the first failure is the result. Returns `None` if the process was told to stop during
/// standby.
pub(super) async fn run(
    args: &RunArgs,
    crawl: &Config,
    partitions: Vec<Config>,
    console: &Console,
) -> anyhow::Result<Option<Ended>> {
    let mut stop = shutdown::listen().context("cannot listen for signals")?;
    let view = Arc::new(Partitions::new(crawl, &partitions));
    let admin = start::admin(crawl.admin.listen.as_ref(), crawl, view.clone(), &stop)?;
    if crawl.partitions.count.get() > 1 {
        let enter = |phase| view.enter_all(&phase);
        let publish = async || start::publish(crawl, false).await;
        if start::until(&mut stop, args.standby, enter, publish).await?.is_none() {
            return Ok(None);
        }
        view.enter_all(&Phase::Starting);
    }
    let interval = if console.is_terminal() { Some(REDRAW) } else { crawl.log.progress };
    let progress = RefCell::new(Progress::new(console, crawl.source.kind, partitions.len()));
    let threads = Threads::start(crawl.filter.threads)?;
    let process = Process { args, stop, admin, view, interval, progress, threads };
    let run = |(index, config)| {
        let partition = process.partition(index, config);
        let (number, has_others) = (config.partition.number(), config.partition.has_others());
        partition.instrument(if has_others {
            info_span!("partition", number)
        } else {
            Span::none()
        })
    };
    // Each partition is woken standalone.
    let all: FuturesUnordered<_> = partitions.iter().enumerate().map(run).collect();
    let ended: anyhow::Result<Vec<_>> = all.collect::<Vec<_>>().await.into_iter().collect();
    Ok(ended?.into_iter().flatten().reduce(Ended::and))
}

impl Process<'_> {
    /// Runs a partition, the one with this index in the process. Returns `None` if the process was
    /// told to stop during standby.
    async fn partition(&self, index: usize, config: &Config) -> anyhow::Result<Option<Ended>> {
        let ended = self.work(index, config).await;
        self.progress.borrow_mut().end(index);
        if let Err(failure) = &ended {
            let reason = format!("{failure:#}");
            self.view.enter(config.partition, Phase::Failed { reason });
            if config.partition.has_others() {
                error!("the partition has ended, and the others go on: {failure:#}");
            }
        }
        ended
    }

    /// Opens the filter in the locked storage folder or in Redis. Returns `None` if the process was
    /// told to stop during standby.
    async fn open(&self, config: &Config) -> anyhow::Result<Option<OpenedFilter>> {
        let enter = |phase| self.view.enter(config.partition, phase);
        let (mut stop, threads, standby) =
            (self.stop.clone(), self.threads.clone(), self.args.standby);
        if config.filter.place == FilterPlace::Local {
            let open = async || Ok(Folder::open(&config.storage.dir)?);
            let folder = start::until(&mut stop, standby, enter, open).await?;
            return folder.map(|folder| in_folder(config, folder, threads)).transpose();
        }
        let wanted = config.redis_filter()?;
        let open = || start::open(config, &wanted);
        let Some(opened) = start::until(&mut stop, standby, enter, open).await? else {
            return Ok(None);
        };
        let (kind, hasher) = (Arc::clone(&opened.filter), opened.hasher());
        let (recent, items) = (config.filter.recent, start::items(config));
        let parts = engine::Parts::in_redis(kind, hasher, recent, items, threads);
        let store = Local::volatile(Engine::start(&parts)?);
        Ok(Some((config.filter_spec()?.parameters, store, Some(Shared::new(wanted, opened)))))
    }

    /// Runs a partition until its end. Returns `None` if the process was told to stop during
    /// standby.
    async fn work(&self, index: usize, config: &Config) -> anyhow::Result<Option<Ended>> {
        let Some((parameters, store, shared)) = self.open(config).await? else { return Ok(None) };
        let (asker, dispatcher) = query::open(config.forget.max_len);
        let (mut clients, count) = serve(config, asker, self.threads.clone()).await?;
        let (filter, limit) = (store.engine.handle.clone(), config.limit(&parameters));
        let works = store.work(dispatcher).map_err(RunError::Thread)?;
        let (reporter, stop) = (Reporter::new(config), self.stop.clone());
        let view = Arc::new(Daemon::new(config, reporter.watch(), filter, count));
        let mut work = if config.source.kind == SourceKind::None {
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
                drain: self.args.drain,
                standby: self.args.standby,
            };
            Work::Queue(Box::new(Pipeline::new(
                parts, works, parameters, limit, shared, reporter, stop,
            )))
        };
        self.view.run(config.partition, Arc::clone(&view));
        // The socket is removed before `work` releases the folder's lock. If the filter is in
        // Redis, there is no folder for a socket.
        let socket = match config.filter.place {
            FilterPlace::Local => Some(self.admin.listen_in(&config.storage.dir, view)?),
            FilterPlace::Redis => None,
        };
        let ending = self.until_end(index, &mut work, &mut clients).await;
        drop(socket);
        if let (Err(failure @ RunError::Ended(_)), Work::Queue(pipeline)) = (&ending, &mut work) {
            pipeline.give_up(failure).await;
        }
        let ending = ending?;
        let (report, rules, lacks_room) = match work {
            Work::Queue(mut pipeline) => {
                (pipeline.report(), pipeline.by_rule(), pipeline.lacks_room())
            }
            Work::Standalone(mut standalone) => (standalone.report(), ByRule::default(), false),
        };
        if ending == Ending::Full {
            error!("{}", full(config, report.filter.keys, lacks_room)?);
        }
        Ok(Some(Ended { items: report.counts.items(), report, ending, rules }))
    }

    /// Works until the run ends.
    async fn until_end(
        &self,
        index: usize,
        work: &mut Work,
        clients: &mut JoinSet<()>,
    ) -> Result<Ending, RunError> {
        let interval = self.interval;
        let mut show = |report: &_| self.progress.borrow_mut().show(index, report, interval);
        let run = async {
            match work {
                Work::Queue(pipeline) => pipeline.run(interval, &mut show).await,
                Work::Standalone(standalone) => standalone.run(interval, &mut show).await,
            }
        };
        tokio::select! {
            ending = run => ending,
            Some(_) = clients.join_next() => Err(RunError::Ended("the server at serve.listen")),
            () = self.admin.ended() => Err(RunError::Ended("the admin endpoint")),
        }
    }
}

/// Filter of a partition that is about to run: its parameters, its engine, and if it is in Redis,
/// its place there.
type OpenedFilter = (Parameters, Local, Option<Shared>);

/// Opens the filter in the configured storage folder.
fn in_folder(config: &Config, folder: Folder, threads: Threads) -> anyhow::Result<OpenedFilter> {
    if let Some(warning) = start::archive_warning(config, &folder)? {
        warn!("{warning}");
    }
    let parameters = config.filter_spec()?.parameters;
    let store = start::kept(folder, start::keeping(config)?, start::items(config), threads)?;
    let fill = store.engine.handle.gauge.fill();
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

/// Starts the server for clients, if `serve.listen` is set. Returns its task and the state that
/// counts its clients.
async fn serve(
    config: &Config,
    asker: Asker,
    threads: Threads,
) -> anyhow::Result<(JoinSet<()>, Option<Arc<ServerState>>)> {
    let mut tasks = JoinSet::new();
    let Some(address) = &config.serve.listen else { return Ok((tasks, None)) };
    let server = QueryServer::bind(address, config, start::items(config), asker, threads).await?;
    let bound = server.listener.local_addr()?;
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
    let state = Arc::clone(&server.state);
    tasks.spawn(server.run());
    Ok((tasks, Some(state)))
}

/// Result of a run that ended without an error, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Ended {
    #[serde(flatten)]
    report: Report,
    items: u64,
    pub(super) ending: Ending,
    #[serde(flatten)]
    rules: ByRule,
}

impl Ended {
    /// Adds the result of another partition.
    fn and(self, other: Self) -> Self {
        Self {
            report: self.report.and(&other.report),
            items: self.items + other.items,
            ending: self.ending.max(other.ending),
            rules: self.rules.and(other.rules),
        }
    }

    /// Prints the summary at the end of a run.
    pub(super) fn print(&self, source: SourceKind, json: bool) -> anyhow::Result<Outcome> {
        answer(json.then(|| serde_json::to_string(self)).transpose()?, |out| {
            let mut rows = Rows::new(out, CRAWL);
            let Report { counts, asked, seconds, .. } = &self.report;
            if source != SourceKind::None {
                status::items(&mut rows, counts, &self.rules, paced(self.items, *seconds))?;
            }
            if source == SourceKind::None || *asked != Asked::default() {
                status::asked(&mut rows, asked, format_args!("in {seconds:.2} s"))?;
            }
            let FilterStatus { keys, fill, error_rate, .. } = self.report.filter;
            rows.count("filter", keys, filled(fill, error_rate))
        })
    }
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
