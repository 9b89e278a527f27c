//! `urlseen run`: the daemon, which moves unseen items from the source to the sink.

mod descriptors;
mod process;
mod progress;

use crate::cli::prelude::*;
use crate::pipeline::Ending;
use urlseen_fingerprint::Partition;

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
    let config = Config::load_for(args.settings.layers.sources(&[]), machine)?;
    let console = Console::new();
    console.log(config.log.level, config.log.format);
    refuse_if!(
        args.drain && config.source.kind == SourceKind::None,
        "--drain waits for an empty source, and source.kind is \"none\": leave out one of them"
    );
    let partitions = chosen(&args.settings, &config)?;
    descriptors::raise(&config, partitions.len())
        .context("cannot raise the limit on file descriptors")?;
    let ended = runtime()?.block_on(process::run(args, &config, partitions, &console))?;
    let Some(ended) = ended else {
        info!("the process was told to stop during standby");
        return Ok(Outcome::Done);
    };
    console.clear();
    ended.print(config.source.kind, args.json)?;
    Ok(if ended.ending == Ending::Full { Outcome::Failed } else { Outcome::Done })
}

/// Reports a configuration that this machine or the cluster does not permit.
pub(super) fn machine(config: &Config) -> Option<String> {
    match own_partitions(config) {
        Ok(own) => config.divided().or_else(|| descriptors::lacking(config, own.len())),
        Err(fault) => Some(fault),
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
        return settings.crawls_of(config);
    }
    let partitions = own_partitions(config).map_err(anyhow::Error::msg)?;
    Ok(partitions.into_iter().map(|partition| config.of_partition(partition)).collect())
}
