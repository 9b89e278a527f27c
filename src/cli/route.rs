//! `urlseen route`: moves the items of a list to the partitions.

use tokio::sync::watch;

use crate::admin::Sample;
use crate::cli::prelude::*;
use crate::config::is_address;
use crate::report::RouteStatus;
use crate::route::Router;

/// Move items from a list to the partitions of the crawl.
///
/// A crawl with several partitions (`partitions.count`) has a source for each of them. A producer
/// that cannot compute the partition of an item pushes the item to the list `source.key`, and this
/// command pushes it to the source of its partition. Several producers may use the same list. One
/// process moves its items at a time.
///
/// If the command is killed, or a connection breaks, it pushes some items again. The partitions
/// drop the repeats, but pass those of items without a fingerprint (`dont_filter`).
///
/// Examples:
/// ```text
/// urlseen route                     # until Ctrl-C
/// urlseen route --list demo:queue   # moves another list of the same crawl
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct RouteArgs {
    #[command(flatten)]
    settings: Settings,
    /// The list to move. Default: source.key of the configuration
    #[arg(long, value_name = "KEY")]
    list: Option<String>,
    /// Address (host:port) of the admin endpoint of this process: metrics, status and health.
    /// Default: none, because admin.listen is the address of the daemon
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Option<String>,
    /// End when the list is empty
    #[arg(long)]
    drain: bool,
    /// Wait while another process moves the list, and then take over
    #[arg(long)]
    standby: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
}

fn parse_address(text: &str) -> Result<String, &'static str> {
    let address = is_address(text).then(|| text.to_owned());
    address.ok_or("write host:port, as in 127.0.0.1:9091")
}

/// Router, as the admin endpoint sees it.
impl View for watch::Receiver<RouteStatus> {
    fn samples(&self, _after: u64) -> Vec<Sample> {
        Vec::new()
    }

    fn status(&self) -> Statuses {
        Statuses::Route(Box::new(self.borrow().clone()))
    }

    fn check(&self, _: &[Vec<u8>]) -> Result<Vec<Checked>, String> {
        Err("a router has no filter: ask the daemon of the partition".to_owned())
    }
}

pub(super) fn run(args: &RouteArgs) -> anyhow::Result<Outcome> {
    let config = args.settings.load_crawl()?;
    refuse_if!(
        config.partitions.count.get() == 1,
        "the crawl has one partition (partitions.count), whose source producers can use directly: \
         there is nothing to route"
    );
    if config.source.kind != SourceKind::List {
        return Err(usage("only a list can be routed: set source.kind = \"list\""));
    }
    if let Some((list, name)) = args.list.as_ref().and_then(|it| Some((it, config.use_of(it)?))) {
        return Err(usage(format!(
            "--list is {list}, which is {name} of the crawl: its items would be tested again, and \
             dropped as seen. Name a list of discovered items"
        )));
    }
    let console = Console::new();
    console.log(config.log.level, config.log.format);
    let Some(status) = runtime()?.block_on(work(args, &config))? else { return Ok(Outcome::Done) };
    let json = args.json.then(|| {
        let pushed: Vec<u64> = status.partitions.iter().map(|it| it.pushed).collect();
        json!({ "routed": status.routed, "pushed": pushed }).to_string()
    });
    answer(json, |mut out| {
        let items = if status.routed == 1 { "item" } else { "items" };
        writeln!(out, "{} {items} moved to the partitions", status.routed)
    })
}

/// Routes until the end. Returns `None` if the process was told to stop before it began.
async fn work(args: &RouteArgs, config: &Config) -> anyhow::Result<Option<RouteStatus>> {
    let mut stop = shutdown::listen().context("cannot listen for signals")?;
    let list = args.list.as_ref().unwrap_or(&config.source.key);
    let mut router = Router::new(config, list, start::items(config), stop.clone());
    (router.drain, router.standby) = (args.drain, args.standby);
    let live = router.watch();
    let view = Arc::new(live.clone());
    let admin = start::admin(args.listen.as_ref(), config, view, &stop)?;
    let publish = async || start::publish(config, false).await;
    let enter = |phase| {
        router.enter(phase);
    };
    if start::until(&mut stop, args.standby, enter, publish).await?.is_none() {
        return Ok(None);
    }
    tokio::select! {
        ended = router.run() => drop(ended?),
        () = admin.ended() => return Err(RunError::Ended("the admin endpoint").into()),
    }
    let status = live.borrow().clone();
    Ok(Some(status))
}
