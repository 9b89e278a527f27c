//! `urlseen status`: shows the state and counts of a daemon.

use indicatif::HumanDuration;

use crate::analysis::lost_text;
use crate::cli::overview::{Speed, Speeds};
use crate::cli::prelude::*;
use crate::cli::{storage, watch};
use crate::report::{Asked, ClientsStatus, FilterStatus, GenerationsStatus, GroupCount, Lists};
use urlseen_storage::{ArchiveSize, Footprint};

/// Show the state of a daemon: its phase, its counts, and the fill of the filter.
///
/// The command asks the daemon that uses the storage folder, through the socket in the folder. If
/// no daemon runs, the command prints the contents of the folder, as `urlseen storage show` does.
/// If the filter is in Redis, the command prints the state that Redis records for the crawl. In
/// that case, only the endpoint at `admin.listen` has the state of the daemon.
///
/// If the crawl has several partitions, the command prints one line for each of them. With
/// `--partition`, it prints the whole state of one partition.
///
/// Examples:
/// ```text
/// urlseen status --watch
/// urlseen status --storage storage/news --json
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    folder: FolderOptions,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Draw the state again once a second until Ctrl-C, with the speed of the crawl and the newest
    /// rejects, drops and items over a limit
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print nothing, and end with status 3 if no daemon is running or if it has failed. Health
    /// checks of containers use this
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    health: bool,
}

pub(super) fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let all = args.folder.locate_all()?;
    if args.watch {
        return watch::watch(all);
    }
    if args.health {
        for config in &all {
            runtime()?.block_on(daemon_of(config, "--health")?.health())?;
        }
        return Ok(Outcome::Done);
    }
    if all[0].filter.place == FilterPlace::Redis {
        return each_crawl(all, |config| storage::show_in_redis(&config, args.json));
    }
    let mut found = Vec::new();
    for config in &all {
        let (number, folder) = (config.number(), &config.storage.dir);
        let asked = async { AdminClient::new(folder)?.status::<Status>().await };
        match runtime()?.block_on(asked) {
            Err(ClientError::NoDaemon { .. }) if all.len() > 1 => found.push((number, None)),
            Err(ClientError::NoDaemon { .. }) if folder.is_dir() => {
                say("urlseen: no daemon is running; this is what the storage folder holds");
                return storage::show(folder, args.json);
            }
            other => found.push((number, Some(other?))),
        }
    }
    let json = args.json.then(|| {
        let shown = |(number, status): &(u16, Option<Status>)| match status {
            Some(status) => json!(status),
            None => json!({ "partition": number }),
        };
        let mut shown: Vec<_> = found.iter().map(shown).collect();
        let one = if shown.len() == 1 { shown.pop() } else { None };
        format!("{:#}", one.unwrap_or_else(|| json!({ "partitions": shown })))
    });
    answer(json, |out| watch::print(&found, &mut Speeds::default(), out))
}

/// Prints the table of a status, with the speed of the crawl if it is known.
pub(super) fn print(status: &Status, speed: Option<Speed>, out: impl Write) -> io::Result<()> {
    let mut rows = Rows::new(out, CRAWL);
    rows.row("crawl", &status.crawl)?;
    rows.row("phase", &status.phase)?;
    lists(&mut rows, &status.lists)?;
    waiting(&mut rows, status.waiting_seconds, status.held)?;
    if let Some(speed) = speed {
        speed.print(&mut rows, status.lists.source.unwrap_or(0))?;
    }
    if let Some(filter) = &status.filter {
        self::filter(&mut rows, filter)?;
    }
    let since = "committed since the start";
    items(&mut rows, &status.counts, &status.rules, format!("{since}; of these"))?;
    rows.count("batches", status.counts.batches, since)?;
    if status.asked != Asked::default() {
        asked(&mut rows, &status.asked, "since the start; of these")?;
    }
    status.clients.as_ref().map_or(Ok(()), |clients| self::clients(&mut rows, clients))?;
    process(&mut rows, status)?;
    status.storage.as_ref().map_or(Ok(()), |storage| self::storage(&mut rows, storage))
}

