//! `urlseen config check`: makes the checks of a daemon's start, and starts nothing.

use std::net::TcpListener;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use urlseen_engine::engine::store::CrawlPosition;
use urlseen_redis::limits::ServerLimits;
use urlseen_storage::OpenError;

use crate::cli::prelude::*;
use crate::cli::run::{chosen, machine};

/// Check everything that `urlseen run` checks at its start, and start nothing.
///
/// The command checks the configuration, the memory, the storage folder, the addresses to listen
/// on, the Redis server with its keys and permissions, and whether the filter fits the crawl in
/// Redis. It changes nothing, and works also while a daemon runs the crawl. All problems are
/// printed at once. Use it before you restart a daemon, and as `ExecStartPre` of a systemd unit.
///
/// With `--offline`, the command checks only the configuration, for tests in CI.
///
/// Examples:
/// ```text
/// urlseen config check
/// urlseen config check --offline --config news.toml  # without Redis, in CI
/// ```
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status:
  0  no problem was found
  2  the configuration is wrong, or does not fit the filter
  3  the server, the storage folder or the machine has a problem")]
pub(in crate::cli) struct ConfigCheckArgs {
    #[command(flatten)]
    settings: Settings,
    /// Check only the configuration, and not the server, the storage folder and this machine
    #[arg(long)]
    offline: bool,
}

pub(super) fn run(args: &ConfigCheckArgs) -> anyhow::Result<Outcome> {
    let sources = args.settings.layers.sources(&[]);
    let crawl = Config::load_for(sources, if args.offline { Config::divided } else { machine })?;
    if args.offline {
        let mut findings = Findings::default();
        for config in args.settings.crawls_of(&crawl)?.iter().take(1) {
            findings.note("filter", filter(config))?;
        }
        return Ok(findings.end());
    }
    let mut is_running = false;
    if crawl.partitions.count.get() > 1 {
        let mut findings = Findings::default();
        let fits = runtime()?.block_on(start::publish(&crawl, true)).map_err(anyhow::Error::from);
        let fits = findings.note("partitions", fits.map(|()| ((), crawl.partitions.count)))?;
        // Each partition would have the same problem.
        if fits.is_none() {
            return Ok(findings.end());
        }
    }
    let chosen = chosen(&args.settings, &crawl)?;
    let each = each_crawl(chosen, |config| {
        let mut findings = Findings::default();
        is_running |= runtime()?.block_on(check(&config, &mut findings))?;
        Ok(findings.end())
    })?;
    let mut findings = Findings::default();
    if !is_running {
        addresses(&crawl, &mut findings)?;
    }
    Ok(each.max(findings.end()))
}

/// Checks a partition. Returns true if a daemon runs it.
async fn check(config: &Config, findings: &mut Findings) -> io::Result<bool> {
    let is_local = config.filter.place == FilterPlace::Local;
    let fits = findings.note("filter", filter(config))?.is_some();
    let folder = if is_local && fits { findings.note("storage", storage(config))? } else { None };
    let mut is_running = matches!(folder, Some(Storage::InUse));
    if config.source.kind != SourceKind::None
        && let Some(link) = findings.note("redis", server(config).await)?
    {
        let crawl = findings.note("crawl", crawl(config, link, folder.as_ref()).await)?;
        is_running |= crawl.unwrap_or(false);
    }
    Ok(is_running)
}

/// Checks that a filter of the configured kind and size can exist.
fn filter(config: &Config) -> anyhow::Result<((), String)> {
    let parameters = config.filter_spec()?.parameters;
    let described = settings::described(&parameters);
    if config.filter.place == FilterPlace::Redis {
        config.redis_filter()?;
        return Ok(((), described));
    }
    let warning = settings::outgrown(&parameters).map(|warning| format!(". {warning}"));
    Ok(((), described + &warning.unwrap_or_default()))
}

/// State of a storage folder.
enum Storage {
    /// Missing folder, which a run makes.
    Missing,
    /// Folder that no process writes to.
    AtRest(AtRest),
    /// Folder that another process writes to.
    InUse,
}

/// Checks that this process can use the storage folder, that the folder has the configured filter,
/// and that the filter fits into the memory.
fn storage(config: &Config) -> anyhow::Result<(Storage, String)> {
    let (dir, mut keeping) = (&config.storage.dir, start::keeping(config)?);
    let shown = dir.display();
    writable(dir).map_err(|reason| OpenError::Io { dir: dir.clone(), reason })?;
    if !dir.exists() {
        keeping.spec.filter.parameters.check_memory()?;
        return Ok((Storage::Missing, format!("{shown}, which urlseen run makes")));
    }
    let (folder, beside) = AtRest::open_beside(dir)?;
    keeping.spec.check(folder.header()).map_err(|all| start::mismatch(dir, &all))?;
    if let Some(beside) = beside {
        let by = beside.holder.map_or_else(|| "another process".to_owned(), |it| it.to_string());
        return Ok((Storage::InUse, format!("{shown}, in use by {by}: its log was not checked")));
    }
    start::continuing(&mut keeping, folder.header());
    keeping.spec.filter.parameters.check_memory()?;
    Ok((Storage::AtRest(folder), shown.to_string()))
}

