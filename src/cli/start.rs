//! Functions that several commands share: the runtime of the process, its connections to Redis,
//! work on partitions, the start of a filter, and its settings in the configuration.

use std::io::BufRead;
use std::sync::OnceLock;

use crate::analysis::Crawl;
use crate::config::Rollback;
use clap::error::ErrorKind;
use tokio::runtime::{Builder, Runtime};
use urlseen_engine::engine::{Engine, Parts};
use urlseen_filter::id::random;
use urlseen_redis::backoff::Backoff;
use urlseen_redis::connect;
use urlseen_redis::protocol::LeaseHolder;
use urlseen_storage::{Difference, StoragePolicy};

use crate::admin::{AdminServer, Limits, StartError};
use crate::cli::prelude::*;
use crate::cli::service_manager;

/// Returns the runtime of the process. It runs its tasks on the calling thread, while the thread
/// waits for it.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// Connects to `redis.url`.
pub(super) async fn connect(config: &Config) -> Result<Link, LinkError> {
    connect::connect(&config.redis.url).await
}

/// Connects to `redis.url`, and finds the filter there.
pub(super) async fn find(config: &Config) -> anyhow::Result<(Link, Opened)> {
    let (wanted, mut link) = (config.redis_filter()?, connect(config).await?);
    let opened = wanted.find(&mut link).await?;
    Ok((link, opened))
}

/// Does the work for each crawl, in order: for each partition, if the crawl has several. Then it
/// names each of them on standard error, and if the work fails for one, prints the failure and goes
/// on with the others. Returns the gravest of all outcomes.
///
/// # Errors
/// The work for the only crawl fails, or the program that reads the output has closed it.
pub(super) fn each_crawl(
    configs: Vec<Config>,
    mut work: impl FnMut(Config) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let mut gravest = Outcome::Done;
    for config in configs {
        let partition = config.partition;
        if partition.has_others() {
            say(format_args!("partition {partition}:"));
        }
        let outcome = match work(config) {
            Err(error) if partition.has_others() && !super::is_broken_pipe(&error) => {
                say(format_args!("urlseen: partition {partition}: {error:#}"));
                Outcome::of(&error)
            }
            outcome => outcome?,
        };
        gravest = gravest.max(outcome);
    }
    Ok(gravest)
}