/// Prints the process, its Redis, its last commit and its lease.
fn process(rows: &mut Rows<impl Write>, status: &Status) -> io::Result<()> {
    let Status { pid, version, since, redis, head, lease_seconds, .. } = status;
    rows.row("process", format!("{pid}, urlseen {version}, for {}", age(*since)))?;
    rows.row("redis", redis)?;
    if let Some(head) = head {
        rows.row("batch", format!("{} ({})", HumanCount(head.seq), head.commit_id))?;
    }
    if let Some(seconds) = lease_seconds {
        rows.row("lease", format!("held for {seconds:.0} s unless it is renewed"))?;
    }
    Ok(())
}

/// Prints the age of the oldest item, and the number of held requests, if they are known.
pub(super) fn waiting(
    rows: &mut Rows<impl Write>,
    seconds: Option<f64>,
    held: Option<HeldStatus>,
) -> io::Result<()> {
    if let Some(seconds) = seconds.filter(|&seconds| seconds > 0.0) {
        let age = format!("at most {}", span(seconds.ceil()));
        rows.number("waiting", age, "is the age of the oldest uncommitted item")?;
    }
    let Some(HeldStatus { consumers, requests }) = held else { return Ok(()) };
    rows.count("held", requests, format!("requests held at the last count; consumers: {consumers}"))
}

/// Age in seconds from which the length of the source is shown with its age.
pub(super) const STALE: u64 = 3;

/// Prints the known lengths of the lists.
pub(super) fn lists(rows: &mut Rows<impl Write>, lists: &Lists) -> io::Result<()> {
    let Lists { source, processing, sink, rejected, age_seconds } = *lists;
    let age = age_seconds.filter(|&age| age >= STALE);
    let aged =
        |words: &str| age.map_or_else(String::new, |age| format!(" (as of {words}{age} s ago)"));
    // Commits also tell the lengths of the sink and of the rejects.
    let (exact, most) = (aged(""), aged("at most "));
    for (name, length, what, age) in [
        ("source", source, "items wait to be claimed", &*exact),
        ("processing", processing, "items are claimed and not committed", ""),
        ("sink", sink, "unseen items wait for crawlers", &*most),
        ("rejects", rejected, "unreadable items wait for a decision", &*most),
    ] {
        if let Some(length) = length {
            rows.count(name, length, format_args!("{what}{age}"))?;
        }
    }
    Ok(())
}

/// Maximum number of groups over a limit that the table shows. The JSON has up to 100.
const GROUPS: usize = 10;

/// Prints the numbers of items by verdict, and unhealthy events. `what` says when the items were
/// committed.
pub(super) fn items(
    rows: &mut Rows<impl Write>,
    counts: &Counts,
    rules: &ByRule,
    what: impl Display,
) -> io::Result<()> {
    let ByRule { passed, dropped, over_limit, over_limit_by_group } = rules;
    rows.count("items", counts.items(), what)?;
    rows.count("  unseen", counts.unseen, "pushed to the sink")?;
    rows.count("  seen", counts.seen, "not pushed")?;
    rows.count("  unfiltered", counts.unfiltered, "pushed to the sink unchecked (dont_filter)")?;
    rows.by_rule(passed)?;
    if !dropped.is_empty() {
        rows.count("  dropped", counts.dropped, "by rules")?;
    }
    rows.by_rule(dropped)?;
    if !over_limit.is_empty() {
        rows.count("  over limit", counts.over_limit, "unseen, dropped by limits")?;
    }
    rows.by_rule(over_limit)?;
    for GroupCount { rule, group, items } in over_limit_by_group.iter().take(GROUPS) {
        rows.count("", *items, format!("of these of the group {group:?} of the rule {rule:?}"))?;
    }
    rows.count("  rejected", counts.rejected, "unreadable, on the rejects list")?;
    let own = "have a fingerprint of their own, which stays as it is";
    rows.some("", counts.own_fingerprints, own)?;
    counts.events().try_for_each(|(count, event)| rows.count("", count, event))
}

/// Prints the numbers of answered questions. `what` says when they were answered.
pub(super) fn asked(
    rows: &mut Rows<impl Write>,
    asked: &Asked,
    what: impl Display,
) -> io::Result<()> {
    let Asked { seen, unseen, full, forgotten } = *asked;
    rows.count("asked", asked.all(), what)?;
    rows.count("  seen", seen, "answered as seen")?;
    rows.count("  unseen", unseen, "answered as unseen, and added if the client asked for that")?;
    rows.some("  full", full, "refused: no room")?;
    rows.some("  forgotten", forgotten, "forgotten: they pass again")
}

