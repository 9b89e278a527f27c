//! `urlseen held`: lists and requeues requests that consumers popped and have not acknowledged.

use anyhow::Error;
use redis::Cmd;
use urlseen_redis::connect::server_time;
use urlseen_redis::protocol::{HeldCalls, HeldRequest, Reclaimer, Requeued, Stopped};

use crate::cli::prelude::*;

/// Show the requests that consumers hold, and requeue the requests of stopped consumers.
///
/// A consumer holds a request from the time it pops it until it acknowledges it. The commands
/// need Redis, but no running daemon.
///
/// Examples:
/// ```text
/// urlseen held list     # consumers and their requests
/// urlseen held requeue  # requests of stopped consumers
/// ```
#[derive(Debug, clap::Subcommand)]
pub(super) enum HeldCommand {
    List(HeldListArgs),
    /// Put the requests of stopped consumers back into the sink.
    ///
    /// Without a name, the command watches the heartbeats during one `held.timeout`. After that
    /// time, it requeues the requests of each consumer whose heartbeat did not change. With names,
    /// the command requeues the requests of the named consumers at once. If a named consumer still
    /// runs, crawlers fetch its pages twice.
    ///
    /// Examples:
    /// ```text
    /// urlseen held requeue                # requests of stopped consumers
    /// urlseen held requeue spider-1#4f2a  # requests of one consumer, at once
    /// ```
    Requeue {
        #[command(flatten)]
        settings: Settings,
        /// Name of a stopped consumer, as `urlseen held list` prints it. Default: all stopped
        /// consumers
        #[arg(value_name = "CONSUMER")]
        consumers: Vec<String>,
    },
}

/// Show each consumer, its heartbeat and the number of requests that it holds.
///
/// Examples:
/// ```text
/// urlseen held list --requests
/// urlseen held list --json --config news.toml
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct HeldListArgs {
    #[command(flatten)]
    settings: Settings,
    /// Show each held request, too
    #[arg(long)]
    requests: bool,
    /// With `--requests`: print the bytes of each request, in place of method, URL, priority
    /// and callback
    #[arg(long, requires = "requests")]
    raw: bool,
    /// Print a JSON object for each consumer, with its requests
    #[arg(long)]
    json: bool,
}

/// Minimum of a heartbeat that is a time: a day of the year 2001.
const FIRST: Duration = Duration::from_secs(1_000_000_000);

/// Time that rounds a time up to whole seconds.
const ALMOST_A_SECOND: Duration = Duration::from_millis(999);

/// Builder of the commands for held requests, and the connection for these commands.
struct HeldSession {
    calls: HeldCalls,
    link: Link,
}

pub(super) fn run(command: &HeldCommand) -> anyhow::Result<Outcome> {
    let (HeldCommand::List(HeldListArgs { settings, .. }) | HeldCommand::Requeue { settings, .. }) =
        command;
    each_crawl(settings.load_all()?, |config| {
        let (calls, timeout) = (HeldCalls::new(config.crawl_record()), config.held.timeout);
        runtime()?.block_on(async {
            let mut session = HeldSession { calls, link: connect(&config).await? };
            match command {
                HeldCommand::List(args) => session.list(args, timeout).await,
                HeldCommand::Requeue { consumers, .. } => {
                    let back = HumanCount(session.requeue_all(consumers, timeout).await?);
                    done(format_args!("{back} requests are back in {}", config.sink.key))
                }
            }
        })
    })
}