/// Asks the question at the terminal, and returns true if the answer is yes. If `yes` is set
/// (`--yes`), returns true without a question. An empty answer means no. If the answer is no, the
/// function prints `unchanged`. If standard input is not a terminal, the process ends with the exit
/// status for wrong arguments.
pub(super) fn confirmed(yes: bool, question: &str, unchanged: &str) -> io::Result<bool> {
    let input = io::stdin();
    if yes {
        return Ok(true);
    }
    if !input.is_terminal() {
        let message = format!("{question} There is no terminal for an answer: give --yes\n");
        super::refuse(&clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
    }
    write!(stderr(), "{} [y/N] ", printable(question.as_bytes(), None))?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    let is_yes = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    if !is_yes {
        writeln!(stdout(), "{unchanged}")?;
    }
    Ok(is_yes)
}

/// Starts the admin endpoint of a process, with the hosts and the token of the configuration, and
/// tells the service manager about the process. Logs the address, if there is one, and a hint if
/// the endpoint shows little there.
pub(super) fn admin(
    address: Option<&String>,
    config: &Config,
    view: Arc<dyn View>,
    stop: &Stop,
) -> Result<AdminServer, StartError> {
    let (admin, token) = (AdminServer::start(Limits::default())?, config.admin_token.as_ref());
    if let Some(address) = address {
        let bound = admin.listen_at(address, &config.admin.hosts, token, Arc::clone(&view))?;
        info!("the admin endpoint is at http://{bound}/");
        if token.is_none() && !bound.ip().to_canonical().is_loopback() {
            info!(
                "without a token, only health and metrics are at {bound}. To show the page and \
                 the status there, set URLSEEN_ADMIN_TOKEN in the environment"
            );
        }
    }
    // The task ends with the runtime, when the process ends.
    tokio::spawn(service_manager::inform(view, stop.clone()));
    Ok(admin)
}

/// Starts an engine with an empty filter, if the machine has the memory for it. Draws a seed if the
/// parameters have none.
pub(super) fn engine(
    parameters: &mut Parameters,
    items: Options,
    threads: Threads,
) -> anyhow::Result<Engine> {
    *parameters = parameters.seeded(Seed::random);
    parameters.check_memory()?;
    Ok(Engine::start(&Parts::local(parameters.clone(), items, threads))?)
}

/// Attempts a step of the start until it succeeds. Retries while Redis is unavailable or, with
/// `standby`, while another process holds the folder, and passes this phase to `enter`. Returns
/// `None` if the process was told to stop before that.
pub(super) async fn until<T>(
    stop: &mut Stop,
    standby: bool,
    enter: impl Fn(Phase),
    attempt: impl AsyncFn() -> Result<T, RunError>,
) -> anyhow::Result<Option<T>> {
    let (mut backoff, mut now) = (Backoff::default(), Phase::Starting);
    loop {
        let failure = match attempt().await {
            Ok(done) => return Ok(Some(done)),
            Err(RunError::Shared(error)) => return Err((*error).into()),
            Err(failure) => failure,
        };
        let Some((wait, phase)) = failure.retry(&now, standby, &mut backoff, random) else {
            return Err(failure.into());
        };
        now = phase.clone();
        enter(phase);
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Opens the filter in Redis, or creates it.
pub(super) async fn open(config: &Config, wanted: &Wanted) -> Result<Opened, RunError> {
    let checked = preflight(&config.redis.url, &wanted.needs()).await;
    checked.map_err(RunError::Preflight)?;
    let mut link = connect(config).await?;
    let opened = wanted.open(&mut link).await?;
    let (key, growth) = (&config.filter.key, BinaryBytes(opened.growth));
    if opened.definition.spec.parameters.is_exact() {
        info!(
            "the filter is the set {key} in Redis: it takes 88 to 104 bytes for each fingerprint"
        );
    } else if opened.growth == 0 {
        info!("the filter {key} is in Redis, and already has its full size");
    } else {
        info!("the filter {key} is in Redis, and can grow there by up to {growth}");
    }
    Ok(opened)
}

/// Takes the lease of the crawl. If a run that `folder` records still has the lease, takes it from
/// that run. The lock of the folder proves that the recorded runs have ended.
pub(super) async fn lease(config: &Config, folder: Option<&mut Folder>) -> anyhow::Result<Leased> {
    let run = RandomId::random();
    let dead = folder.map(|folder| folder.announce(run)).transpose()?.unwrap_or_default();
    let (link, protocol) = (connect(config).await?, Arc::new(config.protocol()));
    let holder = LeaseHolder::this(&config.crawl_name());
    Ok(Leased::take(link, protocol, &holder, run, &dead).await?)
}

/// Publishes the partition table of a crawl, or only checks that it could be published.
pub(super) async fn publish(config: &Config, is_check: bool) -> Result<(), RunError> {
    let mut link = connect(config).await?;
    let published = config.partition_table().publish(&mut link, &config.keys(), is_check).await;
    Ok(published?)
}

/// Opens the filter in `folder` with the given settings. Fails if the spec of the folder differs
/// from the spec in `keeping`.
pub(super) fn kept(
    folder: Folder,
    mut keeping: Keeping,
    items: Options,
    threads: Threads,
) -> anyhow::Result<Local> {
    if let Err(differences) = keeping.spec.check(folder.header()) {
        return Err(mismatch(folder.dir(), &differences));
    }
    continuing(&mut keeping, folder.header());
    let engine = engine(&mut keeping.spec.filter.parameters, items, threads)?;
    Ok(Local::kept(engine, folder, keeping))
}

/// Returns the spec of the filter in the folder `dir`, which has this header.
pub(super) fn spec_of<'a>(
    header: Option<&'a Header>,
    dir: &Path,
) -> anyhow::Result<&'a StorageSpec> {
    let new = || anyhow!("the storage folder {} is new: it holds no filter", dir.display());
    header.map(|header| &header.spec).ok_or_else(new)
}

/// Sets the parameters that a filter has from the folder with this header, such as its seed.
pub(super) fn continuing(keeping: &mut Keeping, header: Option<&Header>) {
    let parameters = &mut keeping.spec.filter.parameters;
    if let Some(header) = header {
        *parameters = parameters.continuing(&header.spec.filter.parameters);
    }
}

/// Returns a warning if the archive in a folder lacks fingerprints, or is switched off.
pub(super) fn archive_warning(config: &Config, folder: &Folder) -> io::Result<Option<String>> {
    if folder.header().is_none() {
        return Ok(None);
    }
    let (archive, dir) = (folder.archive()?, config.storage.dir.display());
    Ok(match (config.storage.archive, archive.lacks_before) {
        (true, Some(from)) => Some(format!(
            "the archive in {dir} lacks fingerprints from before {from}: they left the log while \
             storage.archive was false, or were never in the log. To export the archive anyway, \
             use urlseen export --archive with --partial"
        )),
        (false, _) if archive.parts > 0 => Some(format!(
            "storage.archive is false, and {dir} has an archive: it will lack the fingerprints \
             that leave the log from now on. Set storage.archive = true to continue the archive, \
             or delete its files archive-*"
        )),
        _ => None,
    })
}

/// Returns the configured storage settings of a crawl's filter.
pub(super) fn keeping(config: &Config) -> Result<Keeping, SpecError> {
    let Config { storage, .. } = config;
    Ok(Keeping {
        spec: StorageSpec { crawl: config.crawl_name(), filter: config.filter_spec()? },
        policy: StoragePolicy {
            fsync: storage.fsync,
            snapshot_bytes: storage.snapshot_bytes,
            horizon_bytes: storage.horizon_bytes,
            archive: Some(storage.archive),
        },
        emit_again: storage.on_rollback == Rollback::EmitAgain,
    })
}

/// Returns the configured crawl, for reading its keys.
pub(super) fn crawl(config: &Config) -> Crawl<'_> {
    Crawl { address: &config.redis.url, list: config.list(), batch: config.source.batch }
}