fn clients(rows: &mut Rows<impl Write>, clients: &ClientsStatus) -> io::Result<()> {
    let ClientsStatus { open, accepted, refused } = clients;
    let (accepted, refused) = (HumanCount(*accepted), HumanCount(*refused));
    let words = format!("are connected; since the start: accepted {accepted}, refused {refused}");
    rows.count("clients", *open, words)
}

fn filter(rows: &mut Rows<impl Write>, filter: &FilterStatus) -> io::Result<()> {
    let FilterStatus { keys, capacity, fill, error_rate, bytes, forgotten, .. } = *filter;
    let FilterStatus { lost_urls, limit, full_seconds, .. } = *filter;
    let what = format!(
        "fingerprints, {:.1} % of {}; error rate now {}; {}",
        100.0 * fill,
        HumanCount(capacity),
        about_rate(error_rate),
        BinaryBytes(bytes)
    );
    rows.count("filter", keys, what)?;
    if let Some(rate) = filter.frozen_error_rate {
        rows.number("", about_rate(rate), "of the error rate: the frozen native filter")?;
    }
    lost(rows, lost_urls)?;
    if let Some((limit, seconds)) = limit.zip(full_seconds) {
        rows.number(
            "",
            format!("about {}", span(seconds)),
            format!("until it holds {}, at the speed of the last minutes", HumanCount(limit)),
        )?;
    }
    if let Some(generations) = filter.generations {
        self::generations(rows, &generations)?;
    }
    rows.some("", forgotten, "of these were forgotten and pass again")
}

/// Formats a time in its largest unit, such as 61s or 6w.
pub(super) fn span(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    format!("{:#}", HumanDuration(time))
}

fn generations(rows: &mut Rows<impl Write>, generations: &GenerationsStatus) -> io::Result<()> {
    let GenerationsStatus { number, next_seconds, keys, expired, swept } = *generations;
    let next = next_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.ceil()).ok());
    let next = next.map_or_else(String::new, |time| {
        format!("; the next one begins in {}", humantime::format_duration(time))
    });
    rows.number("", number, format!("is the generation{next}"))?;
    let ages = keys.map(|keys| HumanCount(keys).to_string()).join(", ");
    let (expired, swept) = (HumanCount(expired), HumanCount(swept));
    rows.number("", "", format!("fingerprints by age: {ages}; expired: {expired}; swept: {swept}"))
}

/// Formats an error rate, which urlseen computes from the fill of the filter.
pub(super) fn about_rate(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { format!("about {rate:.1e}") }
}

/// Prints the expected number of lost URLs, if it is known and not zero.
pub(super) fn lost(rows: &mut Rows<impl Write>, urls: Option<f64>) -> io::Result<()> {
    match urls.filter(|&urls| urls > 0.0) {
        Some(urls) => {
            let about = format!("about {}", lost_text(urls));
            rows.number("", about, "URLs lost so far, by expectation")
        }
        None => Ok(()),
    }
}

fn storage(rows: &mut Rows<impl Write>, storage: &Footprint) -> io::Result<()> {
    let Footprint { dir, fsync, snapshots, last_snapshot, log_bytes, archive, .. } = storage;
    let last = last_snapshot.as_ref().and_then(|last| humantime::parse_rfc3339(last).ok());
    let last = last.map_or_else(String::new, |last| format!(", the last one {} ago", age(last)));
    let (dir, log) = (dir.display(), BinaryBytes(*log_bytes));
    rows.row(
        "storage",
        format!("{dir}: snapshots: {snapshots}{last}; log: {log}, fsync = {fsync}"),
    )?;
    let Some(ArchiveSize { bytes, is_whole }) = archive else { return Ok(()) };
    let extent = if *is_whole { "with the log it is complete" } else { "it is not complete" };
    rows.row("archive", format!("{}; {extent}", BinaryBytes(*bytes)))
}

/// Returns the time since `then`, to the second.
fn age(then: SystemTime) -> impl Display {
    let age = then.elapsed().unwrap_or_default();
    humantime::format_duration(Duration::from_secs(age.as_secs()))
}
