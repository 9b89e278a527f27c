//! `urlseen status`: state and counts of a daemon.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use crate::admin::printable::{json_text, printable, say, stdout};
use crate::admin::{
    AdminClient, Archive, Asked, ClientError, Counts, FilterStatus, Lists, Passed, Status, Storage,
};
use indicatif::{BinaryBytes, HumanCount};
use serde_json::Value;

use super::Outcome;
use super::context::{Context, runtime};
use super::settings::{Folder, Place};
use super::storage::{self, CrawlInRedis};

/// Show the state of a daemon: its phase, its counts, and the fill of the filter.
///
/// Asks the daemon that works on the storage folder, through the socket there. If no daemon does,
/// it prints the contents of the folder, as `urlseen storage show` does. For a filter in Redis it
/// prints what Redis records. The daemon's `admin.listen` then has the daemon's own state.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen status
  urlseen status --storage storage/news --json")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    folder: Folder,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let folder = match args.folder.place()? {
        Place::Folder(folder) => folder,
        Place::Redis(config) => {
            return CrawlInRedis::new(Context::new(*config)?)?.show(args.json);
        }
    };
    let runtime = runtime()?;
    let status = runtime.block_on(async { AdminClient::new(&folder)?.status::<Value>().await });
    let status = match status {
        Err(ClientError::NoDaemon { .. }) if folder.is_dir() => {
            say("urlseen: no daemon is running on it; this is what the storage folder holds");
            return storage::show(&folder, args.json);
        }
        other => other?,
    };
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", json_text(&format!("{status:#}")))?;
    } else {
        let status = serde_json::from_value(status).map_err(ClientError::Nonsense)?;
        print(&status, SystemTime::now(), &mut out)?;
    }
    Ok(Outcome::Done)
}

/// Prints the table of a status.
fn print(status: &Status, now: SystemTime, out: &mut impl Write) -> io::Result<()> {
    let Status {
        crawl,
        version,
        pid,
        since,
        phase,
        redis,
        head,
        lease_seconds,
        counts,
        passed,
        asked,
        lists,
        filter,
        storage,
    } = status;
    let mut rows = StatusRows { out };
    rows.row("crawl", crawl)?;
    rows.row("phase", phase)?;
    rows.row("process", format!("{pid}, urlseen {version}, for {}", age(*since, now)))?;
    rows.row("redis", redis)?;
    if let Some(head) = head {
        rows.row("batch", format!("{} ({})", HumanCount(head.seq), head.commit_id))?;
    }
    if let Some(seconds) = lease_seconds {
        rows.row("lease", format!("held for {seconds:.0} s unless it is renewed"))?;
    }
    rows.lists(lists)?;
    rows.counts(counts, passed)?;
    rows.asked(asked)?;
    if let Some(filter) = filter {
        rows.filter(filter)?;
    }
    if let Some(storage) = storage {
        rows.storage(storage, now)?;
    }
    Ok(())
}

struct StatusRows<'a, W> {
    out: &'a mut W,
}

impl<W: Write> StatusRows<'_, W> {
    /// Prints a row with a name and a text.
    fn row(&mut self, name: &str, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{name:<12} {}", printable(text.to_string().as_bytes(), None))
    }

    /// Prints a row with a name, a number and what the number counts.
    fn number(&mut self, name: &str, number: u64, what: &str) -> io::Result<()> {
        self.row(name, format!("{:>15}   {what}", HumanCount(number).to_string()))
    }

    fn lists(&mut self, lists: &Lists) -> io::Result<()> {
        let Lists { source, processing, sink, rejected } = *lists;
        for (name, length, what) in [
            ("source", source, "items wait to be claimed"),
            ("processing", processing, "items are claimed and not committed"),
            ("sink", sink, "unseen items wait for crawlers"),
            ("rejects", rejected, "items could not be read and wait for people"),
        ] {
            if let Some(length) = length {
                self.number(name, length, what)?;
            }
        }
        Ok(())
    }

    fn counts(&mut self, counts: &Counts, passed: &[Passed]) -> io::Result<()> {
        self.number("items", counts.items(), "committed since the start; of these")?;
        let Counts { unseen, seen, unfiltered, rejected, batches, .. } = *counts;
        self.number("  unseen", unseen, "pushed on")?;
        self.number("  seen", seen, "dropped")?;
        self.number("  unfiltered", unfiltered, "pushed on as they asked (dont_filter)")?;
        for Passed { rule, items } in passed {
            self.number("", *items, &format!("of these by the rule {rule:?}"))?;
        }
        self.number("  rejected", rejected, "not readable")?;
        self.number("batches", batches, "committed since the start")?;
        for (count, event) in counts.events() {
            self.number("", count, event)?;
        }
        Ok(())
    }

    /// Prints the counts of questions, if there were any.
    fn asked(&mut self, asked: &Asked) -> io::Result<()> {
        let Asked { seen, unseen, full, forgotten } = *asked;
        if *asked == Asked::default() {
            return Ok(());
        }
        self.number("asked", seen + unseen + full + forgotten, "since the start; of these")?;
        for (name, number, what) in [
            ("  seen", seen, "answered so"),
            ("  unseen", unseen, "answered so, and seen since if they were to be added"),
            ("  full", full, "not done: there was no room"),
            ("  forgotten", forgotten, "to pass once more"),
        ] {
            if number > 0 {
                self.number(name, number, what)?;
            }
        }
        Ok(())
    }

    fn filter(&mut self, filter: &FilterStatus) -> io::Result<()> {
        let FilterStatus { keys, capacity, fill, error_rate, bytes, forgotten } = *filter;
        let what = format!(
            "fingerprints, {:.1} % of {}; error rate now {error_rate:.1e}; {}",
            100.0 * fill,
            HumanCount(capacity),
            BinaryBytes(bytes)
        );
        self.number("filter", keys, &what)?;
        if forgotten > 0 {
            self.number("", forgotten, "of these are to pass once more")?;
        }
        Ok(())
    }

    fn storage(&mut self, storage: &Storage, now: SystemTime) -> io::Result<()> {
        let Storage { dir, fsync, snapshots, last_snapshot, log_bytes, archive, .. } = storage;
        let last = last_snapshot
            .map_or_else(String::new, |last| format!(", the last one {} ago", age(last, now)));
        self.row(
            "storage",
            format!(
                "{}: snapshots: {snapshots}{last}; log: {}, fsync = {fsync}",
                dir.display(),
                BinaryBytes(*log_bytes)
            ),
        )?;
        let Some(Archive { bytes, is_whole }) = archive else { return Ok(()) };
        let extent = if *is_whole { "with the log it is complete" } else { "it is not complete" };
        self.row("archive", format!("{}; {extent}", BinaryBytes(*bytes)))
    }
}

/// Returns the time from `then` to `now`, to the second.
fn age(then: SystemTime, now: SystemTime) -> impl Display {
    let age = now.duration_since(then).unwrap_or_default();
    humantime::format_duration(Duration::from_secs(age.as_secs()))
}
