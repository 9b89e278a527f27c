//! `urlseen rejects`: lists, requeues and drops unreadable items.

use std::borrow::Cow;

use urlseen_redis::reject::{Reject, RejectedItem};

use crate::admin::printable::{terminal_size, width};
use crate::cli::prelude::*;
use urlseen_redis::protocol::{Fate, RejectsList, Sorted};

/// Maximum number of foreign rejects that the command prints. Foreign rejects are entries of the
/// list that urlseen did not write.
const NAMED: u64 = 20;

/// Maximum width of a foreign reject in a message, in columns.
const SHOWN: usize = 200;

/// List, requeue or drop the items that the daemon failed to read.
///
/// Examples:
/// ```text
/// urlseen rejects list     # the newest 20
/// urlseen rejects requeue  # back to the source
/// ```
#[derive(Debug, clap::Subcommand)]
pub(super) enum RejectsCommand {
    List(RejectListArgs),
    /// Put rejected items back at the end of the source.
    ///
    /// Use the command after you have removed the reason for the rejects, for example with a change
    /// of `source.item` or an update of urlseen. If the daemon still cannot read an item, it
    /// rejects the item again. An item of any size goes back byte for byte. Entries that urlseen
    /// did not write stay on the list. The command prints these entries. If there are any, the exit
    /// status is 1.
    ///
    /// Examples:
    /// ```text
    /// urlseen rejects requeue
    /// urlseen rejects requeue --reason tab
    /// ```
    Requeue {
        #[command(flatten)]
        settings: Settings,
        /// Requeue only rejects whose reason contains this text. Default: all rejects
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Delete rejects and their items.
    ///
    /// Items that the daemon rejects during the command stay on the list.
    ///
    /// Examples:
    /// ```text
    /// urlseen rejects drop                        # asks first
    /// urlseen rejects drop --yes --reason scheme
    /// ```
    Drop {
        #[command(flatten)]
        settings: Settings,
        /// Drop only rejects whose reason contains this text. Default: all rejects
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Do not ask for confirmation. Required if standard input is not a terminal
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn run(command: &RejectsCommand) -> anyhow::Result<Outcome> {
    let (RejectsCommand::List(RejectListArgs { settings, .. })
    | RejectsCommand::Requeue { settings, .. }
    | RejectsCommand::Drop { settings, .. }) = command;
    each_crawl(settings.load_all()?, |config| {
        runtime()?.block_on(async {
            let list = RejectsList::open(&config.redis.url, config.keys(), config.list()).await?;
            match command {
                RejectsCommand::List(args) => show(list, args).await,
                RejectsCommand::Requeue { reason, .. } => requeue(list, reason.as_deref()).await,
                RejectsCommand::Drop { reason, yes, .. } => {
                    drop_rejects(list, reason.as_deref(), *yes).await
                }
            }
        })
    })
}

/// Returns true if the reason of a reject contains the given text, or if no text is given.
fn is_wanted(reject: &Reject, reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reject.reason.contains(reason))
}

async fn requeue(list: RejectsList, reason: Option<&str>) -> anyhow::Result<Outcome> {
    let source = list.keys.source.clone();
    let sorted = sort(list, Fate::Requeue, reason).await?;
    let (gone, stay) = (HumanCount(sorted.gone), HumanCount(sorted.found - sorted.gone));
    writeln!(io::stdout(), "{gone} put back to {source}, {stay} stay")?;
    Ok(if sorted.foreign > 0 { Outcome::BadInput } else { Outcome::Done })
}

async fn drop_rejects(
    mut list: RejectsList,
    reason: Option<&str>,
    yes: bool,
) -> anyhow::Result<Outcome> {
    let scan = list.scan().await?;
    let found = scan.len();
    let rejected = printable(list.keys.rejected.as_bytes(), None);
    if found == 0 {
        return done(format_args!("there are no rejects on {rejected}"));
    }
    let count = HumanCount(found);
    let question = match reason {
        None => format!("Drop {count} rejects on {rejected} for good?"),
        Some(reason) => format!(
            "Drop the rejects whose reason contains {reason:?} for good? There are {count} \
             rejects on {rejected}."
        ),
    };
    if !confirmed(yes, &question, "nothing is dropped")? {
        return Ok(Outcome::Done);
    }
    let (gone, stay) = match reason {
        None => (list.drop_found(scan).await?, 0),
        Some(reason) => {
            let sorted = sort(list, Fate::Drop, Some(reason)).await?;
            (sorted.gone, sorted.found - sorted.gone)
        }
    };
    done(format_args!("{} dropped, {} stay", HumanCount(gone), HumanCount(stay)))
}

/// Requeues or drops the selected rejects. Prints the entries that cannot be requeued.
async fn sort(mut list: RejectsList, fate: Fate, reason: Option<&str>) -> anyhow::Result<Sorted> {
    let bar = Bar::counting("rejects");
    let mut last = Sorted::default();
    let wanted = |reject: &Reject| is_wanted(reject, reason);
    let result = list
        .sort(fate, wanted, |sorted, foreign| {
            bar.show(sorted.seen(), sorted.found);
            bar.above(|| name_foreign(sorted.foreign, foreign));
            last = *sorted;
        })
        .await;
    drop(bar);
    let sorted = match result {
        // The command failed before its first step.
        Err(trouble) if last.found == 0 => return Err(trouble.into()),
        result => result.with_context(|| {
            let [seen, found, gone] = [last.seen(), last.found, last.gone].map(HumanCount);
            format!(
                "stopped after {seen} of {found} rejects, {gone} of them gone; the others wait in \
                 Redis: repeat the command to continue"
            )
        })?,
    };
    if sorted.foreign > NAMED {
        say(format_args!("urlseen: … and {} more of these", HumanCount(sorted.foreign - NAMED)));
    }
    Ok(sorted)
}

/// Prints entries that have no whole item. `total` is the number of such entries so far, including
/// the given ones.
fn name_foreign(total: u64, foreign: &[&[u8]]) {
    let before = total - foreign.len() as u64;
    let room = usize::try_from(NAMED.saturating_sub(before)).unwrap_or(usize::MAX);
    for reject in foreign.iter().take(room) {
        let shown = printable(reject, Some(SHOWN));
        say(format_args!("urlseen: stays on the list, because it has no whole item: {shown}"));
    }
}

/// Default number of rejects in a table.
const LIMIT: u64 = 20;

/// Width of a time and maximum width of a reason, in columns.
const TIME: usize = 24;
const REASON: usize = 50;

/// Text for the missing time of an entry that urlseen did not write.
const NONE: &str = "-";

/// Show rejects with time, reason and item, the newest last.
///
/// On a terminal, the command cuts an item to the width of the line. It prints control characters
/// as escapes. Of an item that was too large, the command shows only the length, the SHA-1 and
/// the first bytes.
///
/// Examples:
/// ```text
/// urlseen rejects list --limit 100
/// urlseen rejects list --json --reason scheme
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct RejectListArgs {
    #[command(flatten)]
    settings: Settings,
    /// Maximum number of rejects to show. If there are more, the newest rejects are shown. 0 shows
    /// all. The default is 20, or all with --json
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Show only rejects whose reason contains this text. Default: all rejects
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print a JSON object for each reject, with the complete item
    #[arg(long)]
    json: bool,
    /// Print the bytes of each item, in place of method, URL, priority and callback
    #[arg(long)]
    raw: bool,
}

/// Prints the rejects that the arguments select.
async fn show(mut list: RejectsList, args: &RejectListArgs) -> anyhow::Result<Outcome> {
    let limit = args.limit.unwrap_or(if args.json { 0 } else { LIMIT });
    let limit = if limit == 0 { u64::MAX } else { limit };
    let mut scan = list.scan().await?;
    // Without `--reason`, the command shows the newest rejects, and need not read older ones.
    let skipped = match args.reason {
        None => scan.len().saturating_sub(limit),
        Some(_) => 0,
    };
    scan.skip(skipped);
    let is_narrowed = args.reason.is_some() && limit < u64::MAX;
    let (bar, mut read) = (is_narrowed.then(|| Bar::counting("rejects")), 0);
    let (mut out, columns) =
        (BufWriter::new(io::stdout().lock()), terminal_size().map(|(_, columns)| columns));
    let mut newest = VecDeque::new();
    let mut more = skipped;
    loop {
        let rejects = list.next(&mut scan).await?;
        if rejects.is_empty() {
            break;
        }
        read += rejects.len() as u64;
        if let Some(bar) = &bar {
            bar.show(read, scan.len());
        }
        for json in rejects {
            let row = Reject::from_json(&json).ok_or(json);
            let reason = args.reason.as_deref();
            if !row.as_ref().map_or(reason.is_none(), |reject| is_wanted(reject, reason)) {
                continue;
            }
            if !is_narrowed {
                print(&mut out, &row, args, columns)?;
                continue;
            }
            newest.push_back(row);
            if newest.len() as u64 > limit {
                newest.pop_front();
                more += 1;
            }
        }
    }
    drop(bar);
    for row in &newest {
        print(&mut out, row, args, columns)?;
    }
    out.flush()?;
    if more > 0 {
        say(format_args!("{} older rejects are not shown; --limit 0 shows all", HumanCount(more)));
    }
    Ok(Outcome::Done)
}

/// Reject, or an entry of the list that urlseen did not write.
type RejectRow = Result<Reject, Vec<u8>>;

/// Reject in JSON, with the URL of a request if the item is more than this URL.
#[derive(Serialize)]
struct RejectJson<'a> {
    #[serde(flatten)]
    reject: &'a Reject,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// Prints a reject, in `columns` columns if standard output is a terminal.
fn print(
    out: &mut impl Write,
    row: &RejectRow,
    args: &RejectListArgs,
    columns: Option<usize>,
) -> anyhow::Result<()> {
    if args.json {
        let line = match row {
            Ok(reject) => json_line(&RejectJson { reject, url: brief(&reject.item).url })?,
            Err(bytes) => json_line(&match std::str::from_utf8(bytes) {
                Ok(text) => serde_json::json!({ "raw": text }),
                Err(_) => serde_json::json!({ "raw_base64": STANDARD.encode(bytes) }),
            })?,
        };
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let (time, reason, item) = match row {
        Ok(Reject { time, reason, item }) => {
            (time.as_str(), reason.as_str(), shown(item, args.raw))
        }
        Err(bytes) => (NONE, "(not written by urlseen)", Cow::Borrowed(&bytes[..])),
    };
    let (time, reason) = (time.as_bytes(), reason.as_bytes());
    let Some(columns) = columns else {
        let [time, reason, item] = [time, reason, &item].map(|text| printable(text, None));
        writeln!(out, "{time}\t{reason}\t{item}")?;
        return Ok(());
    };
    // Two spaces follow each of the first two columns.
    let room = columns.saturating_sub(TIME + 4);
    let widest = REASON.min(room / 2);
    let (time, reason) = (printable(time, Some(TIME)), printable(reason, Some(widest)));
    let item = printable(&item, Some(room - widest));
    let (after_time, after_reason) = (TIME - width(&time) + 2, widest - width(&reason) + 2);
    writeln!(out, "{time}{:after_time$}{reason}{:after_reason$}{item}", "", "")?;
    Ok(())
}

/// Returns the text of an item. A shortened item has its length and SHA-1 before it.
fn shown(item: &RejectedItem, raw: bool) -> Cow<'_, [u8]> {
    let text = if raw { bytes(item).into() } else { brief(item).text };
    let RejectedItem::Shortened { bytes, sha1, .. } = item else { return text };
    let about = format!("({} bytes, SHA-1 {sha1}) ", HumanCount(*bytes));
    Cow::Owned([about.as_bytes(), &text, "…".as_bytes()].concat())
}

/// Describes the item of a reject.
fn brief(item: &RejectedItem) -> ItemSummary<'_> {
    ItemSummary::of(bytes(item))
}

/// Returns the item of a reject, or the first bytes of a shortened one.
fn bytes(item: &RejectedItem) -> &[u8] {
    match item {
        RejectedItem::Whole(bytes) | RejectedItem::Shortened { begins: bytes, .. } => bytes,
    }
}
