//! `urlseen held`: requests that consumers popped and have not acknowledged.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::admin::printable::{printable, say, stdout};
use crate::crawl::protocol::record;
use anyhow::Context as _;
use indicatif::HumanCount;
use redis::Value;
use serde::Serialize;
use urlseen_core::redis::held::{Calls, HeldRequest, Reclaimer, Requeued, Stopped};
use urlseen_core::redis::link::Link;
use urlseen_engine::config::Config;

use super::Outcome;
use super::context::Context;
use super::settings::Settings;

/// Show the requests that consumers hold, and requeue those of consumers that stopped.
///
/// Works with Redis alone; no daemon needs to run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen held list     # consumers and their requests
  urlseen held requeue  # requests of stopped consumers")]
pub(super) struct HeldArgs {
    #[command(subcommand)]
    command: HeldCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HeldCommand {
    List(HeldListArgs),
    Requeue(HeldRequeueArgs),
}

/// Show each consumer, its heartbeat and the number of requests that it holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen held list --requests
  urlseen held list --json --config news.toml")]
struct HeldListArgs {
    #[command(flatten)]
    settings: Settings,
    /// Show each request as well
    #[arg(long)]
    requests: bool,
    /// Print a JSON object for each consumer, with its requests
    #[arg(long)]
    json: bool,
}

/// Put the requests of consumers that stopped back into the sink.
///
/// Without a name, the command watches the heartbeats for held.timeout. It then requeues the
/// requests of consumers whose heartbeat did not change. With names, it requeues the requests of
/// these consumers at once. If one of them is still alive, its pages are fetched twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen held requeue                # those of stopped consumers
  urlseen held requeue spider-1#4f2a  # at once")]
struct HeldRequeueArgs {
    #[command(flatten)]
    settings: Settings,
    /// A consumer that has stopped, as `urlseen held list` shows it
    #[arg(value_name = "CONSUMER")]
    consumers: Vec<String>,
}

/// A consumer as `--json` prints it.
#[derive(Serialize)]
struct HeldLine<'a> {
    consumer: &'a str,
    heartbeat: &'a str,
    held: Vec<Request>,
}

/// A held request as `--json` prints it.
#[derive(Serialize)]
struct Request {
    delivery: String,
    deliveries_before: u64,
    item: String,
}

/// Calls for held requests, with the connection that they use.
struct HeldSession {
    calls: Calls,
    link: Link,
}

pub(super) fn run(args: &HeldArgs) -> anyhow::Result<Outcome> {
    let settings = match &args.command {
        HeldCommand::List(args) => &args.settings,
        HeldCommand::Requeue(args) => &args.settings,
    };
    let context = Context::load(settings)?;
    let config = &context.config;
    context.runtime.block_on(async {
        let calls = Calls::new(record(config, &config.keys()));
        let link = context.connect().await?;
        let session = HeldSession { calls, link };
        match &args.command {
            HeldCommand::List(args) => list(session, args).await,
            HeldCommand::Requeue(args) => requeue(session, args, config).await,
        }
    })
}

async fn list(mut session: HeldSession, args: &HeldListArgs) -> anyhow::Result<Outcome> {
    let mut out = stdout();
    let heartbeats = session.heartbeats().await?;
    if heartbeats.is_empty() && !args.json {
        writeln!(out, "no consumer holds requests")?;
    }
    for (consumer, heartbeat) in heartbeats {
        let held = session.requests(&consumer).await?;
        if args.json {
            let held = held.into_iter().map(Request::from).collect();
            let line = HeldLine { consumer: &consumer, heartbeat: &heartbeat, held };
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
            continue;
        }
        let name = printable(consumer.as_bytes(), None);
        let count = HumanCount(held.len() as u64);
        writeln!(out, "{name}: {count} held, heartbeat {heartbeat}")?;
        for request in held.iter().filter(|_| args.requests) {
            let item = printable(&request.item, Some(200));
            writeln!(out, "  delivery {}: {item}", request.delivery)?;
        }
    }
    Ok(Outcome::Done)
}

async fn requeue(
    mut session: HeldSession,
    args: &HeldRequeueArgs,
    config: &Config,
) -> anyhow::Result<Outcome> {
    let mut back = 0;
    if args.consumers.is_empty() {
        for stopped in session.stopped(config.held.timeout).await? {
            back += session.requeue(&stopped.consumer, &stopped.heartbeat).await?;
        }
    }
    for consumer in &args.consumers {
        // The user says that this consumer has stopped, so its heartbeat does not count.
        back += session.requeue(consumer, "").await?;
    }
    writeln!(stdout(), "{} requests are back in {}", HumanCount(back), config.sink.key)?;
    Ok(Outcome::Done)
}

impl HeldSession {
    async fn call(&mut self, command: &redis::Cmd) -> anyhow::Result<Value> {
        Ok(self.link.call(command).await?)
    }

    async fn heartbeats(&mut self) -> anyhow::Result<Vec<(String, String)>> {
        let reply = self.link.call(&self.calls.consumers()).await?;
        Calls::heartbeats(reply).context("the consumers cannot be read")
    }

    async fn requests(&mut self, consumer: &str) -> anyhow::Result<Vec<HeldRequest>> {
        let reply = self.link.call(&self.calls.held(consumer)).await?;
        Calls::requests(reply).context("the held requests cannot be read")
    }

    /// Returns the consumers whose heartbeat does not change for `timeout`.
    async fn stopped(&mut self, timeout: Duration) -> anyhow::Result<Vec<Stopped>> {
        let mut reclaimer = Reclaimer::new(timeout);
        loop {
            let heartbeats = self.heartbeats().await?;
            let stopped = reclaimer.observe(heartbeats, Instant::now());
            if reclaimer.has_watched_long_enough() {
                return Ok(stopped);
            }
            tokio::time::sleep(Reclaimer::interval(timeout)).await;
        }
    }

    /// Requeues the requests of a consumer, and rejects those that were delivered too often.
    /// Returns the number of requests that are back in the sink.
    async fn requeue(&mut self, consumer: &str, heartbeat: &str) -> anyhow::Result<u64> {
        let requeue = self.calls.requeue(consumer, heartbeat, &[]).by_text();
        let reply = self.call(&requeue).await?;
        let reply = Calls::requeued(reply).context("the requeue cannot be read")?;
        let Requeued::Done { put_back, too_often } = reply else { return Ok(0) };
        for too_often in too_often {
            let reject = self.calls.reject_too_often(consumer, &too_often).by_text();
            self.call(&reject).await?;
            let count = too_often.request.count + 1;
            say(format_args!(
                "urlseen: a request that {consumer:?} held is rejected: it was delivered {count} \
                 times and never finished"
            ));
        }
        Ok(put_back)
    }
}

impl From<HeldRequest> for Request {
    fn from(held: HeldRequest) -> Self {
        let HeldRequest { delivery, count, item, .. } = held;
        let item = String::from_utf8_lossy(&item).into_owned();
        Self { delivery, deliveries_before: count, item }
    }
}
