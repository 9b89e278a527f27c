//! `urlseen rejects list`: the table of rejects, or their JSON.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

use crate::admin::printable::{columns, json_line, printable, say, width};
use crate::crawl::rejects::RejectsList;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indicatif::HumanCount;
use serde::Serialize;
use urlseen_core::redis::reject::{Reject, RejectedItem};
use urlseen_engine::item::Brief;

use super::super::Outcome;
use super::super::bar::Bar;
use super::super::settings::Settings;
use super::is_wanted;

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
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen rejects list --limit 100
  urlseen rejects list --json --reason scheme")]
pub(super) struct RejectListArgs {
    #[command(flatten)]
    pub(super) settings: Settings,
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
pub(super) async fn show(mut list: RejectsList, args: &RejectListArgs) -> anyhow::Result<Outcome> {
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
    let mut table = Table::new(args);
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
                table.print(&row)?;
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
        table.print(row)?;
    }
    table.out.flush()?;
    if more > 0 {
        say(format_args!("{} older rejects are not shown; --limit 0 shows all", HumanCount(more)));
    }
    Ok(Outcome::Done)
}

/// Reject, or an entry of the list that urlseen did not write.
type RejectRow = Result<Reject, Vec<u8>>;

struct Table {
    out: BufWriter<io::StdoutLock<'static>>,
    /// Width of the terminal, if standard output is one.
    columns: Option<usize>,
    json: bool,
    raw: bool,
}

/// Reject in JSON, with the URL of a request if the item is more than this URL.
#[derive(Serialize)]
struct RejectJson<'a> {
    #[serde(flatten)]
    reject: &'a Reject,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Table {
    fn new(&RejectListArgs { json, raw, .. }: &RejectListArgs) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), columns: columns(), json, raw }
    }

    fn print(&mut self, row: &RejectRow) -> anyhow::Result<()> {
        if self.json {
            let line = match row {
                Ok(reject) => json_line(&RejectJson { reject, url: brief(&reject.item).url })?,
                Err(bytes) => json_line(&match std::str::from_utf8(bytes) {
                    Ok(text) => serde_json::json!({ "raw": text }),
                    Err(_) => serde_json::json!({ "raw_base64": STANDARD.encode(bytes) }),
                })?,
            };
            writeln!(self.out, "{line}")?;
            return Ok(());
        }
        let (time, reason, item) = match row {
            Ok(Reject { time, reason, item }) => (time.as_str(), reason.as_str(), self.shown(item)),
            Err(bytes) => (NONE, "(not written by urlseen)", Cow::Borrowed(&bytes[..])),
        };
        let (time, reason) = (time.as_bytes(), reason.as_bytes());
        let Some(columns) = self.columns else {
            let [time, reason, item] = [time, reason, &item].map(|text| printable(text, None));
            writeln!(self.out, "{time}\t{reason}\t{item}")?;
            return Ok(());
        };
        // Two spaces follow each of the first two columns.
        let room = columns.saturating_sub(TIME + 4);
        let widest = REASON.min(room / 2);
        let (time, reason) = (printable(time, Some(TIME)), printable(reason, Some(widest)));
        let item = printable(&item, Some(room - widest));
        let (after_time, after_reason) = (TIME - width(&time) + 2, widest - width(&reason) + 2);
        writeln!(self.out, "{time}{:after_time$}{reason}{:after_reason$}{item}", "", "")?;
        Ok(())
    }

    /// Returns the text of an item. A shortened item has its length and SHA-1 before it.
    fn shown<'a>(&self, item: &'a RejectedItem) -> Cow<'a, [u8]> {
        let text = if self.raw { bytes(item).into() } else { brief(item).text };
        let RejectedItem::Shortened { bytes, sha1, .. } = item else { return text };
        let about = format!("({} bytes, SHA-1 {sha1}) ", HumanCount(*bytes));
        Cow::Owned([about.as_bytes(), &text, "…".as_bytes()].concat())
    }
}

/// Describes the item of a reject.
fn brief(item: &RejectedItem) -> Brief<'_> {
    Brief::of(bytes(item))
}

/// Returns the item of a reject, or the first bytes of a shortened one.
fn bytes(item: &RejectedItem) -> &[u8] {
    match item {
        RejectedItem::Whole(bytes) | RejectedItem::Shortened { begins: bytes, .. } => bytes,
    }
}