impl HeldSession {
    async fn list(&mut self, args: &HeldListArgs, timeout: Duration) -> anyhow::Result<Outcome> {
        let mut out = stdout();
        let heartbeats = self.heartbeats().await?;
        // This user may not be permitted to ask the server.
        let now = server_time(&mut self.link).await?.unwrap_or_else(SystemTime::now);
        if heartbeats.is_empty() && !args.json {
            writeln!(out, "no consumer holds requests")?;
        }
        for (consumer, heartbeat) in heartbeats {
            let key = self.calls.keys.held(&consumer);
            let reply = self.link.call(&Cmd::hgetall(&key)).await.map_err(Error::from);
            let held = reply.and_then(|reply| Ok(HeldCalls::requests(reply)?));
            let mut held =
                held.with_context(|| format!("cannot read the held requests at {key}"))?;
            held.sort_by_key(|request| request.delivery.parse::<u64>().ok());
            let (age, state) = state(&heartbeat, now, timeout);
            let stopped = Stopped { consumer, heartbeat };
            if let Some(words) = self.calls.foreign(&stopped, &Requeued::Alive) {
                say(format_args!("urlseen: {words}"));
            }
            let Stopped { consumer, heartbeat } = stopped;
            if held.is_empty() && consumer.contains(char::REPLACEMENT_CHARACTER) {
                continue;
            }
            if args.json {
                let age = age.map(|age| age.as_secs_f64());
                let held: Vec<_> = held.iter().map(to_json).collect();
                let line = json!({
                    "consumer": consumer, "heartbeat": heartbeat, "heartbeat_age_seconds": age,
                    "state": state, "held": held
                });
                writeln!(out, "{line}")?;
                continue;
            }
            let name = printable(consumer.as_bytes(), None);
            let count = HumanCount(held.len() as u64);
            let age = age.map_or(String::new(), |age| format!("heartbeat {} ago: ", seconds(age)));
            writeln!(out, "{name}: {count} held, {age}{state}")?;
            for request in held.iter().filter(|_| args.requests) {
                let HeldRequest { delivery, item, is_readable, .. } = request;
                let text = if args.raw { item[..].into() } else { ItemSummary::of(item).text };
                let item = printable(&text, Some(200));
                if *is_readable {
                    writeln!(out, "  delivery {delivery}: {item}")?;
                } else {
                    let why = "is not of the form SCORE COUNT ITEM: another program wrote it";
                    writeln!(out, "  the field {delivery:?} of {key} {why}: {item}")?;
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Requeues the requests of the named consumers. Without a name, requeues the requests of all
    /// consumers whose heartbeat does not change during `timeout`. Returns the number of requeued
    /// requests.
    async fn requeue_all(&mut self, names: &[String], timeout: Duration) -> anyhow::Result<u64> {
        // The user says that a named consumer has stopped, so its heartbeat does not count.
        let named = |it: &String| Stopped { consumer: it.clone(), heartbeat: String::new() };
        let stopped = match names {
            [] => self.stopped(timeout).await?,
            names => names.iter().map(named).collect(),
        };
        let mut back = 0;
        for stopped in &stopped {
            back += self.requeue(stopped).await?;
        }
        Ok(back)
    }

    async fn heartbeats(&mut self) -> anyhow::Result<Vec<(String, String)>> {
        let reply = self.link.call(&Cmd::hgetall(&self.calls.keys.consumers)).await?;
        HeldCalls::heartbeats(reply).context("cannot read the reply with the consumers")
    }

    /// Watches the heartbeats during `timeout`. Returns the consumers whose heartbeat did not
    /// change.
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

    /// Requeues the requests of a consumer, and rejects requests that were delivered too often.
    /// Returns the number of requeued requests.
    async fn requeue(&mut self, stopped: &Stopped) -> anyhow::Result<u64> {
        let Stopped { consumer, heartbeat } = stopped;
        let requeue = self.calls.requeue(consumer, heartbeat, &[]).by_text();
        let reply = self.link.call(&requeue).await?;
        let reply = HeldCalls::requeued(reply).context("cannot read the reply to the requeue")?;
        if let Some(words) = self.calls.foreign(stopped, &reply) {
            say(format_args!("urlseen: {words}"));
        }
        let Requeued::Done { put_back, too_often } = reply else { return Ok(0) };
        for too_often in too_often {
            let reject = self.calls.reject_too_often(consumer, &too_often).by_text();
            self.link.call(&reject).await?;
            let reason = too_often.reason(consumer);
            say(format_args!("urlseen: a request that {consumer:?} held is rejected: {reason}"));
        }
        Ok(put_back)
    }
}

/// Returns the age of a heartbeat, and the state of its consumer. A heartbeat is a time, as the
/// scripts write it, or a number of another program.
fn state(heartbeat: &str, now: SystemTime, timeout: Duration) -> (Option<Duration>, String) {
    let beat = heartbeat.parse().ok().map(Duration::from_millis);
    let Some(beat) = beat.filter(|&beat| beat >= FIRST) else {
        return (
            None,
            format!("the heartbeat {heartbeat:?} has no time: urlseen did not write it"),
        );
    };
    let age = now.duration_since(SystemTime::UNIX_EPOCH + beat).unwrap_or_default();
    // A consumer sends four heartbeats in each time-out.
    let state = if age <= timeout / 3 {
        "alive".to_owned()
    } else if age < timeout {
        format!("stopped, requeued in {}", seconds(timeout.saturating_sub(age) + ALMOST_A_SECOND))
    } else {
        let timeout = seconds(timeout);
        format!(
            "stopped, requeued once the daemon or an idle consumer has watched it for {timeout}"
        )
    };
    (Some(age), state)
}

/// Formats a time, in seconds if it is short.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        _ => span(time.as_secs_f64()),
    }
}

fn to_json(HeldRequest { delivery, count, item, .. }: &HeldRequest) -> Value {
    let mut json = json!({ "delivery": delivery, "deliveries_before": count });
    match str::from_utf8(item) {
        Ok(text) => json["item"] = text.into(),
        Err(_) => json["item_base64"] = STANDARD.encode(item).into(),
    }
    if let Some(url) = ItemSummary::of(item).url {
        json["url"] = url.into();
    }
    json
}