/// Returns the configured options for reading items.
pub(super) fn items(config: &Config) -> Options {
    Options {
        emit: config.sink.emit,
        scored: config.open_sink().is_scored(),
        pass: config.rules.pass.clone(),
        drop: config.rules.drop.clone(),
        expire: config.rules.expire.clone(),
        limits: config.rules.limits.clone(),
        partition: config.partition,
        item_bytes: config.source.item_bytes,
        ..Options::new(config.source.item.into(), config.fingerprint_spec())
    }
}

/// Returns a reader of items to forget.
pub(super) fn forgets(config: &Config) -> Reader {
    let Options { fingerprint, partition, .. } = items(config);
    Reader::new(Options { partition, ..Options::new(lenient_form(config), fingerprint) })
}

/// Returns the form for reading items that a user gives: the form of the source. If that form is
/// `tab`, a fingerprint without a payload is valid too.
pub(super) fn lenient_form(config: &Config) -> Form {
    match config.source.item {
        ItemForm::Tab => ItemForm::Auto,
        form => form,
    }
    .into()
}

/// Error for a command that the options, the configuration or the state of the filter forbid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(String);

/// Makes a [`UsageError`] with the given words.
pub(super) fn usage(words: impl Into<String>) -> anyhow::Error {
    UsageError(words.into()).into()
}

/// Fails with a [`UsageError`] of the given words if a condition holds.
macro_rules! refuse_if {
    ($condition:expr, $($words:tt)+) => {
        if $condition {
            return Err(usage(format!($($words)+)));
        }
    };
}

pub(super) use refuse_if;

/// Returns the error for a storage folder whose spec differs from the wanted spec.
pub(super) fn mismatch(folder: &Path, differences: &[Difference]) -> anyhow::Error {
    let lines: Vec<String> = differences.iter().map(|it| format!("\n  {it}")).collect();
    let (folder, lines) = (folder.display(), lines.concat());
    usage(format!("the storage folder {folder} was made for something else:{lines}"))
}