/// Checks that this process may write to a folder, or make it. Leaves no folder behind.
fn writable(dir: &Path) -> io::Result<()> {
    let parents = dir.ancestors().map(|it| if it == Path::new("") { Path::new(".") } else { it });
    let nearest = parents.into_iter().find(|it| it.exists()).unwrap_or(Path::new("/"));
    if !nearest.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, nearest, needed, AtFlags::EACCESS)?;
    if nearest != dir {
        // Some file systems, such as that of /proc, take no new folders.
        let trial = nearest.join(format!(".urlseen-{}", std::process::id()));
        fs::create_dir(&trial)?;
        fs::remove_dir(trial)?;
    }
    Ok(())
}

/// Checks the Redis server, the types of its keys, and the permissions.
async fn server(config: &Config) -> anyhow::Result<(Link, String)> {
    let mut protocol = config.protocol();
    let mut needs = protocol.needs();
    if config.filter.place == FilterPlace::Redis {
        let wanted = config.redis_filter()?;
        protocol = protocol.with_filter(Arc::new(wanted.filter(Seed::new(0))?));
        needs = wanted.needs();
        needs.extend(protocol.needs());
    }
    let address = &config.redis.url;
    let facts = preflight(address, &needs).await;
    let (facts, mut link) = (facts.map_err(RunError::Preflight)?, connect(config).await?);
    ServerLimits::ask(&mut link).await?.check(config.source.item_bytes)?;
    Ok((link, format!("{facts} at {address}")))
}

/// Checks that the filter can continue the crawl. Returns true if a daemon runs the crawl.
async fn crawl(
    config: &Config,
    mut link: Link,
    folder: Option<&Storage>,
) -> anyhow::Result<(bool, String)> {
    let protocol = config.protocol();
    let crawl_state = protocol.peek(&mut link).await?;
    let position = CrawlPosition { head: crawl_state.head, filter: crawl_state.filter };
    let (dir, emit_again) = (&config.storage.dir, start::keeping(config)?.emit_again);
    match folder {
        Some(Storage::AtRest(folder)) => position.check_folder(dir, folder, emit_again)?,
        Some(Storage::Missing) => position.check_header(dir, None, emit_again)?,
        Some(Storage::InUse) | None => {}
    }
    if config.filter.place == FilterPlace::Redis
        && let Some(opened) = config.redis_filter()?.rehearse(&mut link).await?
    {
        position.check_redis_filter(opened.definition.id)?;
    }
    let (head, holder) = protocol.look(&mut link).await?;
    let at = head.map_or_else(|| "new".to_owned(), |head| format!("at {head}"));
    let by = holder.as_ref().map_or_else(|| "no daemon".to_owned(), ToString::to_string);
    Ok((holder.is_some(), format!("{}, {at}, run by {by}", config.crawl_name())))
}

/// Checks that this process can listen at the configured addresses.
fn addresses(config: &Config, findings: &mut Findings) -> io::Result<()> {
    let (serve, admin) = (&config.serve.listen, &config.admin.listen);
    for (key, address) in [("serve.listen", serve), ("admin.listen", admin)] {
        if let Some(address) = address {
            let bound = TcpListener::bind(address);
            let bound = bound.with_context(|| format!("{key}: cannot listen at {address}"));
            findings.note(key, bound.map(|_| ((), address)))?;
        }
    }
    Ok(())
}

/// Width of the names in the table, in columns.
const WIDTHS: [usize; 2] = [13, 0];

/// Results of the checks so far.
#[derive(Default)]
struct Findings {
    outcome: Outcome,
    problems: usize,
}

impl Findings {
    /// Prints the result of a check: a row of the table, or the problem on standard error. Returns
    /// the value if there is no problem.
    ///
    /// # Errors
    /// The program that reads the output has closed it.
    fn note<T>(
        &mut self,
        name: &str,
        result: anyhow::Result<(T, impl Display)>,
    ) -> io::Result<Option<T>> {
        match result {
            Ok((value, text)) => {
                Rows::new(stdout(), WIDTHS).row(name, text)?;
                Ok(Some(value))
            }
            Err(error) => {
                // If standard error fails, no other output is left for a message.
                let _ = writeln!(stderr(), "urlseen: {error:#}");
                self.problems += 1;
                self.outcome = self.outcome.max(Outcome::of(&error));
                Ok(None)
            }
        }
    }

    /// Prints the number of problems, if there are any. Returns the gravest result.
    fn end(self) -> Outcome {
        match self.problems {
            0 => {}
            1 => say("urlseen: 1 problem, nothing was started"),
            count => say(format_args!("urlseen: {count} problems, nothing was started")),
        }
        self.outcome
    }
}
