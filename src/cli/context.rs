//! Runtime of the process, its connections to Redis, and work on the partitions of a crawl.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::OnceLock;

use clap::error::ErrorKind;
use tokio::runtime::{Builder, Runtime};
use urlseen_core::redis::connect;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{Opened, Wanted};
use urlseen_engine::config::Config;

use super::Outcome;
use crate::admin::printable::{printable, say, stderr, stdout};

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
pub(super) async fn find(config: &Config, wanted: &Wanted) -> anyhow::Result<(Link, Opened)> {
    let mut link = connect(config).await?;
    let opened = wanted.find(&mut link).await?;
    Ok((link, opened))
}

/// Does the work for each partition, in order. Names each partition on standard error, if there are
/// several. If the work fails for a partition of a crawl with several ones, prints the failure and
/// goes on with the others. Returns the gravest of all outcomes.
///
/// # Errors
/// The work for the only partition fails, or the program that reads the output has closed it.
pub(super) fn each_partition(
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
